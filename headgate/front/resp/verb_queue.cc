#include "headgate/front/resp/verb_queue.h"

#include <algorithm>
#include <utility>

namespace headgate::front::resp {

absl::StatusOr<VerbQueue::Answered> VerbQueue::AnswerNext(RuleVerb verb,
                                                          const wire::RespParser& command,
                                                          wire::RespVersion version,
                                                          base::Instant now, std::string& output) {
  PendingVerb& next = asked_ == 0 ? Add() : *pending_verbs_[answered_];
  just_sent_ = false;
  if (next.turn.pending.waiting()) return Answered::kLater;
  if (next.decided) {
    output += next.reply;
    const absl::Status status = std::move(next.status);
    Pop();
    if (!status.ok()) return status;
    return Answered::kNow;
  }
  wire::RespWriter reply(output, version);
  const auto answered = verbs_.Answer(verb, command, reply, next.turn, now);
  just_sent_ = answered.ok() && *answered == Answered::kLater;
  if (just_sent_) {
    ++open_;
  } else {
    Pop();
  }
  return answered;
}

void VerbQueue::KeepPermits() {
  for (const auto& acquiring : acquired_) acquiring->hold.Keep();
  acquired_.clear();
}

bool VerbQueue::acquires() const {
  const auto first = pending_verbs_.begin();
  return !acquired_.empty() ||
         std::any_of(first + static_cast<ptrdiff_t>(answered_),
                     first + static_cast<ptrdiff_t>(asked_),
                     [](const auto& verb) { return verb->turn.acquiring != nullptr; });
}

bool VerbQueue::MayFollow(RuleVerb first, RuleVerb next) {
  switch (next) {
    case RuleVerb::kCheck:
    case RuleVerb::kPeek:
      return first != RuleVerb::kAcquire && first != RuleVerb::kRelease;
    case RuleVerb::kAcquire:
    case RuleVerb::kRelease:
      return first == next;
    case RuleVerb::kRefund:
    case RuleVerb::kReset:
      return false;
  }
  __builtin_unreachable();
}

void VerbQueue::AskAhead(RuleVerb verb, const wire::RespParser& command, wire::RespVersion version,
                         base::Instant now) {
  PendingVerb& next = ahead_ < asked_ ? *pending_verbs_[ahead_] : Add();
  ++ahead_;
  if (next.decided || next.turn.pending.waiting()) return;
  wire::RespWriter reply(next.reply, version);
  const auto answered = verbs_.Answer(verb, command, reply, next.turn, now);
  if (answered.ok() && *answered == Answered::kLater) {
    ++open_;
    return;
  }
  next.decided = true;
  next.status = answered.status();
  kept_bytes_ += next.reply.size();
}

VerbQueue::PendingVerb& VerbQueue::Add() {
  if (asked_ == pending_verbs_.size()) {
    pending_verbs_.push_back(std::make_unique<PendingVerb>([this] {
      if (--open_ == 0) on_ready_();
    }));
  }
  return *pending_verbs_[asked_++];
}

void VerbQueue::Pop() {
  std::unique_ptr<RuleTurn::Acquiring>& acquiring = pending_verbs_[answered_]->turn.acquiring;
  if (acquiring != nullptr) acquired_.push_back(std::move(acquiring));
  if (++answered_ < asked_) return;
  // The first command is never asked ahead, so its element keeps no reply.
  pending_verbs_.resize(1);
  asked_ = answered_ = kept_bytes_ = 0;
}

}  // namespace headgate::front::resp

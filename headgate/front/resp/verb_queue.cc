#include "headgate/front/resp/verb_queue.h"

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
    next.turn.KeepPermit();
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
    next.turn.KeepPermit();
    Pop();
  }
  return answered;
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
  if (++answered_ < asked_) return;
  // The first command is never asked ahead, so its element keeps no reply.
  pending_verbs_.resize(1);
  asked_ = answered_ = kept_bytes_ = 0;
}

}  // namespace headgate::front::resp

#include "headgate/front/resp/verb_queue.h"

#include <utility>

namespace headgate::front::resp {

absl::StatusOr<VerbQueue::Answered> VerbQueue::AnswerNext(RuleVerb verb,
                                                          const wire::RespParser& command,
                                                          wire::RespVersion version,
                                                          base::Instant now, std::string& output) {
  Question& question = asked_ == 0 ? Add() : *questions_[answered_];
  if (question.pending.waiting()) return Answered::kLater;
  if (question.decided) {
    output += question.reply;
    const absl::Status status = std::move(question.status);
    Pop();
    if (!status.ok()) return status;
    return Answered::kNow;
  }
  wire::RespWriter reply(output, version);
  const auto answered = verbs_.Answer(verb, command, reply, question.pending, now);
  if (answered.ok() && *answered == Answered::kLater) {
    ++open_;
  } else {
    Pop();
  }
  return answered;
}

void VerbQueue::AskAhead(RuleVerb verb, const wire::RespParser& command, wire::RespVersion version,
                         base::Instant now) {
  Question& question = Add();
  wire::RespWriter reply(question.reply, version);
  const auto answered = verbs_.Answer(verb, command, reply, question.pending, now);
  if (answered.ok() && *answered == Answered::kLater) {
    ++open_;
    return;
  }
  question.decided = true;
  question.status = answered.status();
  kept_bytes_ += question.reply.size();
}

VerbQueue::Question& VerbQueue::Add() {
  if (asked_ == questions_.size()) {
    questions_.push_back(std::make_unique<Question>([this] {
      if (--open_ == 0) on_ready_();
    }));
  }
  return *questions_[asked_++];
}

void VerbQueue::Pop() {
  if (++answered_ < asked_) return;
  // The first is never asked ahead, so that it keeps nothing.
  questions_.resize(1);
  asked_ = answered_ = kept_bytes_ = 0;
}

}  // namespace headgate::front::resp

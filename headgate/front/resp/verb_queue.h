// Verbs of the rules that arrive behind each other, where decisions come later: all of them are
// asked together, and each is answered in its turn, when the session is shown its bytes again.
//
//                        HG.CHECK a   HG.CHECK b    HG.PEEK c     PING
//   the first time       waits        asked ahead   asked ahead            one trip to the store
//   when all are there   answered     answered      answered      answered
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/front/resp/rule_verbs.h"
#include "headgate/limiter/pending.h"
#include "headgate/net/session.h"
#include "headgate/wire/resp_parser.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// One per session.
class VerbQueue {
 public:
  using Answered = RuleVerbs::Answered;

  // `on_ready` is called once none of those that were asked waits any more.
  VerbQueue(RuleVerbs& verbs, std::function<void()> on_ready)
      : verbs_(verbs), on_ready_(std::move(on_ready)) {}

  // Answers the next command: a new one where the queue is empty, else the first of those that were
  // asked, which it is again. Later: it is the first now, and the same has to come again. Or what
  // is wrong with it.
  absl::StatusOr<Answered> AnswerNext(RuleVerb verb, const wire::RespParser& command,
                                      wire::RespVersion version, base::Instant now,
                                      std::string& output);

  // Whether nothing but the one that waits has been asked.
  bool only_one() const { return asked_ - answered_ == 1; }
  // Whether one more may be asked ahead.
  bool has_room() const {
    return asked_ < kCommandsMax && kept_bytes_ < net::Session::kOutputPauseBytes;
  }
  // Asks a command behind those that wait; what it is answered at once is kept until its turn.
  void AskAhead(RuleVerb verb, const wire::RespParser& command, wire::RespVersion version,
                base::Instant now);

 private:
  static constexpr size_t kCommandsMax = 64;  // as many as a batch of CL.THROTTLE

  struct PendingVerb {
    explicit PendingVerb(std::function<void()> on_ready) : pending(std::move(on_ready)) {}
    limiter::Pending pending;
    bool decided = false;  // it never had to wait, and its answer is kept here
    absl::Status status;
    std::string reply;
  };

  PendingVerb& Add();
  void Pop();

  RuleVerbs& verbs_;
  const std::function<void()> on_ready_;
  size_t open_ = 0;  // those that wait
  // The first `asked_` are in use; of these, `answered_` have been answered. The first is kept for
  // the next command.
  std::vector<std::unique_ptr<PendingVerb>> pending_verbs_;
  size_t asked_ = 0;
  size_t answered_ = 0;
  size_t kept_bytes_ = 0;
};

}  // namespace headgate::front::resp

// Queues the rule verbs of a pipeline if decisions come later. All of them are sent to the store
// together. Each is answered in its turn, when the session gets its bytes again.
//
//                       HG.CHECK a   HG.CHECK b    HG.PEEK c     PING
//  first pass           waits        asked ahead   asked ahead            one trip to the store
//  when all are ready   answered     answered      answered      answered
//
// A check that also peeks at permits asks twice. Then the commands behind it ask again too,
// together with it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/front/resp/rule_verbs.h"
#include "headgate/net/session.h"
#include "headgate/wire/resp_parser.h"
#include "headgate/wire/resp_writer.h"

namespace headgate::front::resp {

// One per session.
class VerbQueue {
 public:
  using Answered = RuleVerbs::Answered;

  // `on_ready` is called when no queued verb waits any more.
  VerbQueue(RuleVerbs& verbs, std::function<void()> on_ready)
      : verbs_(verbs), on_ready_(std::move(on_ready)) {}

  // Answers the next command. If the queue is empty, this is a new command; otherwise it must be
  // the first queued command, passed again. kLater: the command is now the first in the queue, and
  // must be passed again. An error says what is wrong with the command.
  absl::StatusOr<Answered> AnswerNext(RuleVerb verb, const wire::RespParser& command,
                                      wire::RespVersion version, base::Instant now,
                                      std::string& output);

  // Leaves the permits of the answered commands to their ids. Until then, the end of the queue
  // gives them back.
  void KeepPermits();
  // Whether the queue holds the permit of a command, or will hold one that the store grants.
  bool acquires() const;

  bool empty() const { return asked_ == 0; }
  // The bytes of the replies that wait for their turn.
  size_t kept_bytes() const { return kept_bytes_; }
  // Whether to ask the commands behind the first one ahead: it has just been sent, perhaps for the
  // second time, or nothing is queued behind it.
  bool asks_ahead() const { return just_sent_ || asked_ - answered_ == 1; }
  // Goes back to the command behind the first one, for the calls of AskAhead that follow.
  void BeginAhead() { ahead_ = answered_ + 1; }
  // Whether one more command can be asked ahead.
  bool has_room() const {
    return ahead_ < asked_ ||
           (asked_ < kCommandsMax && kept_bytes_ < net::Session::kOutputPauseBytes);
  }
  // Whether a command may be sent while this one, the first in the queue, waits. A command that
  // acquires a permit asks the store a second time if its rule has other limits too. Only commands
  // of its own kind follow it, because others would overtake its second question.
  static bool MayFollow(RuleVerb first, RuleVerb next);
  // Sends the next command behind the first one to the store. If it is queued already, sends it
  // again only if its first answer has come and it has a second question. If its reply is available
  // at once, the reply is kept until its turn.
  void AskAhead(RuleVerb verb, const wire::RespParser& command, wire::RespVersion version,
                base::Instant now);

 private:
  static constexpr size_t kCommandsMax = 64;  // as many as in a batch of CL.THROTTLE

  struct PendingVerb {
    explicit PendingVerb(std::function<void()> on_ready) : turn(std::move(on_ready)) {}
    RuleTurn turn;
    bool decided = false;  // the decision was immediate; its reply is kept here
    absl::Status status;
    std::string reply;
  };

  PendingVerb& Add();
  // The first command has been answered.
  void Pop();

  RuleVerbs& verbs_;
  const std::function<void()> on_ready_;
  size_t open_ = 0;  // number of waiting verbs
  // The first `asked_` elements are in use; `answered_` of these have been answered. The first
  // element is kept for the next command.
  std::vector<std::unique_ptr<PendingVerb>> pending_verbs_;
  size_t asked_ = 0;
  size_t answered_ = 0;
  size_t ahead_ = 0;        // the place of the next command of AskAhead
  bool just_sent_ = false;  // the last call of AnswerNext has sent its command
  size_t kept_bytes_ = 0;
  // The permits of the answered commands, until KeepPermits.
  std::vector<std::unique_ptr<RuleTurn::Acquiring>> acquired_;
};

}  // namespace headgate::front::resp

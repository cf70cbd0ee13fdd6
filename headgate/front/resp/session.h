// The conversation with one Redis client: RESP2 or RESP3 in, decisions out.
//
// Commands of one call are decided together if possible. Every CL.THROTTLE is collected (see
// throttle.h), until a command of another kind comes, whose reply must follow, or the input ends.
// If HG.CHECK or HG.PEEK has to wait for the shared store, the checks and peeks that follow are
// sent to the store together with it. So are commands that acquire permits after one that acquires,
// and commands that release after one that releases (see verb_queue.h).
//
// A call of OnBytes has three steps:
//
//   Resume   answers the batch that the last call left waiting; returns if it still waits
//   Collect  parses commands, and collects or runs each, up to the first that waits
//   Settle   flushes the batch; a batch that waits is not consumed
//
// The rights of the client follow a change of the users between two commands, never while a command
// that was sent to the store is unanswered. So the second call about a command that waits decides
// like the first one, and the answer of the store never stays behind for another command.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "headgate/front/resp/commands.h"
#include "headgate/front/resp/connection_verbs.h"
#include "headgate/front/resp/context.h"
#include "headgate/front/resp/transaction.h"
#include "headgate/front/resp/verb_queue.h"
#include "headgate/net/session.h"
#include "headgate/wire/resp_parser.h"

namespace headgate::front::resp {

// The bounds of a command, and the bounds before a login if logins are configured. A check may need
// no login, so the smaller bounds leave room for a check of some 28 entries.
inline constexpr wire::RespBounds kBounds{};
inline constexpr wire::RespBounds kBoundsBeforeLogin{.args_max = 64,
                                                     .bulk_bytes_max = 16 << 10,
                                                     .inline_bytes_max = 16 << 10,
                                                     .command_bytes_max = 64 << 10,
                                                     .unauthenticated = true};

class RespSession final : public net::Session {
 public:
  // `context` must outlive the session.
  RespSession(Context& context, const net::Peer& peer);

  Progress OnBytes(std::span<const char> input, std::string& output, base::Instant now) override;
  // The commands and replies of a transaction, and replies to commands that were asked ahead.
  size_t BufferedBytes() const override;
  void OnDrain() override { draining_ = true; }
  void OnGivenUp(GivenUp why, std::string& output, base::Instant now) override;
  void SetWaker(std::function<void()> wake) override { wake_ = std::move(wake); }

 private:
  enum class Ran : uint8_t { kDone, kFailed, kWaits };

  // The state of one call of OnBytes.
  struct Pass {
    std::string_view rest;          // the input that is not consumed
    size_t output_pause;            // stop at this much output
    std::string_view unanswered{};  // starts at the first command without an answer
    uint64_t commands = 0;
    uint64_t commands_answered = 0;  // commands before `unanswered`
    bool waits = false;              // a command waits for the store
    bool more = false;               // stopped because of output_pause
    bool protocol_error = false;
  };

  // Answers the batch that the last call left waiting. Returns false if it still waits.
  bool Resume(const ThrottleTurn& turn, Pass& pass, Progress& progress);
  void Collect(const ThrottleTurn& turn, Pass& pass);
  // Collects or runs the command in the parser. Returns false if this command or the batch before
  // it waits.
  bool TakeCommand(const ThrottleTurn& turn, Pass& pass);
  void RefuseInput(const ThrottleTurn& turn, Pass& pass);
  // Answers the batch. Returns false if it waits.
  bool Flush(const ThrottleTurn& turn, Pass& pass);
  void Settle(const ThrottleTurn& turn, Pass& pass, Progress& progress);

  // Adds the command to the batch if it brings its own limit. Waits: the batch before it waits.
  enum class Collected : uint8_t { kNo, kYes, kWaits };
  Collected CollectOne(const CommandSpec* spec, const ThrottleTurn& turn);
  // Answers a command that is not collected. Returns false if the answer comes later; the command
  // is then run again.
  bool Run(const CommandSpec* spec, const ThrottleTurn& turn, const Pass& pass);
  Ran RunOther(const CommandSpec* spec, const ThrottleTurn& turn);
  Ran RunRuleVerb(RuleVerb verb, const ThrottleTurn& turn);
  // `input` is the bytes behind the waiting command `first`. Sends the commands in them to the
  // store, up to the first one that may not follow `first`, is incomplete, or malformed.
  void AskAhead(RuleVerb first, std::string_view input, base::Instant now);
  // The same for increments behind a waiting increment.
  void AskIncrementsAhead(std::string_view input, const ThrottleTurn& turn);
  bool Unknown(wire::RespWriter& reply) const;
  bool May(access::Right right) const { return rights_.Has(right); }
  // Whether the client has to log in before it sends this command.
  bool NeedsLogin(const CommandSpec& spec) const;
  // If the client may not do this, writes the reason and returns true.
  bool Refuses(access::Right right, std::string_view command, wire::RespWriter& reply) const;
  Ran RunLogin(Verb verb, const ThrottleTurn& turn);
  // Whether a command was sent to the store and is unanswered. It is the next command in the input.
  bool sent() const {
    return !pending_.empty() || !counts_.empty() || !verbs_.empty() || login_ != nullptr;
  }
  // Updates the rights if the users have changed, unless a command is unanswered.
  void FollowUsers();
  // Brings the rights of the client up to date. Call it after each change of its identity.
  void UpdateRights();
  void SetBounds();
  Ran RunClient(const ThrottleTurn& turn);
  Ran RunScript(bool by_text, const ThrottleTurn& turn);
  Ran RunKeyVerb(Verb verb, const ThrottleTurn& turn);
  // Writes the error, if there is one. Otherwise `answered` says whether the reply was written, or
  // comes later.
  Ran Conclude(const absl::StatusOr<bool>& answered, const ThrottleTurn& turn);
  // Checks the command and writes an error if it cannot be executed. Returns whether it can.
  bool Accepts(const CommandSpec* spec, wire::RespWriter& reply) const;
  // MULTI, EXEC and DISCARD, and each command in between.
  Ran RunInTransaction(const CommandSpec* spec, const ThrottleTurn& turn, const Pass& pass);
  Ran Exec(const ThrottleTurn& turn, const Pass& pass);
  // Executes the next command of the transaction. Returns false if it waits.
  bool ExecuteNext(const ThrottleTurn& turn);
  void ResetClient();

  Context& context_;
  const net::Peer peer_;
  access::Rights rights_;
  uint64_t rights_generation_ = 0;
  std::unique_ptr<access::PendingLogin> login_;
  wire::RespParser parser_;
  ClientState client_;
  ClientList::Registration registration_;
  std::function<void()> wake_;
  net::OrderedWait wait_;
  limiter::Pending pending_{[this] { wake_(); }};       // for CL.THROTTLE
  limiter::PendingCounts counts_{[this] { wake_(); }};  // for INCREX
  VerbQueue verbs_;
  // The size of a batch whose replies come later. Its bytes are the first unconsumed ones.
  struct {
    size_t bytes = 0;
    uint64_t commands = 0;
  } awaited_;
  Transaction transaction_;
  bool draining_ = false;
  bool closing_ = false;
  bool http_ = false;  // closed because the client speaks HTTP
};

}  // namespace headgate::front::resp

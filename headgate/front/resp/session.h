// The conversation with one Redis client: RESP2 or RESP3 in, decisions out.
//
// Commands of one call are decided together if possible. Every CL.THROTTLE is collected (see
// throttle.h), until a command of another kind comes, whose reply must follow, or the input ends.
// A command that has to wait is in the queue of replies (see reply_queue.h), which also says which
// commands are sent to the store while others wait. All other commands stay in the input.
//
// A call of OnBytes has three steps:
//
//   WriteLate   writes the replies that have come
//   Collect     parses commands, and collects or runs each, up to one that must not be run yet
//   Flush       decides the batch
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "headgate/front/resp/commands.h"
#include "headgate/front/resp/connection_verbs.h"
#include "headgate/front/resp/context.h"
#include "headgate/front/resp/reply_queue.h"
#include "headgate/front/resp/transaction.h"
#include "headgate/front/resp/turn.h"
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
  // The bytes of a transaction's commands and replies, and of the replies in the queue.
  size_t BufferedBytes() const override;
  void OnDrain() override { draining_ = true; }
  void OnGivenUp(GivenUp why, std::string& output, base::Instant now) override;
  void SetWaker(std::function<void()> wake) override { wake_ = std::move(wake); }

 private:
  class LateLogin;

  // The state of one call of OnBytes.
  struct Pass {
    std::string& output;
    std::string_view rest;  // the input that is not consumed
    size_t output_pause;    // stop at this much output
    base::Instant now;
    uint64_t commands = 0;  // commands consumed from the input; EXEC counts when it is answered
    uint64_t executed = 0;  // commands of a transaction that were added to the queue
    bool more = false;      // stopped because of output_pause
    bool protocol_error = false;
  };

  void WriteLate(Pass& pass, Progress& progress);
  void Collect(Pass& pass);
  // Collects or runs the command in the parser. Returns false if it must not be run yet.
  bool TakeCommand(Pass& pass);
  void RefuseInput(Pass& pass);
  // The turn of a command whose reply may have to wait behind others.
  Turn NextTurn(Pass& pass) {
    return {.output = queue_.OutputBehind(pass.output), .queue = queue_, .now = pass.now};
  }
  Turn TurnAtOnce(Pass& pass) { return {.output = pass.output, .queue = queue_, .now = pass.now}; }

  // Adds the command to the batch if it brings its own limit. kWaits: it was not added, because the
  // batch before it waits for the store.
  enum class Collected : uint8_t { kNo, kYes, kWaits };
  Collected CollectOne(const CommandSpec* spec, const Turn& turn);
  // Answers a command that is not collected.
  Answered Run(const CommandSpec* spec, std::string_view bytes, const Turn& turn);
  Answered RunOther(const CommandSpec* spec, const Turn& turn);
  bool Unknown(wire::RespWriter& reply) const;
  bool May(access::Right right) const { return rights_.Has(right); }
  // Whether the client has to log in before it sends this command.
  bool NeedsLogin(const CommandSpec& spec) const;
  // If the client may not do this, writes the reason and returns true.
  bool Refuses(access::Right right, std::string_view command, wire::RespWriter& reply) const;
  Answered RunLogin(Verb verb, const Turn& turn);
  Answered CompleteLogin(const Greeting& greeting, std::optional<access::Login> login,
                         std::string& output);
  // Updates the rights if the users have changed.
  void FollowUsers();
  // Brings the rights of the client up to date. Call it after each change of its identity.
  void UpdateRights();
  void SetBounds();
  Answered RunClient(const Turn& turn);
  Answered RunScript(bool by_text, const Turn& turn);
  // Checks the command and writes an error if it cannot be executed. Returns whether it can.
  bool Accepts(const CommandSpec* spec, wire::RespWriter& reply) const;
  // MULTI, EXEC and DISCARD, and each command in between. `bytes` are those of the command.
  Answered RunInTransaction(const CommandSpec* spec, std::string_view bytes, const Turn& turn);
  // Executes the commands of the transaction, up to one that waits, and then answers EXEC.
  void Execute(Pass& pass);
  void ExecuteNext(const Turn& turn);
  void ResetClient();

  Context& context_;
  const net::Peer peer_;
  access::Rights rights_;
  uint64_t rights_generation_ = 0;
  wire::RespParser parser_;
  ClientState client_;
  ClientList::Registration registration_;
  std::function<void()> wake_;
  net::OrderedWait wait_;
  ReplyQueue queue_{[this] { wake_(); }};
  Transaction transaction_;
  bool draining_ = false;
  bool closing_ = false;
  bool http_ = false;  // closed because the client speaks HTTP
};

}  // namespace headgate::front::resp

// The conversation with one Redis client: RESP2 or RESP3 in, decisions out.
//
// Commands of one call are decided together if possible. CL.THROTTLE commands are collected (see
// throttle.h) until another command needs its reply after theirs, or until the input ends. If an
// HG.CHECK or HG.PEEK has to wait for the shared store, the ones that follow are sent to the store
// together with it (see verb_queue.h).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "headgate/front/resp/commands.h"
#include "headgate/front/resp/connection_verbs.h"
#include "headgate/front/resp/context.h"
#include "headgate/front/resp/verb_queue.h"
#include "headgate/net/session.h"
#include "headgate/wire/resp_parser.h"

namespace headgate::front::resp {

// The bounds of a command, and the smaller bounds before a login if a credential is set. A check
// needs no login, so the smaller bounds still have room for one with about 28 entries.
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
  void OnDrain() override { draining_ = true; }
  void OnGivenUp(GivenUp why, std::string& output, base::Instant now) override;
  void SetWaker(std::function<void()> wake) override { wake_ = std::move(wake); }

 private:
  enum class Ran : uint8_t { kDone, kFailed, kWaits };

  // Answers a command that is not collected. Returns false if the reply comes later; the command is
  // then run again.
  bool Run(const CommandSpec* spec, const ThrottleTurn& turn);
  Ran RunOther(const CommandSpec* spec, const ThrottleTurn& turn);
  Ran RunRuleVerb(RuleVerb verb, const ThrottleTurn& turn);
  void AskAhead(std::string_view input, base::Instant now);
  bool Unknown(wire::RespWriter& reply) const;
  bool MayUseState() const { return context_.access.MayUseState(peer_, client_.authenticated); }
  bool MayNotUseState(std::string_view command, wire::RespWriter& reply) const;
  Ran RunClient(const ThrottleTurn& turn);
  // Answers a command within a refused transaction. Returns false if there is no such transaction.
  bool RefusesInTransaction(const CommandSpec* spec, wire::RespWriter& reply);
  void ResetClient();
  void ChooseBounds();

  Context& context_;
  const net::Peer peer_;
  wire::RespParser parser_;
  ClientState client_;
  ClientList::Registration registration_;
  std::function<void()> wake_;
  net::OrderedWait wait_;
  limiter::Pending pending_{[this] { wake_(); }};  // for CL.THROTTLE
  VerbQueue verbs_;
  // The size of a batch whose replies come later. Its bytes are the first unconsumed ones. 73+:
  // Between a MULTI, which is refused, and its EXEC or DISCARD.
  struct {
    size_t bytes = 0;
    uint64_t commands = 0;
  } awaited_;
  bool in_refused_transaction_ = false;
  bool draining_ = false;
  bool closing_ = false;
  bool http_ = false;  // closed because the client speaks HTTP
};

}  // namespace headgate::front::resp

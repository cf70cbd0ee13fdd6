#include "headgate/front/resp/session.h"

#include <fmt/format.h>

#include <algorithm>

namespace headgate::front::resp {
namespace {

using wire::RespParser;
using wire::RespWriter;

// How much of a command an error repeats.
constexpr size_t kEchoedMax = 128;

}  // namespace

RespSession::RespSession(Context& context, const net::Peer& peer) : context_(context), peer_(peer) {
  client_.id = context.NextClientId();
  ChooseBounds();
}

net::Session::Progress RespSession::OnBytes(std::span<const char> input, std::string& output, base::Instant now) {
  std::string_view rest(input.data(), input.size());
  const size_t output_pause = output.size() + kOutputPauseBytes;
  Progress progress;
  uint64_t commands = 0;
  while (!closing_) {
    const RespParser::Step step = parser_.Parse(rest);
    if (step == RespParser::Step::kIncomplete) break;
    if (step == RespParser::Step::kError) {
      context_.throttle.Flush(output, now);
      RespWriter(output, client_.version).Error(fmt::format("ERR {}", parser_.error()));
      progress.protocol_error = true;
      closing_ = true;
      break;
    }
    if (parser_.size() > 0) {
      ++commands;
      Run(output, now);
    }
    rest.remove_prefix(parser_.consumed_bytes());
    if (output.size() >= output_pause) {
      progress.more = !rest.empty();
      break;
    }
  }
  context_.throttle.Flush(output, now);
  context_.counters.commands.Add(commands);
  progress.protocol_error = progress.protocol_error || http_;
  progress.consumed = input.size() - rest.size();
  progress.mid_request = !rest.empty() && !progress.more;
  progress.close = closing_ || (draining_ && rest.empty());
  return progress;
}

void RespSession::Run(std::string& output, base::Instant now) {
  const CommandSpec* const spec = FindCommand(parser_[0]);
  if (spec != nullptr && spec->verb == Verb::kThrottle) [[likely]]
    return context_.throttle.Add(parser_, output, now);
  context_.throttle.Flush(output, now);
  if (!RunOther(spec, output, now)) context_.counters.errors.Add();
}

// False after an error.
bool RespSession::RunOther(const CommandSpec* spec, std::string& output, base::Instant now) {
  RespWriter reply(output, client_.version);
  if (spec == nullptr) return Unknown(reply);
  if (!spec->AcceptsCount(parser_.size()) || (spec->verb == Verb::kPing && parser_.size() > 2)) {
    reply.Error(fmt::format("ERR wrong number of arguments for '{}' command", spec->name));
    return false;
  }
  if (spec->needs == Needs::kState && MayNotUseState(*spec, reply)) return false;
  const ConnectionVerbs& connection = context_.connection_verbs;
  switch (spec->verb) {
    case Verb::kThrottle:
      break;
    case Verb::kHgCheck:
      return RunRuleVerb(RuleVerb::kCheck, reply, now);
    case Verb::kHgPeek:
      return RunRuleVerb(RuleVerb::kPeek, reply, now);
    case Verb::kHgRefund:
      return RunRuleVerb(RuleVerb::kRefund, reply, now);
    case Verb::kHgReset:
      return RunRuleVerb(RuleVerb::kReset, reply, now);
    case Verb::kPing:
      parser_.size() > 1 ? reply.Bulk(parser_[1]) : reply.Simple("PONG");
      return true;
    case Verb::kEcho:
      reply.Bulk(parser_[1]);
      return true;
    case Verb::kHello: {
      const bool accepted = connection.Hello(parser_, client_, output);
      ChooseBounds();
      return accepted;
    }
    case Verb::kAuth: {
      const bool accepted = connection.Auth(parser_, client_, reply);
      ChooseBounds();
      return accepted;
    }
    case Verb::kSelect:
      return connection.Select(parser_, reply);
    case Verb::kInfo:
      return connection.Info(parser_, reply);
    case Verb::kClient:
      return connection.Client(parser_, client_, reply);
    case Verb::kCommand:
      return connection.Command(parser_, reply);
    case Verb::kConfig:
      return connection.Config(parser_, reply);
    case Verb::kTime:
      return connection.Time(reply, now);
    case Verb::kReset:
      ResetClient();
      reply.Simple("RESET");
      return true;
    case Verb::kQuit:
      reply.Simple("OK");
      closing_ = true;
      return true;
    case Verb::kHttp:
      reply.Error("ERR this is the Redis protocol, and that was an HTTP request; the connection is closed");
      closing_ = http_ = true;
      return false;
  }
  return true;
}

bool RespSession::RunRuleVerb(RuleVerb verb, RespWriter& reply, base::Instant now) {
  const absl::Status status = context_.rule_verbs.Answer(verb, parser_, reply, now);
  if (status.ok()) return true;
  const absl::string_view message = status.message();
  reply.Error(fmt::format("ERR {}", std::string_view(message.data(), message.size())));
  return false;
}

bool RespSession::Unknown(RespWriter& reply) const {
  std::string arguments;
  for (size_t i = 1; i < parser_.size() && arguments.size() < kEchoedMax; ++i) {
    const size_t room = kEchoedMax - arguments.size();
    arguments.append("'").append(parser_[i].substr(0, room)).append("' ");
  }
  reply.Error(fmt::format("ERR unknown command '{}', with args beginning with: {}", parser_[0].substr(0, kEchoedMax),
                          arguments));
  return false;
}

// True after the error that says why not.
bool RespSession::MayNotUseState(const CommandSpec& spec, RespWriter& reply) const {
  if (context_.access.MayUseState(peer_, client_.authenticated)) return false;
  if (context_.access.credential_set()) {
    reply.Error("NOAUTH Authentication required.");
  } else {
    reply.Error(
        fmt::format("NOPERM '{}' is for clients on the server's own machine while the server has no credential; "
                    "set one, and log in with AUTH",
                    spec.name));
  }
  return true;
}

void RespSession::ResetClient() {
  const uint64_t id = client_.id;
  client_ = ClientState{};
  client_.id = id;
  ChooseBounds();
}

void RespSession::ChooseBounds() {
  const bool before_login = context_.access.credential_set() && !client_.authenticated;
  parser_.set_bounds(before_login ? kBoundsBeforeLogin : kBounds);
}

}  // namespace headgate::front::resp

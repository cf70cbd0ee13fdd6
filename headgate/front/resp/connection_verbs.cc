#include "headgate/front/resp/connection_verbs.h"

#include <fmt/format.h>

#include <optional>

#include "headgate/base/text.h"
#include "headgate/front/resp/client_verbs.h"
#include "headgate/front/resp/commands.h"
#include "headgate/front/resp/server_verbs.h"
#include "headgate/front/resp/verb_replies.h"
#include "headgate/wire/resp_number.h"

namespace headgate::front::resp {
namespace {

using wire::RespParser;
using wire::RespVersion;
using wire::RespWriter;

constexpr std::string_view kDefaultUser = "default";
constexpr std::string_view kHelloNoAuth =
    "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO AUTH "
    "<user> <pass> option can be used to authenticate the client and select the RESP protocol "
    "version at the same time";
constexpr std::string_view kWrongPassword =
    "WRONGPASS invalid username-password pair or user is disabled.";

}  // namespace

ConnectionVerbs::Answered ConnectionVerbs::LogIn(std::string_view user, std::string_view password,
                                                 const LoginTurn& turn, RespWriter& refusal) const {
  using Result = access::Login::Result;
  if (!access_.has_logins()) {
    // Without logins, every client is the default user, whatever its password, as in Redis.
    if (user == kDefaultUser) return Answered::kWell;
    refusal.Error(kWrongPassword);
    return Answered::kWithError;
  }
  std::optional<access::Login> login;
  if (turn.pending != nullptr) {
    login = turn.pending->result();
  } else {
    turn.pending = std::make_unique<access::PendingLogin>(turn.wake);
    login = access_.LogIn(user, password, turn.peer, turn.now, post_, *turn.pending);
  }
  if (!login) return Answered::kLater;
  turn.pending.reset();
  switch (login->result) {
    case Result::kAccepted:
      turn.client.identity = std::move(login->identity);
      return Answered::kWell;
    case Result::kWrong:
      refusal.Error(kWrongPassword);
      break;
    case Result::kLimited:
      refusal.Error(fmt::format(
          "ERR too many failed logins of this user from this address; try again in {} s",
          std::chrono::ceil<std::chrono::seconds>(login->retry_after).count()));
      break;
    case Result::kBusy:
      refusal.Error("ERR too many logins are being verified; try again");
      break;
  }
  return Answered::kWithError;
}

ConnectionVerbs::Answered ConnectionVerbs::Auth(const RespParser& command, const LoginTurn& turn,
                                                RespWriter& reply) const {
  const auto refuse = [&](std::string_view error) {
    reply.Error(error);
    return Answered::kWithError;
  };
  if (command.size() > 3) return refuse("ERR syntax error");
  if (command.size() == 2 && !access_.has_logins()) {
    return refuse(
        "ERR AUTH <password> called without any password configured for the default "
        "user. Are you sure your "
        "configuration is correct?");
  }
  const bool with_user = command.size() == 3;
  const Answered answered =
      LogIn(with_user ? command[1] : kDefaultUser, command[command.size() - 1], turn, reply);
  if (answered == Answered::kWell) reply.Simple("OK");
  return answered;
}

// Errors use the version spoken so far, the reply uses the version agreed on.
ConnectionVerbs::Answered ConnectionVerbs::Hello(const RespParser& command, const LoginTurn& turn,
                                                 std::string& output) const {
  ClientState& client = turn.client;
  RespWriter refusal(output, client.version);
  const auto refuse = [&](std::string_view error) {
    refusal.Error(error);
    return Answered::kWithError;
  };
  RespVersion version = client.version;
  if (command.size() > 1) {
    const std::optional<int64_t> number = wire::RespNumber(command[1]);
    if (!number) return refuse("ERR Protocol version is not an integer or out of range");
    if (*number != 2 && *number != 3) return refuse("NOPROTO unsupported protocol version");
    version = *number == 3 ? RespVersion::k3 : RespVersion::k2;
  }
  std::optional<size_t> auth_at;
  std::optional<std::string_view> name;
  for (size_t i = 2; i < command.size();) {
    const size_t following = command.size() - 1 - i;
    if (base::EqualsIgnoreCase(command[i], "auth") && following >= 2) {
      auth_at = i + 1;
      i += 3;
    } else if (base::EqualsIgnoreCase(command[i], "setname") && following >= 1) {
      name = command[i + 1];
      if (!IsClientName(*name)) return refuse(kBadClientName);
      i += 2;
    } else {
      return refuse(
          fmt::format("ERR Syntax error in HELLO option '{}'", command[i].substr(0, kEchoedMax)));
    }
  }
  if (auth_at) {
    const Answered answered = LogIn(command[*auth_at], command[*auth_at + 1], turn, refusal);
    if (answered != Answered::kWell) return answered;
  }
  if (!client.identity.logged_in() && access_.WithoutLogin(turn.peer).empty())
    return refuse(kHelloNoAuth);
  if (name) client.name = *name;
  client.version = version;

  RespWriter reply(output, version);
  reply.Map(7);
  for (const std::string_view text : {std::string_view("server"), std::string_view("redis"),
                                      std::string_view("version"), kRedisVersion}) {
    reply.Bulk(text);
  }
  reply.Bulk("proto");
  reply.Integer(static_cast<int64_t>(version));
  reply.Bulk("id");
  reply.Integer(static_cast<int64_t>(client.id));
  for (const std::string_view text : {"mode", "standalone", "role", "master"}) reply.Bulk(text);
  reply.Bulk("modules");
  reply.Array(0);
  return Answered::kWell;
}

bool ConnectionVerbs::Select(const RespParser& command, RespWriter& reply) const {
  const std::optional<int64_t> index = wire::RespNumber(command[1]);
  if (!index) return Refuse(reply, "ERR value is not an integer or out of range");
  if (*index != 0) return Refuse(reply, "ERR DB index is out of range");
  return Accept(reply);
}

}  // namespace headgate::front::resp

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

std::optional<access::Login> ConnectionVerbs::LogIn(const Greeting::Login& login,
                                                    const net::Peer& peer, base::Instant now,
                                                    access::PendingLogin& pending) const {
  if (access_.has_logins())
    return access_.LogIn(login.user, login.password, peer, now, post_, pending);
  // Without logins, every client is the default user, whatever its password, as in Redis.
  using Result = access::Login::Result;
  return access::Login{.result = login.user == kDefaultUser ? Result::kAccepted : Result::kWrong};
}

std::optional<Greeting> ConnectionVerbs::ReadAuth(const RespParser& command,
                                                  const ClientState& client,
                                                  RespWriter& reply) const {
  if (command.size() > 3) {
    reply.Error("ERR syntax error");
    return std::nullopt;
  }
  if (command.size() == 2 && !access_.has_logins()) {
    reply.Error(
        "ERR AUTH <password> called without any password configured for the default "
        "user. Are you sure your "
        "configuration is correct?");
    return std::nullopt;
  }
  const bool with_user = command.size() == 3;
  return Greeting{.version = client.version,
                  .login = Greeting::Login{.user = with_user ? command[1] : kDefaultUser,
                                           .password = command[command.size() - 1]}};
}

std::optional<Greeting> ConnectionVerbs::ReadHello(const RespParser& command,
                                                   const ClientState& client,
                                                   RespWriter& reply) const {
  const auto refuse = [&](std::string_view error) {
    reply.Error(error);
    return std::nullopt;
  };
  Greeting greeting{.is_hello = true, .version = client.version};
  if (command.size() > 1) {
    const std::optional<int64_t> number = wire::RespNumber(command[1]);
    if (!number) return refuse("ERR Protocol version is not an integer or out of range");
    if (*number != 2 && *number != 3) return refuse("NOPROTO unsupported protocol version");
    greeting.version = *number == 3 ? RespVersion::k3 : RespVersion::k2;
  }
  for (size_t i = 2; i < command.size();) {
    const size_t following = command.size() - 1 - i;
    if (base::EqualsIgnoreCase(command[i], "auth") && following >= 2) {
      greeting.login = Greeting::Login{.user = command[i + 1], .password = command[i + 2]};
      i += 3;
    } else if (base::EqualsIgnoreCase(command[i], "setname") && following >= 1) {
      if (!IsClientName(command[i + 1])) return refuse(kBadClientName);
      greeting.name = std::string(command[i + 1]);
      i += 2;
    } else {
      return refuse(
          fmt::format("ERR Syntax error in HELLO option '{}'", command[i].substr(0, kEchoedMax)));
    }
  }
  return greeting;
}

// Errors use the version spoken so far, the reply uses the version agreed on.
Answered ConnectionVerbs::Complete(const Greeting& greeting, std::optional<access::Login> login,
                                   ClientState& client, const net::Peer& peer,
                                   std::string& output) const {
  using Result = access::Login::Result;
  const auto refuse = [&](std::string_view error) {
    RespWriter(output, client.version).Error(error);
    return Answered::kWithError;
  };
  if (login) {
    switch (login->result) {
      case Result::kAccepted:
        if (access_.has_logins()) client.identity = std::move(login->identity);
        break;
      case Result::kWrong:
        return refuse(kWrongPassword);
      case Result::kLimited:
        return refuse(fmt::format(
            "ERR too many failed logins of this user from this address; try again in {} s",
            std::chrono::ceil<std::chrono::seconds>(login->retry_after).count()));
      case Result::kBusy:
        return refuse("ERR too many logins are being verified; try again");
    }
  }
  if (!greeting.is_hello) {
    RespWriter(output, client.version).Simple("OK");
    return Answered::kWell;
  }
  if (!client.identity.logged_in() && access_.WithoutLogin(peer).empty())
    return refuse(kHelloNoAuth);
  if (greeting.name) client.name = *greeting.name;
  client.version = greeting.version;

  RespWriter reply(output, greeting.version);
  reply.Map(7);
  for (const std::string_view text : {std::string_view("server"), std::string_view("redis"),
                                      std::string_view("version"), kRedisVersion}) {
    reply.Bulk(text);
  }
  reply.Bulk("proto");
  reply.Integer(static_cast<int64_t>(greeting.version));
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

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
constexpr std::string_view kWrongPassword =
    "WRONGPASS invalid username-password pair or user is disabled.";

}  // namespace

bool ConnectionVerbs::LogIn(std::string_view user, std::string_view password) const {
  // Without a credential everybody is the default user, with any password, as in Redis.
  const bool matches = !access_.credential_set() || access_.Matches(password);
  if (matches && user == kDefaultUser) return true;
  counters_.logins_refused.Add();
  return false;
}

bool ConnectionVerbs::Auth(const RespParser& command, ClientState& client,
                           RespWriter& reply) const {
  if (command.size() > 3) return Refuse(reply, "ERR syntax error");
  if (command.size() == 2 && !access_.credential_set()) {
    return Refuse(reply,
                  "ERR AUTH <password> called without any password configured for the default "
                  "user. Are you sure your "
                  "configuration is correct?");
  }
  const bool with_user = command.size() == 3;
  if (!LogIn(with_user ? command[1] : kDefaultUser, command[command.size() - 1]))
    return Refuse(reply, kWrongPassword);
  client.authenticated = true;
  return Accept(reply);
}

// Errors use the version spoken so far, the reply uses the version agreed on.
bool ConnectionVerbs::Hello(const RespParser& command, ClientState& client,
                            std::string& output) const {
  RespWriter refusal(output, client.version);
  RespVersion version = client.version;
  if (command.size() > 1) {
    const std::optional<int64_t> number = wire::RespNumber(command[1]);
    if (!number) return Refuse(refusal, "ERR Protocol version is not an integer or out of range");
    if (*number != 2 && *number != 3)
      return Refuse(refusal, "NOPROTO unsupported protocol version");
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
      if (!IsClientName(*name)) return Refuse(refusal, kBadClientName);
      i += 2;
    } else {
      return Refuse(refusal, fmt::format("ERR Syntax error in HELLO option '{}'",
                                         command[i].substr(0, kEchoedMax)));
    }
  }
  if (auth_at) {
    if (!LogIn(command[*auth_at], command[*auth_at + 1])) return Refuse(refusal, kWrongPassword);
    client.authenticated = true;
  }
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
  return true;
}

bool ConnectionVerbs::Select(const RespParser& command, RespWriter& reply) const {
  const std::optional<int64_t> index = wire::RespNumber(command[1]);
  if (!index) return Refuse(reply, "ERR value is not an integer or out of range");
  if (*index != 0) return Refuse(reply, "ERR DB index is out of range");
  return Accept(reply);
}

}  // namespace headgate::front::resp

#include "headgate/front/resp/connection_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>

#include "headgate/front/resp/commands.h"
#include "headgate/wire/resp_number.h"

namespace headgate::front::resp {
namespace {

using wire::RespParser;
using wire::RespVersion;
using wire::RespWriter;

constexpr size_t kEchoedMax = 128;
constexpr size_t kClientNameMax = 256;
constexpr std::string_view kDefaultUser = "default";
constexpr std::string_view kWrongPassword = "WRONGPASS invalid username-password pair or user is disabled.";

struct Setting {
  std::string_view name;
  std::string_view value;
};
// What clients and load tools ask for, answered as it is: nothing is written to disk by commands, nothing is evicted by
// a policy of Redis.
constexpr std::array kSettings{
    Setting{"save", ""},
    Setting{"appendonly", "no"},
    Setting{"databases", "1"},
    Setting{"maxmemory", "0"},
    Setting{"maxmemory-policy", "noeviction"},
};

bool Refuse(RespWriter& reply, std::string_view text) {
  reply.Error(text);
  return false;
}

bool Accept(RespWriter& reply) {
  reply.Simple("OK");
  return true;
}

bool UnknownSubcommand(RespWriter& reply, std::string_view command, std::string_view subcommand) {
  return Refuse(reply,
                fmt::format("ERR unknown subcommand '{}'. Try {} HELP.", subcommand.substr(0, kEchoedMax), command));
}

bool WrongCount(RespWriter& reply, std::string_view command, std::string_view subcommand) {
  return Refuse(reply, fmt::format("ERR wrong number of arguments for '{}|{}' command", command, subcommand));
}

bool Help(RespWriter& reply, std::initializer_list<std::string_view> lines) {
  reply.Array(lines.size());
  for (const std::string_view line : lines) reply.Simple(line);
  return true;
}

// Printable, and no space: it appears in lists that are split at spaces.
bool IsClientName(std::string_view name) {
  return name.size() <= kClientNameMax &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
}

constexpr std::string_view kBadClientName = "ERR Client names cannot contain spaces, newlines or special characters.";

// As Redis's patterns, of which clients use but a `*` at the end.
bool Matches(std::string_view name, std::string_view pattern) {
  if (!pattern.ends_with('*')) return EqualsIgnoringCase(pattern, name);
  pattern.remove_suffix(1);
  return EqualsIgnoringCase(pattern, name.substr(0, pattern.size()));
}

void WriteSpec(const CommandSpec& spec, RespWriter& reply) {
  const int64_t key = spec.has_key ? 1 : 0;
  reply.Array(6);
  reply.Bulk(spec.name);
  reply.Integer(spec.arity);
  reply.Array(2);
  reply.Simple(spec.verb <= Verb::kHgReset ? "write" : "loading");
  reply.Simple("fast");
  for (int i = 0; i < 3; ++i) reply.Integer(key);  // first and last position of a key, and the step between
}

}  // namespace

bool ConnectionVerbs::LogIn(std::string_view user, std::string_view password) const {
  // Without a credential everybody is the default user, whatever the password, as in Redis.
  const bool matches = !access_.credential_set() || access_.Matches(password);
  if (matches && user == kDefaultUser) return true;
  counters_.logins_refused.Add();
  return false;
}

bool ConnectionVerbs::Auth(const RespParser& command, ClientState& client, RespWriter& reply) const {
  if (command.size() > 3) return Refuse(reply, "ERR syntax error");
  if (command.size() == 2 && !access_.credential_set()) {
    return Refuse(reply,
                  "ERR AUTH <password> called without any password configured for the default user. Are you sure your "
                  "configuration is correct?");
  }
  const bool with_user = command.size() == 3;
  if (!LogIn(with_user ? command[1] : kDefaultUser, command[command.size() - 1])) return Refuse(reply, kWrongPassword);
  client.authenticated = true;
  return Accept(reply);
}

// Errors are in the version spoken so far, the answer in the one agreed on.
bool ConnectionVerbs::Hello(const RespParser& command, ClientState& client, std::string& output) const {
  RespWriter refusal(output, client.version);
  RespVersion version = client.version;
  if (command.size() > 1) {
    const std::optional<int64_t> number = wire::RespNumber(command[1]);
    if (!number) return Refuse(refusal, "ERR Protocol version is not an integer or out of range");
    if (*number != 2 && *number != 3) return Refuse(refusal, "NOPROTO unsupported protocol version");
    version = *number == 3 ? RespVersion::k3 : RespVersion::k2;
  }
  std::optional<size_t> auth_at;
  std::optional<std::string_view> name;
  for (size_t i = 2; i < command.size();) {
    const size_t following = command.size() - 1 - i;
    if (EqualsIgnoringCase(command[i], "auth") && following >= 2) {
      auth_at = i + 1;
      i += 3;
    } else if (EqualsIgnoringCase(command[i], "setname") && following >= 1) {
      name = command[i + 1];
      if (!IsClientName(*name)) return Refuse(refusal, kBadClientName);
      i += 2;
    } else {
      return Refuse(refusal, fmt::format("ERR Syntax error in HELLO option '{}'", command[i].substr(0, kEchoedMax)));
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
  const Setting texts[] = {{"server", "redis"}, {"version", kRedisVersion}};
  for (const auto& [field, value] : texts) {
    reply.Bulk(field);
    reply.Bulk(value);
  }
  reply.Bulk("proto");
  reply.Integer(static_cast<int64_t>(version));
  reply.Bulk("id");
  reply.Integer(static_cast<int64_t>(client.id));
  const Setting role[] = {{"mode", "standalone"}, {"role", "master"}};
  for (const auto& [field, value] : role) {
    reply.Bulk(field);
    reply.Bulk(value);
  }
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

bool ConnectionVerbs::Client(const RespParser& command, ClientState& client, RespWriter& reply) const {
  const std::string_view sub = command[1];
  const size_t count = command.size();
  if (EqualsIgnoringCase(sub, "setinfo")) {
    if (count != 4) return WrongCount(reply, "client", "setinfo");
    if (!EqualsIgnoringCase(command[2], "lib-name") && !EqualsIgnoringCase(command[2], "lib-ver")) {
      return Refuse(reply, fmt::format("ERR Unrecognized option '{}'", command[2].substr(0, kEchoedMax)));
    }
    if (!IsClientName(command[3])) {
      return Refuse(reply, fmt::format("ERR {} cannot contain spaces, newlines or special characters.", command[2]));
    }
    return Accept(reply);
  }
  if (EqualsIgnoringCase(sub, "setname")) {
    if (count != 3) return WrongCount(reply, "client", "setname");
    if (!IsClientName(command[2])) return Refuse(reply, kBadClientName);
    client.name = command[2];
    return Accept(reply);
  }
  if (EqualsIgnoringCase(sub, "getname")) {
    if (count != 2) return WrongCount(reply, "client", "getname");
    client.name.empty() ? reply.Null() : reply.Bulk(client.name);
    return true;
  }
  if (EqualsIgnoringCase(sub, "id")) {
    if (count != 2) return WrongCount(reply, "client", "id");
    reply.Integer(static_cast<int64_t>(client.id));
    return true;
  }
  // There is nothing to evict or touch on behalf of a client, so both are as asked for.
  for (const std::string_view flag : {"no-evict", "no-touch"}) {
    if (!EqualsIgnoringCase(sub, flag)) continue;
    if (count != 3) return WrongCount(reply, "client", flag);
    const bool known = EqualsIgnoringCase(command[2], "on") || EqualsIgnoringCase(command[2], "off");
    return known ? Accept(reply) : Refuse(reply, "ERR syntax error");
  }
  if (EqualsIgnoringCase(sub, "help")) {
    return Help(reply, {"CLIENT GETNAME | SETNAME name | SETINFO LIB-NAME|LIB-VER text | ID",
                        "CLIENT NO-EVICT ON|OFF | NO-TOUCH ON|OFF"});
  }
  return UnknownSubcommand(reply, "CLIENT", sub);
}

bool ConnectionVerbs::Command(const RespParser& command, RespWriter& reply) const {
  const auto shown = [](const CommandSpec& spec) { return !spec.hidden; };
  const std::span<const CommandSpec> all = Commands();
  const auto count = static_cast<size_t>(std::count_if(all.begin(), all.end(), shown));
  const std::string_view sub = command.size() > 1 ? command[1] : std::string_view();
  if (command.size() == 1 || (EqualsIgnoringCase(sub, "info") && command.size() == 2)) {
    reply.Array(count);
    for (const CommandSpec& spec : all) {
      if (shown(spec)) WriteSpec(spec, reply);
    }
    return true;
  }
  if (EqualsIgnoringCase(sub, "info")) {
    reply.Array(command.size() - 2);
    for (size_t i = 2; i < command.size(); ++i) {
      const CommandSpec* const spec = FindCommand(command[i]);
      spec != nullptr&& shown(*spec) ? WriteSpec(*spec, reply) : reply.Null();
    }
    return true;
  }
  if (EqualsIgnoringCase(sub, "count")) {
    if (command.size() != 2) return WrongCount(reply, "command", "count");
    reply.Integer(static_cast<int64_t>(count));
    return true;
  }
  // Documentation is optional for each command, and clients use it for hints alone.
  if (EqualsIgnoringCase(sub, "docs")) {
    reply.Map(0);
    return true;
  }
  if (EqualsIgnoringCase(sub, "help")) return Help(reply, {"COMMAND [COUNT | DOCS [name …] | INFO [name …]]"});
  return UnknownSubcommand(reply, "COMMAND", sub);
}

bool ConnectionVerbs::Config(const RespParser& command, RespWriter& reply) const {
  const std::string_view sub = command[1];
  if (EqualsIgnoringCase(sub, "set")) {
    return Refuse(reply,
                  "ERR CONFIG SET is not supported: settings come from the server's configuration file, flags and "
                  "environment");
  }
  if (EqualsIgnoringCase(sub, "help")) return Help(reply, {"CONFIG GET pattern [pattern …]"});
  if (!EqualsIgnoringCase(sub, "get")) return UnknownSubcommand(reply, "CONFIG", sub);
  if (command.size() < 3) return WrongCount(reply, "config", "get");
  const auto asked_for = [&](const Setting& setting) {
    for (size_t i = 2; i < command.size(); ++i) {
      if (Matches(setting.name, command[i])) return true;
    }
    return false;
  };
  reply.Map(static_cast<size_t>(std::count_if(kSettings.begin(), kSettings.end(), asked_for)));
  for (const Setting& setting : kSettings) {
    if (!asked_for(setting)) continue;
    reply.Bulk(setting.name);
    reply.Bulk(setting.value);
  }
  return true;
}

bool ConnectionVerbs::Info(const RespParser& command, RespWriter& reply) const {
  const std::string server = fmt::format(
      "# Server\r\nredis_version:{}\r\nheadgate_version:{}\r\nredis_mode:standalone\r\n", kRedisVersion, version_);
  const Setting sections[] = {
      {"server", server},
      {"persistence", "# Persistence\r\nloading:0\r\n"},
      {"replication", "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"},
  };
  const auto asked_for = [&](std::string_view section) {
    if (command.size() == 1) return true;
    for (size_t i = 1; i < command.size(); ++i) {
      for (const std::string_view name :
           {section, std::string_view("all"), std::string_view("default"), std::string_view("everything")}) {
        if (EqualsIgnoringCase(command[i], name)) return true;
      }
    }
    return false;
  };
  std::string text;
  for (const auto& [name, lines] : sections) {
    if (!asked_for(name)) continue;
    if (!text.empty()) text += "\r\n";
    text += lines;
  }
  reply.Verbatim("txt", text);
  return true;
}

bool ConnectionVerbs::Time(RespWriter& reply, base::Instant now) const {
  reply.Array(2);
  reply.Bulk(fmt::format("{}", now.ns / 1'000'000'000));
  reply.Bulk(fmt::format("{}", now.ns / 1'000 % 1'000'000));
  return true;
}

}  // namespace headgate::front::resp

#include "headgate/front/resp/client_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "headgate/base/text.h"
#include "headgate/front/resp/commands.h"
#include "headgate/front/resp/verb_replies.h"
#include "headgate/wire/resp_number.h"

namespace headgate::front::resp {
namespace {

using wire::RespParser;
using wire::RespWriter;

constexpr size_t kClientNameMax = 256;

bool SetInfo(const RespParser& command, ClientState& client, RespWriter& reply) {
  if (command.size() != 4) return WrongCount(reply, "client", "setinfo");
  const bool name = base::EqualsIgnoreCase(command[2], "lib-name");
  if (!name && !base::EqualsIgnoreCase(command[2], "lib-ver")) {
    return Refuse(reply,
                  fmt::format("ERR Unrecognized option '{}'", command[2].substr(0, kEchoedMax)));
  }
  if (!IsClientName(command[3])) {
    return Refuse(
        reply,
        fmt::format("ERR {} cannot contain spaces, newlines or special characters.", command[2]));
  }
  (name ? client.library_name : client.library_version) = command[3];
  return Accept(reply);
}

bool SetName(const RespParser& command, ClientState& client, RespWriter& reply) {
  if (command.size() != 3) return WrongCount(reply, "client", "setname");
  if (!IsClientName(command[2])) return Refuse(reply, kBadClientName);
  client.name = command[2];
  return Accept(reply);
}

// CLIENT LIST [TYPE normal|master|replica|slave|pubsub] [ID id …]
bool List(const RespParser& command, const ClientList& clients, RespWriter& reply,
          base::Instant now) {
  std::vector<uint64_t> ids;
  bool normal = true;
  for (size_t i = 2; i < command.size();) {
    if (base::EqualsIgnoreCase(command[i], "type") && i + 1 < command.size()) {
      const std::string_view type = command[i + 1];
      normal = base::EqualsIgnoreCase(type, "normal");
      const auto names = {"master", "replica", "slave", "pubsub"};
      if (!normal && std::none_of(names.begin(), names.end(),
                                  [&](auto n) { return base::EqualsIgnoreCase(type, n); })) {
        return Refuse(reply,
                      fmt::format("ERR Unknown client type '{}'", type.substr(0, kEchoedMax)));
      }
      i += 2;
    } else if (base::EqualsIgnoreCase(command[i], "id") && i + 1 < command.size()) {
      for (++i; i < command.size(); ++i) {
        const std::optional<int64_t> id = wire::RespNumber(command[i]);
        if (!id || *id < 1) return Refuse(reply, "ERR Invalid client ID");
        ids.push_back(static_cast<uint64_t>(*id));
      }
    } else {
      return Refuse(reply, "ERR syntax error");
    }
  }
  reply.Verbatim("txt", normal ? clients.Lines(ids, now) : std::string());
  return true;
}

// Headgate serves nothing that a client may cache, so it never has to send an invalidation.
// Accepting the command is therefore correct.
bool Tracking(const RespParser& command, ClientState& client, RespWriter& reply) {
  if (command.size() < 3) return WrongCount(reply, "client", "tracking");
  const bool on = base::EqualsIgnoreCase(command[2], "on");
  if (!on && !base::EqualsIgnoreCase(command[2], "off")) return Refuse(reply, "ERR syntax error");
  for (size_t i = 3; i < command.size(); ++i) {
    const auto is = [&](std::string_view option) {
      return base::EqualsIgnoreCase(command[i], option);
    };
    if (is("bcast") || is("optin") || is("optout") || is("noloop")) continue;
    if ((is("redirect") || is("prefix")) && i + 1 < command.size()) {
      ++i;
      continue;
    }
    return Refuse(reply, "ERR syntax error");
  }
  client.tracking = on;
  return Accept(reply);
}

bool TrackingInfo(const ClientState& client, RespWriter& reply) {
  reply.Map(3);
  reply.Bulk("flags");
  reply.Array(1);
  reply.Bulk(client.tracking ? "on" : "off");
  reply.Bulk("redirect");
  reply.Integer(client.tracking ? 0 : -1);
  reply.Bulk("prefixes");
  reply.Array(0);
  return true;
}

}  // namespace

bool IsClientName(std::string_view name) {
  return name.size() <= kClientNameMax &&
         std::all_of(name.begin(), name.end(), [](char c) { return c >= '!' && c <= '~'; });
}

bool RevealsClients(std::string_view subcommand) {
  return base::EqualsIgnoreCase(subcommand, "list");
}

bool AnswerClient(const RespParser& command, const Caller& caller, RespWriter& reply,
                  base::Instant now) {
  const std::string_view sub = command[1];
  ClientState& client = caller.state;
  const auto is = [sub](std::string_view name) { return base::EqualsIgnoreCase(sub, name); };
  if (is("setinfo")) return SetInfo(command, client, reply);
  if (is("setname")) return SetName(command, client, reply);
  if (is("list")) return List(command, caller.clients, reply, now);
  if (is("tracking")) return Tracking(command, client, reply);
  if (is("caching")) {
    if (command.size() != 3) return WrongCount(reply, "client", "caching");
    return base::EqualsIgnoreCase(command[2], "yes") || base::EqualsIgnoreCase(command[2], "no")
               ? Accept(reply)
               : Refuse(reply, "ERR syntax error");
  }
  // Nothing is evicted or touched on behalf of a client, so both flags hold in any case.
  for (const std::string_view flag : {"no-evict", "no-touch"}) {
    if (!is(flag)) continue;
    if (command.size() != 3) return WrongCount(reply, "client", flag);
    const bool known =
        base::EqualsIgnoreCase(command[2], "on") || base::EqualsIgnoreCase(command[2], "off");
    return known ? Accept(reply) : Refuse(reply, "ERR syntax error");
  }
  for (const std::string_view plain : {"getname", "id", "info", "trackinginfo", "getredir"}) {
    if (is(plain) && command.size() != 2) return WrongCount(reply, "client", plain);
  }
  if (is("getname")) {
    client.name.empty() ? reply.Null() : reply.Bulk(client.name);
  } else if (is("id")) {
    reply.Integer(static_cast<int64_t>(client.id));
  } else if (is("info")) {
    reply.Verbatim("txt", caller.registration.Line(now) + "\n");
  } else if (is("trackinginfo")) {
    return TrackingInfo(client, reply);
  } else if (is("getredir")) {
    reply.Integer(client.tracking ? 0 : -1);
  } else if (is("help")) {
    return Help(reply,
                {"CLIENT GETNAME | SETNAME name | SETINFO LIB-NAME|LIB-VER text | ID | INFO",
                 "CLIENT LIST [TYPE type] [ID id …]", "CLIENT NO-EVICT ON|OFF | NO-TOUCH ON|OFF",
                 "CLIENT TRACKING ON|OFF … | TRACKINGINFO | GETREDIR | CACHING YES|NO"});
  } else {
    return UnknownSubcommand(reply, "CLIENT", sub);
  }
  return true;
}

}  // namespace headgate::front::resp

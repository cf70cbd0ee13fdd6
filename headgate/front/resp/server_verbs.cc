#include "headgate/front/resp/server_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "headgate/base/text.h"
#include "headgate/base/time_of_day.h"
#include "headgate/front/resp/command_docs.h"
#include "headgate/front/resp/commands.h"
#include "headgate/front/resp/verb_replies.h"

namespace headgate::front::resp {
namespace {

using wire::RespParser;
using wire::RespWriter;

struct Setting {
  std::string_view name;
  std::string_view value;
};
// The settings that clients and load tools ask for, with truthful answers: no command writes to
// disk, and no Redis policy evicts anything.
constexpr std::array kSettings{
    Setting{"save", ""},
    Setting{"appendonly", "no"},
    Setting{"databases", "1"},
    Setting{"maxmemory", "0"},
    Setting{"maxmemory-policy", "noeviction"},
};

// Supports only the kind of Redis pattern that clients use: a `*` at the end.
bool Matches(std::string_view name, std::string_view pattern) {
  if (!pattern.ends_with('*')) return base::EqualsIgnoreCase(pattern, name);
  pattern.remove_suffix(1);
  return base::EqualsIgnoreCase(pattern, name.substr(0, pattern.size()));
}

void WriteSpec(const CommandSpec& spec, RespWriter& reply) {
  reply.Array(6);
  reply.Bulk(spec.name);
  reply.Integer(spec.arity);
  reply.Array(2);
  reply.Simple(spec.verb <= Verb::kHgReset ? "write" : "loading");
  reply.Simple("fast");
  for (const int key : {spec.first_key, spec.last_key, spec.key_step}) reply.Integer(key);
}

std::string Uptime(base::Duration uptime) {
  return fmt::format("uptime_in_seconds:{}\r\nuptime_in_days:{}\r\n",
                     std::chrono::floor<std::chrono::seconds>(uptime).count(),
                     std::chrono::floor<std::chrono::days>(uptime).count());
}

}  // namespace

bool ServerVerbs::Info(const RespParser& command, bool may_use_state, RespWriter& reply) const {
  const auto asked_for = [&](std::string_view section) {
    if (command.size() == 1) return true;
    for (size_t i = 1; i < command.size(); ++i) {
      for (const std::string_view name :
           {section, std::string_view("all"), std::string_view("default"),
            std::string_view("everything")}) {
        if (base::EqualsIgnoreCase(command[i], name)) return true;
      }
    }
    return false;
  };
  std::string text;
  const auto add = [&](std::string_view section, std::string lines) {
    if (!asked_for(section)) return;
    if (!text.empty()) text += "\r\n";
    text += lines;
  };
  const ServerFigures figures = may_use_state ? Figures() : ServerFigures{};
  add("server",
      fmt::format(
          "# Server\r\nredis_version:{}\r\nheadgate_version:{}\r\nredis_mode:standalone\r\n{}",
          kRedisVersion, version_, may_use_state ? Uptime(figures.uptime) : ""));
  if (may_use_state) {
    add("clients",
        fmt::format("# Clients\r\nconnected_clients:{}\r\nmaxclients:{}\r\nblocked_clients:0\r\n",
                    figures.connections_open, figures.connections_max));
    add("memory",
        fmt::format("# Memory\r\nused_memory:{0}\r\nused_memory_rss:{0}\r\nmaxmemory:0\r\n",
                    figures.memory_bytes));
  }
  add("persistence",
      "# Persistence\r\nloading:0\r\nrdb_bgsave_in_progress:0\r\naof_rewrite_in_progress:0\r\n");
  if (may_use_state) {
    add("stats",
        fmt::format("# Stats\r\ntotal_connections_received:{}\r\ntotal_commands_processed:{}\r\n"
                    "rejected_connections:{}\r\n",
                    figures.connections_accepted, figures.commands, figures.connections_refused));
  }
  add("replication", "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n");
  if (may_use_state) {
    // Like Redis, omit an empty database.
    add("keyspace",
        figures.buckets == 0
            ? "# Keyspace\r\n"
            : fmt::format("# Keyspace\r\ndb0:keys={0},expires={0},avg_ttl=0\r\n", figures.buckets));
  }
  reply.Verbatim("txt", text);
  return true;
}

bool ServerVerbs::Command(const RespParser& command, RespWriter& reply) const {
  const auto shown = [](const CommandSpec& spec) { return !spec.hidden; };
  const std::span<const CommandSpec> all = Commands();
  const auto count = static_cast<size_t>(std::count_if(all.begin(), all.end(), shown));
  const std::string_view sub = command.size() > 1 ? command[1] : std::string_view();
  if (command.size() == 1 || (base::EqualsIgnoreCase(sub, "info") && command.size() == 2)) {
    reply.Array(count);
    for (const CommandSpec& spec : all) {
      if (shown(spec)) WriteSpec(spec, reply);
    }
    return true;
  }
  if (base::EqualsIgnoreCase(sub, "info")) {
    reply.Array(command.size() - 2);
    for (size_t i = 2; i < command.size(); ++i) {
      const CommandSpec* const spec = FindCommand(command[i]);
      spec != nullptr&& shown(*spec) ? WriteSpec(*spec, reply) : reply.Null();
    }
    return true;
  }
  if (base::EqualsIgnoreCase(sub, "count")) {
    if (command.size() != 2) return WrongCount(reply, "command", "count");
    reply.Integer(static_cast<int64_t>(count));
    return true;
  }
  if (base::EqualsIgnoreCase(sub, "docs")) {
    const auto asked_for = [&](const CommandSpec& spec) {
      if (spec.hidden) return false;
      if (command.size() == 2) return true;
      for (size_t i = 2; i < command.size(); ++i) {
        if (base::EqualsIgnoreCase(command[i], spec.name)) return true;
      }
      return false;
    };
    reply.Map(static_cast<size_t>(std::count_if(all.begin(), all.end(), asked_for)));
    for (const CommandSpec& spec : all) {
      if (!asked_for(spec)) continue;
      reply.Bulk(spec.name);
      WriteDocs(spec, reply);
    }
    return true;
  }
  if (base::EqualsIgnoreCase(sub, "help"))
    return Help(reply, {"COMMAND [COUNT | DOCS [name …] | INFO [name …]]"});
  return UnknownSubcommand(reply, "COMMAND", sub);
}

bool ServerVerbs::Config(const RespParser& command, RespWriter& reply) const {
  const std::string_view sub = command[1];
  if (base::EqualsIgnoreCase(sub, "set")) {
    return Refuse(reply,
                  "ERR CONFIG SET is not supported: settings come from the server's configuration "
                  "file, flags and "
                  "environment");
  }
  if (base::EqualsIgnoreCase(sub, "help")) return Help(reply, {"CONFIG GET pattern [pattern …]"});
  if (!base::EqualsIgnoreCase(sub, "get")) return UnknownSubcommand(reply, "CONFIG", sub);
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

bool ServerVerbs::Time(RespWriter& reply, base::Instant now) const {
  const base::WallTime time = base::TimeOfDay(clock_, now);
  reply.Array(2);
  reply.Bulk(fmt::format("{}", time.ns / 1'000'000'000));
  reply.Bulk(fmt::format("{}", time.ns / 1'000 % 1'000'000));
  return true;
}

bool ServerVerbs::DbSize(RespWriter& reply) const {
  reply.Integer(static_cast<int64_t>(Figures().buckets));
  return true;
}

// Reports a primary at the beginning of its history, without replicas.
bool ServerVerbs::Role(RespWriter& reply) const {
  reply.Array(3);
  reply.Bulk("master");
  reply.Integer(0);
  reply.Array(0);
  return true;
}

}  // namespace headgate::front::resp

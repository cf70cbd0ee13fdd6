#include "tests/redis/keyspace.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace headgate::redis_host {
namespace {

using base::Instant;
using wire::RespValue;

RespValue Integer(int64_t number) {
  return {.kind = RespValue::Kind::kInteger, .integer = number, .text = {}, .items = {}};
}
RespValue Simple(std::string text) {
  return {.kind = RespValue::Kind::kSimple, .integer = 0, .text = std::move(text), .items = {}};
}
RespValue Error(std::string text) {
  return {.kind = RespValue::Kind::kError, .integer = 0, .text = std::move(text), .items = {}};
}
RespValue WrongType() {
  return Error("WRONGTYPE Operation against a key holding the wrong kind of value");
}

int64_t MillisOf(Instant now) { return now.ns / 1'000'000; }

std::optional<int64_t> NumberOf(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Keyspace::Entry* Keyspace::Find(const std::string& key, Instant now) {
  const auto it = entries_.find(key);
  if (it == entries_.end()) return nullptr;
  if (it->second.expires_at_ms && *it->second.expires_at_ms <= MillisOf(now)) {
    entries_.erase(it);
    return nullptr;
  }
  return &it->second;
}

bool Keyspace::Contains(const std::string& key, Instant now) { return Find(key, now) != nullptr; }

std::optional<base::Duration> Keyspace::TimeToLive(const std::string& key, Instant now) {
  const Entry* entry = Find(key, now);
  if (entry == nullptr || !entry->expires_at_ms) return std::nullopt;
  return std::chrono::milliseconds(*entry->expires_at_ms - MillisOf(now));
}

RespValue Keyspace::Run(std::span<const std::string> command, Instant now) {
  const std::string& name = command[0];
  if (name == refused_)
    return Error("ERR The user executing the script can't run this command or subcommand");
  if (name == "TIME") {
    RespValue reply{.kind = RespValue::Kind::kArray, .integer = 0, .text = {}, .items = {}};
    reply.items.push_back(Bulk(std::to_string(now.ns / 1'000'000'000)));
    reply.items.push_back(Bulk(std::to_string(now.ns % 1'000'000'000 / 1000)));
    return reply;
  }
  if (command.size() < 2) return Error("ERR wrong number of arguments");
  const std::string& key = command[1];
  Entry* entry = Find(key, now);
  if (name == "GET") {
    if (entry == nullptr) return {};
    const auto* text = std::get_if<std::string>(&entry->value);
    return text != nullptr ? Bulk(*text) : WrongType();
  }
  if (name == "SET") {
    Entry set{.value = command[2]};
    if (command.size() == 5 && command[3] == "PX") {
      const auto ms = NumberOf(command[4]);
      if (!ms) return Error("ERR value is not an integer or out of range");
      if (*ms <= 0) return Error("ERR invalid expire time in 'set' command");
      set.expires_at_ms = MillisOf(now) + *ms;
    } else if (command.size() == 4 && command[3] == "KEEPTTL" && !without_keepttl) {
      if (entry != nullptr) set.expires_at_ms = entry->expires_at_ms;
    } else if (command.size() != 3) {
      return Error("ERR syntax error");
    }
    entries_.insert_or_assign(key, std::move(set));
    return Simple("OK");
  }
  if (name == "HSET") {
    if (entry != nullptr && !std::holds_alternative<Hash>(entry->value)) return WrongType();
    entries_.insert_or_assign(key, Entry{.value = Hash{}});
    return Integer(1);
  }
  if (name == "DEL") {
    if (entry == nullptr) return Integer(0);
    entries_.erase(key);
    return Integer(1);
  }
  if (name == "PTTL") {
    if (entry == nullptr) return Integer(-2);
    return Integer(entry->expires_at_ms ? *entry->expires_at_ms - MillisOf(now) : -1);
  }
  if (name == "PEXPIRE") {
    const auto ms = NumberOf(command[2]);
    if (!ms) return Error("ERR value is not an integer or out of range");
    if (entry == nullptr) return Integer(0);
    entry->expires_at_ms = MillisOf(now) + *ms;
    return Integer(1);
  }
  return RunList(command, now);
}

RespValue Keyspace::RunList(std::span<const std::string> command, Instant now) {
  const std::string& name = command[0];
  const std::string& key = command[1];
  Entry* entry = Find(key, now);
  auto* list = entry != nullptr ? std::get_if<List>(&entry->value) : nullptr;
  if (entry != nullptr && list == nullptr) return WrongType();
  const auto argument = [&](size_t i) { return NumberOf(command[i]); };
  const auto size = list != nullptr ? static_cast<int64_t>(list->size()) : 0;
  const auto from_end = [&](int64_t i) { return i < 0 ? i + size : i; };

  if (name == "RPUSH" || name == "LPUSH") {
    if (list == nullptr)
      list = &std::get<List>(
          entries_.insert_or_assign(key, Entry{.value = List{}}).first->second.value);
    for (size_t i = 2; i < command.size(); ++i) {
      if (name == "RPUSH") list->push_back(command[i]);
      if (name == "LPUSH") list->push_front(command[i]);
    }
    return Integer(static_cast<int64_t>(list->size()));
  }
  if (name == "LLEN") return Integer(size);
  if (name == "LINDEX" || name == "LSET") {
    const auto index = argument(2);
    if (!index) return Error("ERR value is not an integer or out of range");
    const int64_t at = from_end(*index);
    const bool inside = at >= 0 && at < size;
    if (name == "LINDEX") return inside ? Bulk((*list)[static_cast<size_t>(at)]) : RespValue{};
    if (!inside) return Error(list == nullptr ? "ERR no such key" : "ERR index out of range");
    (*list)[static_cast<size_t>(at)] = command[3];
    return Simple("OK");
  }
  if (name == "LRANGE" || name == "LTRIM") {
    const auto first = argument(2);
    const auto last = argument(3);
    if (!first || !last) return Error("ERR value is not an integer or out of range");
    const int64_t begin = std::max<int64_t>(0, from_end(*first));
    const int64_t end = std::min(size, from_end(*last) + 1);
    RespValue reply{.kind = RespValue::Kind::kArray, .integer = 0, .text = {}, .items = {}};
    List kept;
    for (int64_t i = begin; i < end; ++i) {
      if (name == "LRANGE") reply.items.push_back(Bulk((*list)[static_cast<size_t>(i)]));
      if (name == "LTRIM") kept.push_back(std::move((*list)[static_cast<size_t>(i)]));
    }
    if (name == "LRANGE") return reply;
    if (kept.empty()) {
      entries_.erase(key);
    } else {
      *list = std::move(kept);
    }
    return Simple("OK");
  }
  if (name == "RPOP") {
    if (list == nullptr) return {};
    RespValue last = Bulk(std::move(list->back()));
    list->pop_back();
    if (list->empty()) entries_.erase(key);
    return last;
  }
  return Error(fmt::format("ERR unknown command '{}'", name));
}

}  // namespace headgate::redis_host

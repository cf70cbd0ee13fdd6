// The data of a Redis server in the form that scripts can see: strings and lists under keys, each
// with a TTL.
//
// A value type: a copy acts as a replica, and restoring an older copy simulates lost writes. It
// reads no clock; each call takes the server's time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "headgate/base/time.h"
#include "headgate/wire/resp_reader.h"

namespace headgate::redis_host {

inline wire::RespValue Bulk(std::string text) {
  return {.kind = wire::RespValue::Kind::kBulk, .integer = 0, .text = std::move(text), .items = {}};
}

class Keyspace {
 public:
  // Executes a command as a server does. Errors are replies.
  wire::RespValue Run(std::span<const std::string> command, base::Instant now);

  // From now on the command fails as for a user without the right to it. Empty: every command
  // works.
  void Refuse(std::string command) { refused_ = std::move(command); }

  // Whether SET refuses KEEPTTL, as before Redis 6.
  bool without_keepttl = false;

  bool Contains(const std::string& key, base::Instant now);
  // Empty if the key does not exist or has no TTL.
  std::optional<base::Duration> TimeToLive(const std::string& key, base::Instant now);
  size_t size() const { return entries_.size(); }
  void Clear() { entries_.clear(); }

 private:
  using List = std::deque<std::string>;
  struct Hash {};  // only its presence matters
  struct Entry {
    std::variant<std::string, List, Hash> value;
    std::optional<int64_t> expires_at_ms{};
  };

  // Null if the key does not exist or has expired.
  Entry* Find(const std::string& key, base::Instant now);
  wire::RespValue RunList(std::span<const std::string> command, base::Instant now);

  std::map<std::string, Entry, std::less<>> entries_;
  std::string refused_;
};

}  // namespace headgate::redis_host

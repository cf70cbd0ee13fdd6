// What a Redis server holds, as far as the scripts can tell: strings and lists under keys, each
// with a time to live.
//
// A value: a copy is a replica as of now, and a lost write is a copy from before. It reads no
// clock; every call is given the server's time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "headgate/base/time.h"
#include "headgate/wire/resp_reader.h"

namespace headgate::redis_host {

class Keyspace {
 public:
  // A command and its arguments, as a server answers them. Errors are replies.
  wire::RespValue Run(std::span<const std::string> command, base::Instant now);

  // From now on the command is answered as for a user without the right to it. Empty: every command
  // is run.
  void Refuse(std::string command) { refused_ = std::move(command); }

  bool Contains(const std::string& key, base::Instant now);
  // Nothing where the key is absent or has no end.
  std::optional<base::Duration> TimeToLive(const std::string& key, base::Instant now);
  size_t size() const { return entries_.size(); }
  void Clear() { entries_.clear(); }

 private:
  using List = std::deque<std::string>;
  struct Hash {};  // that there is one is all that matters
  struct Entry {
    std::variant<std::string, List, Hash> value;
    std::optional<int64_t> expires_at_ms{};
  };

  // Null where there is none, or it has expired.
  Entry* Find(const std::string& key, base::Instant now);
  wire::RespValue RunList(std::span<const std::string> command, base::Instant now);

  std::map<std::string, Entry, std::less<>> entries_;
  std::string refused_;
};

}  // namespace headgate::redis_host

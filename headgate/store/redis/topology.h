// Which server a key's calls go to, and how that is found out. Pure: keys, answers, errors and the
// time come in; servers and questions go out. The client holds the connections.
//
// A server is named by its index in servers(), which it keeps until the client has nothing more to
// do with it and says so (Forget): then its place is another's. There are at most kServersMax; who
// would be one more is not found.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/net/stream.h"
#include "headgate/store/redis/options.h"
#include "headgate/wire/resp_reader.h"

namespace headgate::store::redis {

class Topology {
 public:
  static constexpr size_t kServersMax = 1024;

  // Something to ask, so as to know more.
  struct Query {
    uint32_t server = 0;
    std::vector<std::string> words;  // of the command
  };

  virtual ~Topology() = default;

  // Where the key is now, as far as is known; nothing: ask again after a Query has been
  // answered.
  virtual std::optional<uint32_t> Find(std::string_view key) const = 0;
  // Whether the server has keys now, and so should be connected.
  virtual bool InUse(uint32_t server) const = 0;

  // An error said where a key is. Nothing where it cannot be read. `remember`: for all keys of the
  // slot.
  virtual std::optional<uint32_t> OnRedirect(std::string_view /*error*/, uint32_t /*from*/,
                                             bool /*remember*/) {
    return std::nullopt;
  }
  // Something went wrong that a change of the topology would explain.
  virtual void OnSuspicion(base::BootTime /*now*/) {}

  // What to ask now, if anything. One query at a time: answered by OnAnswer or OnNoAnswer.
  virtual std::optional<Query> Ask(base::BootTime /*now*/) { return std::nullopt; }
  // True where something has changed.
  virtual bool OnAnswer(const wire::RespValue& /*answer*/, base::BootTime /*now*/) { return false; }
  virtual void OnNoAnswer(base::BootTime /*now*/) {}
  // What was wrong with the last answer, for people; empty: nothing was.
  const std::string& problem() const { return problem_; }
  // When to call Ask at latest.
  virtual base::BootTime wake_at() const { return base::BootTime{INT64_MAX}; }
  // Whether a server is one to ask, and has no keys at all: a sentinel.
  virtual bool IsGuide(uint32_t /*server*/) const { return false; }

  const std::vector<net::StreamTarget>& servers() const { return servers_; }
  // True where the server was forgotten: it has no keys, and is none that was configured.
  bool Forget(uint32_t server);

 protected:
  explicit Topology(std::vector<net::StreamTarget> servers)
      : configured_count_(servers.size()), servers_(std::move(servers)) {}
  // The index of a server, a new one where need be; nothing where there are too many.
  std::optional<uint32_t> IndexOf(const net::StreamTarget& server);

  std::string problem_;

 private:
  const size_t configured_count_;
  std::vector<net::StreamTarget> servers_;
  std::vector<uint32_t> free_;  // places in servers_
};

std::unique_ptr<Topology> MakeTopology(const RedisOptions& options, uint64_t seed);

}  // namespace headgate::store::redis

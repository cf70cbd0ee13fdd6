// Finds the server that the calls of a key go to. Pure: keys, answers, errors and the time come in;
// servers and queries go out. The client holds the connections.
//
// A server is named by its index in servers(). It keeps the index until the client calls Forget;
// then another server may get it. There are at most kServersMax servers; further ones are not
// found.
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

  // A command to send to a server in order to learn the topology.
  struct Query {
    uint32_t server = 0;
    std::vector<std::string> words;  // of the command
  };

  virtual ~Topology() = default;

  // The server of the key; nullopt: not known yet, so try again after a Query has been answered.
  virtual std::optional<uint32_t> Find(std::string_view key) const = 0;
  // Whether the server has keys now, so that it should be connected.
  virtual bool InUse(uint32_t server) const = 0;

  // An error (MOVED, ASK) has named the server of a key. nullopt if the error cannot be read.
  // `remember`: the answer holds for all keys of the slot.
  virtual std::optional<uint32_t> OnRedirect(std::string_view /*error*/, uint32_t /*from*/,
                                             bool /*remember*/) {
    return std::nullopt;
  }
  // A failure has happened that a change of the topology would explain.
  virtual void OnSuspicion(base::BootTime /*now*/) {}

  // The query to send now, if any. One query at a time; OnAnswer or OnNoAnswer ends it.
  virtual std::optional<Query> Ask(base::BootTime /*now*/) { return std::nullopt; }
  // True if something has changed.
  virtual bool OnAnswer(const wire::RespValue& /*answer*/, base::BootTime /*now*/) { return false; }
  virtual void OnNoAnswer(base::BootTime /*now*/) {}
  // Describes what was wrong with the last answer; empty if nothing was.
  const std::string& problem() const { return problem_; }
  // The latest time to call Ask.
  virtual base::BootTime wake_at() const { return base::BootTime{INT64_MAX}; }
  // Whether the server is a sentinel: it is only asked, and has no keys.
  virtual bool IsSentinel(uint32_t /*server*/) const { return false; }

  const std::vector<net::StreamTarget>& servers() const { return servers_; }
  // True if the server was forgotten: it has no keys and was not configured.
  bool Forget(uint32_t server);

 protected:
  explicit Topology(std::vector<net::StreamTarget> servers)
      : configured_count_(servers.size()), servers_(std::move(servers)) {}
  // The index of a server, a new one if necessary; nullopt if there are too many servers.
  std::optional<uint32_t> IndexOf(const net::StreamTarget& server);

  std::string problem_;

 private:
  const size_t configured_count_;
  std::vector<net::StreamTarget> servers_;
  std::vector<uint32_t> free_;  // unused indices of servers_
};

std::unique_ptr<Topology> MakeTopology(const RedisOptions& options, uint64_t seed);

}  // namespace headgate::store::redis

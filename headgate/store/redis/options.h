// How to reach a Redis or Valkey store, and how long to wait for it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/time.h"
#include "headgate/net/stream.h"
#include "headgate/store/breaker.h"

namespace headgate::store::redis {

enum class TopologyKind : uint8_t {
  kSingle,    // one server, or an address behind which one primary stands
  kRing,      // independent servers; each key has one, by consistent hashing
  kCluster,   // Redis Cluster; the servers are where to begin asking
  kSentinel,  // the servers are sentinels
};

struct RedisOptions {
  TopologyKind topology = TopologyKind::kSingle;
  std::vector<net::StreamTarget> servers{};
  std::string user{};      // empty: the server's default user
  std::string password{};  // empty: none is sent
  uint32_t database = 0;
  std::string master_name{};  // Sentinel: of which master
  // Sentinel: how to log in to the sentinels themselves, which know nothing of the servers' users.
  std::string sentinel_user{};      // empty: their default user
  std::string sentinel_password{};  // empty: none is sent

  // How our connections are called in CLIENT LIST.
  std::string client_name = "headgate";

  bool tls = false;
  net::TlsOptions tls_files{};
  // Whom certificates must name; empty: the host that is connected to. Set it where servers are
  // known by address only.
  std::string tls_server_name{};

  // Within which a call is answered or given up, where the caller says nothing else. Raise it for a
  // store far away.
  base::Duration timeout = std::chrono::milliseconds(10);
  // Within which a connection is there and has said hello. Raise it for a store far away, or for
  // TLS on slow machines.
  base::Duration connect_timeout = std::chrono::milliseconds(50);
  // A connection whose oldest reply is so late is given up. Raise it where the store stalls and
  // should not be left.
  base::Duration reply_overdue = std::chrono::seconds(1);
  // Connections per server and event loop. Raise it where one connection's bandwidth does not do.
  uint32_t connections_per_server = 1;
  // Calls that a connection has sent and not heard of, at most: it sends as many as are answered in
  // time (store/call_window.h). Raise it with the latency.
  uint32_t in_flight_max = 1024;
  // Calls that wait for a connection, or for room on it; beyond it calls are refused.
  uint32_t waiting_max = 4096;
  // Between attempts to connect: at first, and at most; it doubles in between, with jitter.
  base::Duration reconnect_min = std::chrono::milliseconds(50);
  base::Duration reconnect_max = std::chrono::seconds(2);
  BreakerOptions breaker{};
  // The longest life of a lease, the same for the whole fleet: for so long a shard whose history
  // broke is learning.
  base::Duration lease_ttl = std::chrono::seconds(2);
  // Second attempts of calls that were certainly not done, in per cent of the calls.
  uint32_t retry_percent = 10;
  // Refuse a store whose eviction policy may drop live limits. Otherwise it is only warned of.
  bool strict_store = false;

  struct Problem {
    std::string_view field;  // what of the above it is about
    std::string what;        // a sentence
  };
  // Everything that is wrong.
  std::vector<Problem> Problems() const;
  // The same, each in its sentence.
  std::vector<std::string> Validate() const;
};

}  // namespace headgate::store::redis

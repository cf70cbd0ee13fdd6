// How to reach a Redis or Valkey store, and how long to wait for it. Options that all stores have
// are explained, with their defaults, in store/backend_options.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/secret.h"
#include "headgate/base/time.h"
#include "headgate/net/stream.h"
#include "headgate/store/backend_options.h"
#include "headgate/store/shared_store.h"

namespace headgate::store::redis {

enum class TopologyKind : uint8_t {
  kSingle,    // one server, or one address for a primary
  kRing,      // independent servers; each key has one, by consistent hashing
  kCluster,   // Redis Cluster; the servers are the first to ask for the topology
  kSentinel,  // the servers are sentinels
};

struct RedisOptions {
  TopologyKind topology = TopologyKind::kSingle;
  std::vector<net::StreamTarget> servers{};
  std::string user{};       // empty: the server's default user
  base::Secret password{};  // empty: none is sent
  uint32_t database = 0;
  std::string master_name{};  // Sentinel: the name of the master
  // Sentinel: the login for the sentinels themselves, which do not know the servers' users.
  std::string sentinel_user{};       // empty: their default user
  base::Secret sentinel_password{};  // empty: none is sent

  // The name of our connections in CLIENT LIST.
  std::string client_name = "headgate";

  bool tls = false;
  net::TlsOptions tls_files{};
  // The name that certificates must carry; empty: the host that is connected to. Set it if servers
  // are known by address only.
  std::string tls_server_name{};

  base::Duration timeout =
      CallOptions{}.timeout;  // the default of calls without a timeout of their own
  base::Duration silence_max = CallOptions{}.silence_max;
  base::Duration wait_max = CallOptions{}.wait_max;
  base::Duration connect_timeout = CallOptions{}.connect_timeout;
  // A connection is given up when its oldest reply is this late. Raise it if the store stalls and
  // should not be abandoned.
  base::Duration reply_overdue = std::chrono::seconds(1);
  uint32_t connections_per_server = CallOptions{}.connections_per_server;
  uint32_t in_flight_max = CallOptions{}.in_flight_max;
  // The most calls that wait for a connection, or for room on one; more are refused.
  uint32_t waiting_max = 4096;
  // The backoff between attempts to connect doubles from min to max, with jitter.
  base::Duration reconnect_min = std::chrono::milliseconds(50);
  base::Duration reconnect_max = std::chrono::seconds(2);
  BreakerOptions breaker{};
  // The life of a lease that is not tiny. A shard whose history broke learns for this long.
  base::Duration lease_ttl = kLeaseTtl;
  uint32_t retry_percent = CallOptions{}.retry_percent;
  // Refuse a store whose eviction policy may drop live limits, instead of only reporting it.
  bool strict_store = false;

  // Everything that is wrong, by the option that it comes from. Reads no files.
  std::vector<OptionProblem> Problems() const;
};

}  // namespace headgate::store::redis

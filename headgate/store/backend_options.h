// The options of a shared store, whichever it is, with their only defaults. An adapter reads the
// rest from the URL.
#pragma once

#include <cstdint>
#include <string>

#include "headgate/base/time.h"
#include "headgate/store/breaker.h"

namespace headgate::store {

// How calls travel, and how long they may take.
struct CallOptions {
  // A call is answered or given up within this time. Raise it for a store far away.
  base::Duration timeout = std::chrono::milliseconds(10);
  // A connection is established, with its handshake, within this time. Raise it for a store far
  // away, or for TLS on slow machines.
  base::Duration connect_timeout = std::chrono::milliseconds(50);
  // Connections per server and event loop. Raise it when the bandwidth of one connection is too
  // low.
  uint32_t connections_per_server = 1;
  // The most calls that a connection has sent and not heard of. A connection sends as many as are
  // answered in time (store/call_window.h). Raise it with the latency.
  uint32_t in_flight_max = 1024;
  // Second attempts of calls that were certainly not done, in per cent of the calls.
  uint32_t retry_percent = 10;
  BreakerOptions breaker{};
};

struct BackendOptions {
  std::string url{};  // its scheme names the adapter
  CallOptions calls{};
  std::string password{};           // replaces the URL's, unless empty
  std::string sentinel_user{};      // for stores that are found through sentinels
  std::string sentinel_password{};  // the same
  // PEM files; empty: the system's authorities, and no certificate of our own.
  std::string ca_file{};
  std::string certificate_file{};
  std::string key_file{};
  // The name that certificates must carry; empty: the host that is connected to.
  std::string server_name{};
  // Refuse a store that may drop live limits, instead of only reporting it.
  bool strict = false;
  // The number of instances, whatever is counted; 0: as counted.
  uint32_t instances = 0;
};

// One of the above, or a field of `calls` or of its breaker.
enum class BackendOption : uint8_t {
  kUrl,
  kTimeout,
  kConnectTimeout,
  kConnections,
  kInFlightMax,
  kRetryPercent,
  kBreakerFailuresInRow,
  kBreakerNoProgress,
  kBreakerOpenMin,
  kBreakerOpenMax,
  kBreakerJitterPercent,
  kPassword,
  kSentinelUser,
  kSentinelPassword,
  kCaFile,
  kCertificateFile,
  kKeyFile,
  kServerName,
  kStrict,
  kInstances,
};

// An option that cannot be used. Without passwords.
struct OptionProblem {
  BackendOption option;
  std::string what;    // a sentence
  std::string hint{};  // what to do; may be empty
};

}  // namespace headgate::store

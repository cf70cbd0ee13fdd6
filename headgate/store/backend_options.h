// The options of a shared store of any kind. All defaults are stated only here. An adapter reads
// the remaining settings from the URL.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headgate/base/secret.h"
#include "headgate/base/time.h"
#include "headgate/store/breaker.h"

namespace headgate::store {

// How calls are sent, and how long they may take.
struct CallOptions {
  // How long a store may answer nothing while calls wait for it; then they are given up. Raise it
  // for a distant store.
  base::Duration timeout = std::chrono::milliseconds(10);
  // If the store turns out to need longer, `timeout` adapts, up to this (store/patience.h).
  base::Duration silence_max = std::chrono::milliseconds(100);
  // The longest wait of a call while the store works off a burst. If it is less than `timeout`,
  // `timeout` counts.
  base::Duration wait_max = std::chrono::milliseconds(250);
  // The time within which a connection must be established, including handshakes. Raise it for a
  // distant store, or for TLS on slow machines.
  base::Duration connect_timeout = std::chrono::milliseconds(50);
  // Connections per server and event loop. Raise it when the bandwidth of one connection is too
  // low.
  uint32_t connections_per_server = 1;
  // The most calls without an answer per connection. A connection sends only as many as are
  // answered in time (store/call_window.h). Raise it with the latency.
  uint32_t in_flight_max = 1024;
  // Second attempts of calls that were certainly not executed, in percent of all calls.
  uint32_t retry_percent = 10;
  BreakerOptions breaker{};
};

struct BackendOptions {
  std::string url{};  // its scheme names the adapter
  CallOptions calls{};
  base::Secret password{};           // replaces the URL's, unless empty
  std::string sentinel_user{};       // for stores that are found through Redis Sentinel
  base::Secret sentinel_password{};  // for the same sentinels
  // PEM files. If empty: the system's authorities, and no client certificate.
  std::string ca_file{};
  std::string certificate_file{};
  std::string key_file{};
  // The name required in certificates; if empty, the host of the connection.
  std::string server_name{};
  // Refuse a store that may evict live limits, instead of only reporting it.
  bool strict = false;
  // The number of instances, which overrides the counted number. 0: use the counted number.
  uint32_t instances = 0;
  // How long a request may wait for the lock of its key, in a store that has locks. Raise it with
  // the number of instances.
  base::Duration lock_timeout = std::chrono::seconds(5);
};

// Identifies a field of BackendOptions, of `calls`, or of its breaker.
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

// An option that cannot be used. Never contains a password.
struct OptionProblem {
  BackendOption option;
  std::string what;    // a sentence
  std::string hint{};  // how to fix it; may be empty
};

// Appends the problems with the settings of a breaker.
void CheckBreaker(const BreakerOptions& breaker, std::vector<OptionProblem>& problems);

}  // namespace headgate::store

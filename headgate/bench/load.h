// Load on a server from many connections.
//
//   open loop     requests become due at a constant rate, whether or not earlier ones are answered.
//                 A latency begins when the request is due, also if no connection is free then: so
//                 a server that stalls cannot hide the requests that it kept from being sent
//                 (coordinated omission)
//   closed loop   each connection sends its next requests when it has the answers to the last ones.
//                 This finds the highest throughput; its latencies are those of the answers alone
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/random.h"
#include "headgate/bench/latencies.h"
#include "headgate/bench/talk.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/stream.h"

namespace headgate::bench {

struct LoadOptions {
  net::StreamTarget server{};
  std::shared_ptr<net::TlsContext> tls{};  // null: plain
  std::string tls_name{};                  // required in the certificate; empty: the server's host
  TalkOptions talk{};
  uint32_t connections = 50;
  uint64_t rate = 0;      // requests per second; 0: closed loop
  uint32_t pipeline = 1;  // closed loop: requests in flight on each connection
  uint64_t keys = 1000;   // drawn evenly
  base::Duration timeout = std::chrono::seconds(10);  // to connect
};

struct LoadCounts {
  static constexpr size_t kErrorKindsMax = 20;
  // The bytes of an error that are kept.
  static constexpr size_t kErrorBytesMax = 300;

  void AddError(std::string_view kind, std::string_view error);

  uint64_t asked = 0;
  uint64_t allowed = 0;
  uint64_t denied = 0;
  uint64_t errors = 0;  // answers that are errors
  // The errors by their status or first word. At most kErrorKindsMax; all others are "other".
  std::map<std::string, uint64_t, std::less<>> errors_by_kind{};
  std::string first_error{};  // "401: this request needs the login of a user"

  uint64_t answered() const { return allowed + denied + errors; }
};

// Lives on one event loop.
class Load {
 public:
  Load(net::EventLoop& loop, const LoadOptions& options);
  ~Load();
  Load(const Load&) = delete;

  // Unavailable if a connection cannot be opened, or ends; Unauthenticated if the server's
  // certificate is not trusted; PermissionDenied if the login is refused; DataLoss if the answers
  // are not of the protocol.
  const absl::Status& failure() const { return failure_; }
  bool connected() const { return open_ == connections_.size(); }

  // Begins to send; call it once all are connected.
  void Start();
  // Sends no more.
  void Stop() { running_ = false; }
  bool idle() const;

  // Since the last Clear.
  const Latencies& latencies() const { return latencies_; }
  const LoadCounts& counts() const { return counts_; }
  void Clear();

 private:
  class Connection;

  void OnTick();
  void SendDue(base::BootTime now);
  void OnAnswered(Connection& connection, base::BootTime now);
  void Send(Connection& connection, base::BootTime due);

  net::EventLoop& loop_;
  const LoadOptions options_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::deque<Connection*> free_;
  std::deque<base::BootTime> waiting_;  // due, but no connection is free
  size_t open_ = 0;
  bool running_ = false;
  base::BootTime started_{0};
  uint64_t became_due_ = 0;
  base::Random random_{1};
  net::Timer timer_;
  absl::Status failure_;
  Latencies latencies_;
  LoadCounts counts_;
};

}  // namespace headgate::bench

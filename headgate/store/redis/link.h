// Runs a Connection on its socket: performs its actions, writes at most once per turn, and calls it
// in time.
//
// A write is delayed, for at most 200 µs, while more calls are in flight than wait for the write. A
// busy loop then sends a few large batches instead of many small ones, each of which costs both
// ends one or two system calls. If few are in flight, nothing is delayed.
#pragma once

#include <cstdint>
#include <memory>

#include "headgate/net/event_loop.h"
#include "headgate/net/stream.h"
#include "headgate/net/tls_client.h"
#include "headgate/store/redis/connection.h"
#include "headgate/store/store_counters.h"

namespace headgate::store::redis {

class Link final : private net::Stream::Owner {
 public:
  Link(net::EventLoop& loop, const net::StreamTarget& target,
       const net::Stream::Options& stream_options, std::shared_ptr<net::TlsClient> tls,
       const ConnectionSettings& settings, Connection::User& user, LoopStoreCounters& counters,
       uint64_t seed);

  void Start(base::BootTime now);
  void Send(PendingCall& call, base::BootTime now);
  // Ends the connection when everything is answered, and makes another.
  void Retire(const absl::Status& why, base::BootTime now);
  // Needs no connection until the next call.
  void Rest(base::BootTime now);

  const Connection& connection() const { return connection_; }

 private:
  void OnConnected() override;
  void OnBytes(std::string_view bytes) override;
  void OnClosed(const absl::Status& why) override;
  void OnTime();
  void Settle();
  void OnTurnEnd();
  uint64_t calls_gathered() const { return connection_.calls_appended() - calls_flushed_; }
  bool Gathers() const;
  void Flush();
  void Count();

  net::EventLoop& loop_;
  const net::StreamTarget target_;
  const std::shared_ptr<net::TlsClient> tls_;  // null: plain
  LoopStoreCounters& counters_;
  net::Stream stream_;
  net::Timer timer_;
  net::Timer gather_timer_;  // separate: set for single writes, and mostly cancelled by answers
  net::EventLoop::Hook flush_;
  Connection connection_;
  uint64_t calls_flushed_ = 0;       // of the calls that the connection appended
  base::BootTime gathers_until_{0};  // while calls gather
  // The figures of the stream and the connection as they were last added to the counters.
  uint64_t bytes_read_ = 0, bytes_written_ = 0, late_replies_ = 0, reconnects_ = 0;
};

}  // namespace headgate::store::redis

// A conversation on its socket: performs what Connection wishes, writes once per turn, wakes it in time.
#pragma once

#include <cstdint>

#include "headgate/net/event_loop.h"
#include "headgate/net/stream.h"
#include "headgate/store/redis/client_counters.h"
#include "headgate/store/redis/connection.h"

namespace headgate::store::redis {

class Link final : private net::Stream::Owner {
 public:
  Link(net::EventLoop& loop, const net::StreamTarget& target, const net::Stream::Options& stream_options,
       const ConnectionSettings& settings, Connection::User& user, LoopClientCounters& counters, uint64_t seed);

  void Start(base::BootTime now);
  void Send(PendingCall& call, base::BootTime now);
  // Ends the connection once all is answered, and makes another.
  void Retire(const absl::Status& why, base::BootTime now);
  // Needs no connection until it is asked something.
  void Rest(base::BootTime now);

  const Connection& connection() const { return connection_; }

 private:
  void OnConnected() override;
  void OnBytes(std::string_view bytes) override;
  void OnClosed(const absl::Status& why) override;
  void Settle();
  void Flush();
  void Count();

  net::EventLoop& loop_;
  const net::StreamTarget target_;
  LoopClientCounters& counters_;
  net::Stream stream_;
  net::Timer timer_;
  net::EventLoop::Hook flush_;
  Connection connection_;
  uint32_t calls_unflushed_ = 0;
  // What has been counted of the stream and the connection.
  uint64_t bytes_read_ = 0, bytes_written_ = 0, late_replies_ = 0, reconnects_ = 0;
};

}  // namespace headgate::store::redis

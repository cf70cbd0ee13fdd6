// A connection to an upstream over a socket: an http::ClientSession on a net::Stream.
//
// Output that the session produces is sent at the end of the loop's turn, together for all its
// exchanges. While the receivers have no room, the stream is not read.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "headgate/base/clock.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/stream.h"
#include "headgate/proxy/upstream_connection.h"

namespace headgate::proxy {

struct StreamConnectionOptions {
  net::StreamTarget target{};
  size_t name = 0;  // see ServiceAddress
  net::Stream::Options stream{};
  std::function<std::unique_ptr<http::ClientSession>()> make_session{};
  bool http2 = false;
  // Told, on the loop, that the upstream closed a connection with exchanges without announcing the
  // end (Stream::ended_unannounced). May be null.
  std::function<void(std::string_view detail)> on_unannounced_end{};
  // Told, on the loop, that no connection could be made, for whatever reason. May be null.
  std::function<void(std::string_view detail)> on_connect_failure{};
  // Told, on the loop, that no connection could be made because of TLS. May be null.
  std::function<void(UpstreamConnection::End end, std::string_view detail)> on_tls_failure{};
};

class StreamConnection final : public UpstreamConnection, private net::Stream::Owner {
 public:
  // Begins to connect. Everything must outlive this object.
  StreamConnection(std::shared_ptr<const StreamConnectionOptions> options, net::EventLoop& loop,
                   const base::DisciplinedClock& clock, UpstreamConnection::Owner& owner);
  ~StreamConnection() override = default;

  http::ClientSession& session() override { return *session_; }
  bool may_begin() const override { return !in_call_ && !closed_; }
  bool speaks_http2() const override { return options_->http2; }
  void Close(base::Instant now) override;

 private:
  void OnConnected() override;
  void OnBytes(std::string_view bytes) override;
  void OnClosed(const absl::Status& why) override;
  bool OnInputEnd() override;
  void OnUnsent() override;

  // Why no connection could be made.
  UpstreamConnection::End ConnectFailure(base::Instant now) const;
  // Sends the session's output, and reads or closes as the session asks (wants_input,
  // output_ended).
  void Pump(base::Instant now);
  // Closes the connection if no exchange is open and none can begin. Returns whether it did.
  bool CloseIfFinished(base::Instant now);
  void End(UpstreamConnection::End end, std::string_view why, base::Instant now);

  const std::shared_ptr<const StreamConnectionOptions> options_;
  net::EventLoop& loop_;
  const base::DisciplinedClock& clock_;
  UpstreamConnection::Owner& owner_;
  const base::Instant began_;
  std::unique_ptr<http::ClientSession> session_;
  bool in_call_ = false;
  bool closed_ = false;
  bool paused_ = false;
  bool finished_writing_ = false;
  net::Stream stream_;
  net::EventLoop::Hook hook_;
};

}  // namespace headgate::proxy

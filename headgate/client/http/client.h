// Sends HTTP requests to one server and returns its answers, over libcurl, on an event loop.
//
//   Send ─► waits for a free connection ─► travels ─► Done
//               │
//               └─ none is free: a warm-up (GET /) opens one, in its own time
//
// Connections are kept. A request is sent only on a connection that has already carried an answer,
// so the time of a handshake is not taken from a request: a server whose handshake lasts longer
// than the deadline of every request still gets its connections. A request opens its own connection
// only if the server has closed an idle one.
//
// libcurl sends a request again if a kept connection breaks before the first byte of an answer.
// This client does not allow that (see OnSend in the source): a request is sent at most once.
//
// The process must ignore SIGPIPE: with TLS, libcurl raises it if the server hangs up.
//
// Names are resolved off the loop (net/name_lookup.h).
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/base/status.h"
#include "headgate/client/http/origin.h"
#include "headgate/client/http/request.h"
#include "headgate/net/event_loop.h"
#include "headgate/net/name_lookup.h"

namespace headgate::client::http {

// The time of a Date field; nothing if the text is not one.
std::optional<base::WallTime> ParseDate(const std::string& date);

struct ClientOptions {
  Origin origin;
  // Raise it with the rate of requests times the time of an answer: HTTP/1.1 carries one request
  // per connection at a time.
  uint32_t connections_max = 16;
  // The most requests that wait for a connection or an answer; further ones fail at once.
  uint32_t requests_max = 1024;
  // The time within which a connection must be established, including handshakes.
  base::Duration connect_timeout = std::chrono::seconds(1);
  // How long a warm-up waits for its answer on an established connection.
  base::Duration warm_up_timeout = std::chrono::seconds(1);
  // Whether warm-ups open the connections. If not, each request opens its own if none is kept.
  bool warm_up = true;
  size_t answer_bytes_max = size_t{1} << 20;
  std::string ca_file{};  // PEM; if empty, the system's authorities
};

class Client {
 public:
  // Called once, on the loop's thread, possibly from within Send. Must not destroy the client.
  //
  // ResourceExhausted: not sent, because too many requests wait. Unavailable: not sent, because
  // there is no connection. DeadlineExceeded: sent, but no answer in time. Unknown: sent, but the
  // connection broke, or the answer is not HTTP or is too large.
  using Done = std::function<void(absl::StatusOr<Answer> answer)>;
  // A connection was established, or failed.
  using OnConnection = std::function<void(const absl::Status& state)>;

  // The loop must outlive the client. Throws std::runtime_error if libcurl cannot be used.
  Client(net::EventLoop& loop, ClientOptions options, OnConnection on_connection = {});
  ~Client();  // afterwards no Done is called
  Client(const Client&) = delete;

  // On the loop's thread, or while the loop is not running.
  void Send(Request request, base::BootTime deadline, Done done);
  // Opens a connection if there is none.
  void WarmUp();

  const ClientOptions& options() const { return options_; }
  // Kept connections.
  size_t connections() const { return kept_.size(); }
  // How often a connection was opened, or tried to.
  uint64_t connects() const { return connects_; }

 private:
  class Watch;
  struct Transfer;
  struct Callbacks;  // that libcurl calls

  bool HasConnectionForRequest() const;
  void Pump();
  void OpenConnections(size_t wanted);
  // False while the addresses are not known.
  bool Resolve();
  std::unique_ptr<Transfer> MakeTransfer(Request request, base::BootTime deadline, Done done);
  std::unique_ptr<Transfer> MakeWarmUp();
  void Start(std::unique_ptr<Transfer> transfer);
  // Lets libcurl handle a socket or its timer, and ends the exchanges that have finished.
  void Act(int fd, int events);
  std::unique_ptr<Transfer> TakeRunning(const Transfer* transfer);
  void End(std::unique_ptr<Transfer> transfer, const absl::Status& outcome);
  void OnConnectionFailed(const absl::Status& why);
  void OnTime();
  void SetTimer();

  net::EventLoop& loop_;
  const ClientOptions options_;
  const OnConnection on_connection_;
  void* multi_;  // a CURLM
  net::Timer curl_timer_;
  net::Timer deadline_timer_;
  std::map<int, std::unique_ptr<Watch>> watches_;  // by descriptor
  std::deque<std::unique_ptr<Transfer>> waiting_;
  std::vector<std::unique_ptr<Transfer>> running_;
  std::vector<std::unique_ptr<Transfer>> spare_;
  std::set<std::pair<base::BootTime, Transfer*>> deadlines_;
  std::set<int> kept_;  // descriptors of connections that have carried an answer
  size_t requests_running_ = 0;
  size_t warm_ups_running_ = 0;
  uint64_t connects_ = 0;
  base::BootTime connect_again_at_{0};
  // The addresses of a name, as CURLOPT_RESOLVE reads them: "HOST:PORT:ADDRESS,ADDRESS". Empty for
  // a host that is an address.
  std::string resolved_;
  base::BootTime resolved_at_{0};
  std::unique_ptr<net::NameLookup> lookup_;
};

}  // namespace headgate::client::http

// One HTTP/1 connection's conversation: pipelining, keep-alive, 100-continue, bounds, and an error for everything that
// is no request. Parsing is HttpParser's; what to answer is the handler's.
//
//   head ──whole──▶ answered at once, where the body (if any) is there too
//                └─▶ body or chunks, taken as they come ──whole──▶ answered
//   A handler that cannot answer yet is asked again when it says so; nothing else is read meanwhile.
//
// After an error, `Connection: close`, or the first answer of a drain, the connection closes. When a request takes too
// long is the event loop's to say: it has the timers.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/net/http.h"
#include "headgate/net/http_bounds.h"
#include "headgate/net/http_chunks.h"
#include "headgate/net/http_head_scan.h"
#include "headgate/net/http_host.h"
#include "headgate/net/http_parser.h"
#include "headgate/net/session.h"

namespace headgate::net {

struct HttpOptions {
  HttpBounds bounds;
  KnownHosts hosts;
};

class HttpSession final : public Session {
 public:
  // `handler` and `options` must outlive the session.
  HttpSession(HttpHandler& handler, const HttpOptions& options, Peer peer);

  Progress OnBytes(std::span<const char> input, std::string& output, base::Instant now) override;
  void OnGivenUp(GivenUp why, std::string& output, base::Instant now) override;  // 408 or 503
  size_t BufferedBytes() const override { return head_.capacity() + body_.capacity() + response_.body.capacity(); }
  void OnDrain() override { draining_ = true; }
  void SetWaker(std::function<void()> wake) override { suspension_.wake = std::move(wake); }

 private:
  enum class Await : uint8_t { kHead, kBody, kChunks, kAnswer };

  // Each takes what it can from `rest`. False: wait for more, or closing.
  bool TakeHead(std::string_view& rest, std::string& output, base::Instant now);
  bool TakeBody(std::string_view& rest, std::string& output, base::Instant now);
  bool TakeChunks(std::string_view& rest, std::string& output, base::Instant now);

  void KeepHead(std::string_view head);
  // False where the answer comes later.
  bool Answer(std::string_view body, std::string& output, base::Instant now);
  void Refuse(const HttpRefusal& refusal, std::string& output, base::Instant now);
  void Write(bool with_body, std::string& output, base::Instant now);
  void Forget();

  HttpHandler& handler_;
  const HttpOptions& options_;
  HttpParser parser_;
  Await await_ = Await::kHead;
  bool draining_ = false;
  bool closing_ = false;
  bool refused_ = false;
  HttpHeadScan scan_;
  HttpChunks chunks_;
  std::string head_;  // of a request whose body is not whole
  std::string body_;
  HttpResponse response_;
  HttpSuspension suspension_;
};

// The Date field's value (RFC 9110, 5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT".
std::array<char, 29> HttpDate(base::Instant now);

}  // namespace headgate::net

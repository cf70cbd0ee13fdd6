// One HTTP/1 connection's conversation: pipelining, keep-alive, 100-continue, bounds, and an error for everything that
// is no request. Parsing is RequestParser's; what to answer is the handler's.
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

#include "headgate/http/bounds.h"
#include "headgate/http/chunks.h"
#include "headgate/http/handler.h"
#include "headgate/http/head_scan.h"
#include "headgate/http/known_hosts.h"
#include "headgate/http/request_parser.h"
#include "headgate/net/session.h"

namespace headgate::http {

struct Options {
  Bounds bounds;
  KnownHosts hosts;
};

class Session final : public net::Session {
 public:
  // `handler` and `options` must outlive the session.
  Session(Handler& handler, const Options& options, net::Peer peer);

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
  void Refuse(const Refusal& refusal, std::string& output, base::Instant now);
  void Write(bool with_body, std::string& output, base::Instant now);
  void Forget();

  Handler& handler_;
  const Options& options_;
  RequestParser parser_;
  Await await_ = Await::kHead;
  bool draining_ = false;
  bool closing_ = false;
  bool refused_ = false;
  HeadScan scan_;
  Chunks chunks_;
  std::string head_;  // of a request whose body is not whole
  std::string body_;
  Response response_;
  Suspension suspension_;
  uint64_t answered_ = 0;  // in this call
  net::OrderedWait wait_;
};

// The Date field's value (RFC 9110, 5.6.7): "Sun, 06 Nov 1994 08:49:37 GMT".
std::array<char, 29> Date(base::Instant now);

}  // namespace headgate::http

// The conversation on one HTTP/1 connection: pipelining, keep-alive, 100-continue, bounds, and an
// error for everything that is not a request. RequestParser parses; the handler answers.
//
//   head ──complete──▶ answered at once, if the body (if any) has arrived too
//                  └─▶ body or chunks, collected, or passed to a sink as they arrive ──▶ answered
//   answer ──▶ complete, or part by part from a source, each after the client took the previous one
//
// If a handler cannot answer yet, it is called again when it wakes the session; meanwhile nothing
// else is read.
//
// The connection closes after an error, after `Connection: close`, or after the first answer of a
// drain. The event loop owns the timers and decides when a request has taken too long.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/clock.h"
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
  // For Date, which is the time of day, also after that has been set; null: the time of decisions.
  const base::Clock* clock = nullptr;
};

class Session final : public net::Session {
 public:
  // The largest part that is requested from a source.
  static constexpr size_t kPartBytesMax = size_t{64} << 10;

  // `handler` and `options` must outlive the session.
  Session(Handler& handler, const Options& options, net::Peer peer);

  Progress OnBytes(std::span<const char> input, std::string& output, base::Instant now) override;
  void OnGivenUp(GivenUp why, std::string& output, base::Instant now) override;  // 408 or 503
  size_t BufferedBytes() const override {
    return head_.capacity() + body_.capacity() + response_.body.capacity();
  }
  void OnDrain() override;
  void SetWaker(std::function<void()> wake) override;

 private:
  enum class Await : uint8_t { kHead, kBody, kChunks, kAnswer, kStream };

  // Each consumes what it can from `rest`. Returns false to wait for more input or because the
  // connection is closing.
  bool TakeHead(std::string_view& rest, std::string& output, base::Instant now);
  bool TakeWhole(std::string_view head, std::string_view& rest, std::string& output,
                 base::Instant now);
  bool TakeBody(std::string_view& rest, std::string& output, base::Instant now);
  bool TakeChunks(std::string_view& rest, std::string& output, base::Instant now);
  // Passes the body received so far to the sink.
  void GiveToSink(base::Instant now);

  void KeepHead(std::string_view head);
  // Returns false if the answer comes later.
  bool Answer(std::string_view body, std::string& output, base::Instant now);
  bool ContinueStream(std::string& output, base::Instant now);
  BodySource::Next AppendPart(std::string& output, base::Instant now);
  void Refuse(const Refusal& refusal, std::string& output, base::Instant now);
  void Write(std::string& output, base::Instant now);
  void EndAnswer();
  void Forget();
  // Frees unusually large buffers that no request uses any more.
  void ShrinkBuffers();
  Progress Report(std::string_view rest, bool more, base::Instant now);

  Handler& handler_;
  const Options& options_;
  RequestParser parser_;
  Await await_ = Await::kHead;
  bool draining_ = false;
  bool last_ = false;     // the connection closes after this answer
  bool closing_ = false;  // the connection closes now
  bool refused_ = false;
  std::optional<base::Instant> held_until_{};  // of the answer that is awaited
  HeadScan scan_;
  Chunks chunks_;
  std::string head_;        // of a request whose body is incomplete
  std::string body_;        // the body so far; with a sink, the part not passed to it yet
  uint64_t body_left_ = 0;  // bytes that have not arrived
  std::unique_ptr<BodySink> sink_;
  bool sink_is_busy_ = false;
  Response response_;
  bool chunked_answer_ = false;
  uint64_t streamed_bytes_ = 0;
  // The time at which the sink became busy or the source ran out of data.
  std::optional<base::Instant> stalled_since_;
  Suspension suspension_;
  uint64_t answered_ = 0;  // requests answered in this call
  net::OrderedWait wait_;
};

}  // namespace headgate::http

// The client's side of an HTTP/1 connection: one exchange at a time, in parts.
//
// The connection is used again only if request and response are complete, both sides keep it open,
// and the server sent nothing beyond the response. Everything else makes it finished: a response
// that ends before its request, a body that ends with the connection, a tunnel, a canceled
// exchange, bytes without a request, and every violation of the protocol.
//
// A request with `protocol` is complete with its head, unless the answer is 101. Then data and
// SendEnd belong to the tunnel. If a tunnel breaks after the server has closed its direction,
// OnFailed follows OnEnd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>

#include "headgate/http/bounds.h"
#include "headgate/http/client_session.h"
#include "headgate/http/exchange.h"
#include "headgate/http/head_scan.h"
#include "headgate/http/http1/body_reader.h"
#include "headgate/http/http1/message_writer.h"
#include "headgate/http/http1/response_head.h"

namespace headgate::http::http1 {

// Bodies are streamed, so their size is not bounded.
inline constexpr Bounds kResponseBounds{.body_bytes_max = std::numeric_limits<int64_t>::max()};

class ClientSession final : public http::ClientSession, private ClientExchange {
 public:
  // 1xx responses to one request. A server may report its progress with them.
  static constexpr uint32_t kInformationalMax = 100;

  // `bounds` must outlive the session.
  explicit ClientSession(const Bounds& bounds = kResponseBounds);

  size_t free_places() const override { return !finished_ && !open() ? 1 : 0; }
  bool finished() const override { return finished_; }
  size_t open_exchanges() const override { return open() ? 1 : 0; }

  // The method must not be CONNECT.
  ClientExchange& Begin(const RequestHead& head, ResponseReceiver& receiver,
                        base::Instant now) override;
  void OnBytes(std::string_view bytes, base::Instant now) override;
  void OnInputEnd(base::Instant now) override;
  void OnBroken(std::string_view why, base::Instant now) override;
  std::string& output() override { return output_; }
  void OnUnsent(size_t bytes, base::Instant now) override;
  bool wants_input() const override { return wants_input_; }
  bool output_ended() const override { return output_ended_; }
  void SetWaker(std::function<void()> wake) override { wake_ = std::move(wake); }

 private:
  enum class Outgoing : uint8_t { kBody, kTunnel, kEnded };
  enum class Incoming : uint8_t { kHead, kBody, kTunnel, kEnded };

  void SendData(std::string_view bytes) override;
  void SendEnd(const Fields& trailers) override;
  void Cancel() override;
  void Consumed(size_t bytes) override;
  size_t unsent_bytes() const override { return output_.size() + unsent_; }

  bool open() const { return receiver_ != nullptr; }
  bool nothing_sent() const { return unsent_bytes() >= written_; }
  // Consume as much of `bytes` as possible. Return false if nothing more can be consumed now.
  bool TakeHead(std::string_view& bytes, base::Instant now);
  void OnResponseHead(const ResponseBody& body, base::Instant now);
  bool TakeBody(std::string_view& bytes, base::Instant now);
  // `beyond`: whether bytes follow the response.
  void EndResponse(bool beyond, base::Instant now);
  void EndTunnelInput(base::Instant now);
  void Fail(Failure failure, std::string_view detail, base::Instant now);
  // Forgets the exchange. The receiver is not called any more, except with its end.
  ResponseReceiver& Release();
  void NoteOutput(size_t size_before);
  void UpdateWantsInput();

  const Bounds& bounds_;
  std::function<void()> wake_;
  std::string output_;
  size_t unsent_ = 0;  // of the output that the owner took
  bool finished_ = false;
  bool output_ended_ = false;
  bool wants_input_ = true;

  // The exchange.
  ResponseReceiver* receiver_ = nullptr;
  Outgoing outgoing_ = Outgoing::kEnded;
  Incoming incoming_ = Incoming::kEnded;
  bool head_only_ = false;
  bool keep_alive_ = false;
  bool is_full_ = false;     // unsent_bytes() has reached the window since the last OnWritable
  bool answered_ = false;    // a byte of the answer has arrived
  bool short_body_ = false;  // the request's body ended before its size
  uint64_t written_ = 0;     // output of this exchange
  std::string protocol_;
  uint32_t informational_count_ = 0;
  size_t uncredited_ = 0;
  std::string partial_head_;
  HeadScan scan_;
  ResponseHead response_;  // keeps its memory
  BodyReader reader_;
  BodyWriter writer_;
};

}  // namespace headgate::http::http1

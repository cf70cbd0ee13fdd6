// The server's side of an HTTP/1 connection of a proxy: one exchange at a time, in parts.
//
//   head ──▶ Application::OnRequest ──▶ OnData…, OnEnd ──┐
//                                                         ├─ both ended ──▶ next head
//                       SendHead, SendData…, SendEnd ────┘
//
// The next request of a pipeline is read only after both directions of an exchange have ended. A
// request that violates the protocol is answered with an error, and the connection closes; if its
// head is invalid, the application never sees the request. CONNECT is refused.
//
// A request with `protocol` has no end until it is answered: after 101, its receiver gets the data
// of the tunnel; after another answer, OnEnd.
//
// If a response begins before its request has arrived, it says Connection: close. If it also ends
// first, the rest of the request is not wanted: the receiver gets OnAbort.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/http/bounds.h"
#include "headgate/http/exchange.h"
#include "headgate/http/head_scan.h"
#include "headgate/http/http1/body_reader.h"
#include "headgate/http/http1/message_writer.h"
#include "headgate/net/session.h"

namespace headgate::http::http1 {

struct ServerOptions {
  // Bodies are streamed, so their size is not bounded by default.
  Bounds bounds{.body_bytes_max = std::numeric_limits<int64_t>::max()};
  // Further fields that Connection must not name, because they mean something to the application:
  // the one with the client's id, for example.
  std::vector<std::string> never_nominated{};
  // Nothing is passed on: the fields that Connection names stay.
  bool keeps_nominated = false;
  // A client that closes its direction before the answer to its request begins has gone. If this is
  // false, it may still read the answer.
  bool cancels_abandoned = true;
  // For Date of the session's own answers; null: the time of decisions.
  const base::Clock* clock = nullptr;
};

class ServerSession final : public net::Session, private ServerExchange {
 public:
  // `application` and `options` must outlive the session.
  ServerSession(Application& application, const ServerOptions& options, net::Peer peer);
  ~ServerSession() override;

  Progress OnBytes(std::span<const char> input, std::string& output, base::Instant now) override;
  void SetWaker(std::function<void()> wake) override { wake_ = std::move(wake); }
  bool duplex() const override { return true; }
  void OnUnsent(size_t bytes, base::Instant now) override;
  bool OnInputEnd(base::Instant now) override;
  void OnGivenUp(GivenUp why, std::string& output, base::Instant now) override;  // 408 or 503
  size_t BufferedBytes() const override;
  void OnDrain() override;

 private:
  // The request of the exchange.
  enum class Incoming : uint8_t {
    kBody,
    kUpgrade,  // complete, unless the answer makes it a tunnel
    kTunnel,
    kEnded,
  };
  // The response of the exchange.
  enum class Outgoing : uint8_t { kHead, kBody, kTunnel, kEnded, kAborted };

  void SendInformational(const ResponseHead& head) override;
  void SendHead(const ResponseHead& head) override;
  void SendData(std::string_view bytes) override;
  void SendEnd(const Fields& trailers) override;
  void Abort() override;
  void Consumed(size_t bytes) override;
  size_t unsent_bytes() const override;
  bool request_is_malformed() const override { return refused_; }
  void CallAgain() override;
  std::unique_ptr<ConnectionState>& connection_state() override { return connection_state_; }

  // Makes one step. Returns false if there is nothing to do before more happens.
  bool Step(base::Instant now);
  bool TakeHead(base::Instant now);
  void BeginExchange(bool keep_alive, base::Instant now);
  bool TakeBody(base::Instant now);
  bool EndBody(base::Instant now);
  bool TakeTunnel(base::Instant now);
  bool AnswerUpgrade(base::Instant now);
  void EndRequest(const Fields& trailers, base::Instant now);
  void EndExchange();
  // Ends the exchange, if there is one, and then the connection.
  void Close(base::Instant now);
  void Refuse(const Refusal& refusal, base::Instant now);
  // `of_head`: the application knows nothing of the request yet.
  void WriteProblem(const Refusal& refusal, bool of_head, base::Instant now);
  Progress Report(std::span<const char> input);
  Patience patience() const { return open_ ? receiver_->patience() : Patience{}; }

  // Whether the whole request has arrived, though perhaps it was not read yet. For chunks, only
  // reading can tell.
  bool request_arrived() const;
  // Whether the end of the input would mean that nobody waits for the answer.
  bool may_be_abandoned() const;
  // Bytes of input that were not taken.
  size_t rest_bytes() const { return output_ != nullptr ? rest_.size() : rest_bytes_; }
  size_t room() const { return kWindowBytes - std::min(kWindowBytes, uncredited_); }
  std::string& out() { return output_ != nullptr ? *output_ : pending_; }
  void NoteOutput();
  void Wake();

  Application& application_;
  const ServerOptions& options_;
  const net::Peer peer_;
  std::function<void()> wake_;
  base::Instant now_{};  // of the last call

  // Input and output. During OnBytes, `output_` is its output; otherwise output is pending.
  std::string_view rest_;
  size_t rest_bytes_ = 0;
  std::string* output_ = nullptr;
  size_t output_begin_ = 0;
  std::string pending_;
  size_t unsent_ = 0;         // of the output that earlier calls returned
  bool is_full_ = false;      // unsent_bytes() has reached the window since the last OnWritable
  bool awaits_room_ = false;  // the next request waits until the client has read
  bool input_ended_ = false;
  bool draining_ = false;
  bool last_ = false;     // the connection closes after this exchange
  bool closing_ = false;  // the connection closes now
  bool resets_ = false;   // because only the end of the connection would end the answer
  bool refused_ = false;
  bool calls_again_ = false;  // the receiver is due a call
  uint64_t answered_ = 0;     // exchanges that ended in this call
  net::OrderedWait wait_;
  std::unique_ptr<ConnectionState> connection_state_;

  // Heads.
  HeadScan scan_;
  bool skipped_empty_line_ = false;
  RequestHead head_;  // an application may leave it the memory of an earlier one

  // The exchange.
  bool open_ = false;
  std::unique_ptr<RequestReceiver> receiver_;
  Incoming incoming_ = Incoming::kEnded;
  Outgoing outgoing_ = Outgoing::kEnded;
  bool http11_ = true;
  bool head_only_ = false;
  bool accepts_trailers_ = false;
  std::string protocol_;
  BodyReader reader_;
  BodyWriter writer_;
  size_t uncredited_ = 0;  // data that the receiver has not consumed
};

}  // namespace headgate::http::http1

// One exchange passed on: from a client's connection to one of an upstream, and back.
//
//   waits for a place ──▶ sends the request ──▶ passes the answer back ──▶ done
//            ▲                    │
//            └── another attempt ─┘   before the answer's head, by the rules below
//
// Both directions stream. The bytes of a body are credited to the side that sent them as soon as
// the other side has room, so each direction buffers at most two windows.
//
// Another attempt is made, at most `attempts_max` in all,
//   - if the upstream has not processed anything (no connection, REFUSED_STREAM, GOAWAY): for every
//     method;
//   - if a kept connection ended without the first byte of an answer, as an upstream does that
//     closes idle connections: once, for idempotent methods (RFC 9110, 9.2.2) without a body.
// The beginning of a body is kept for another attempt. Once more than kReplayBytesMax bytes were
// sent, no other attempt is possible.
//
// Failures before the answer's head become 502, 503 or 504; afterwards the response is aborted in a
// way that the client notices. A client of gRPC gets both in its form (grpc.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/base/clock.h"
#include "headgate/base/random.h"
#include "headgate/base/time.h"
#include "headgate/http/exchange.h"
#include "headgate/proxy/admission.h"
#include "headgate/proxy/own_answer.h"
#include "headgate/proxy/places.h"
#include "headgate/proxy/relay_counters.h"
#include "headgate/proxy/request_end.h"
#include "headgate/proxy/tick_wheel.h"
#include "headgate/proxy/websocket.h"

namespace headgate::proxy {

struct RelayOptions {
  // How long the body waits for 100 (Continue). RFC 9110, 10.1.1 forbids waiting forever.
  base::Duration continue_timeout = std::chrono::seconds(1);
  // The time in the queue for a connection, and to make one.
  base::Duration queue_timeout = std::chrono::seconds(5);
  // From the end of the request to the head of the answer. Raise it for slow upstreams.
  base::Duration answer_timeout = std::chrono::seconds(60);
  // The time in which no byte of a body moves in either direction. Raise it for streams that stay
  // silent for long.
  base::Duration idle_timeout = std::chrono::minutes(5);
  base::Duration tunnel_idle_timeout = std::chrono::hours(1);
  uint32_t attempts_max = 3;
  // Whether answers to failures state the reason and the proxy's name in Proxy-Status.
  bool says_reason = true;
  std::string name = "headgate";
  CorsOptions cors{};
  // Whether an answer of the upstream without Date gets one (RFC 9110, 6.6.1).
  bool adds_date = false;
  // For Date; null: the time of decisions.
  const base::Clock* clock = nullptr;
};

// Shared by the relays of one loop, and outlives them.
struct RelayContext {
  const RelayOptions& options;
  Admission& admission;
  Places& places;
  TickWheel& wheel;
  RelayCounters& counters;
  base::Random& random;  // for the handshake of WebSocket
};

class Relay final : public http::RequestReceiver, private Places::Waiter, private TickWheel::Entry {
 public:
  // The part of a body that is kept for another attempt, in addition to the unsent part.
  static constexpr size_t kReplayBytesMax = size_t{16} << 10;
  // How often the end's listeners are told about the bytes so far.
  static constexpr uint64_t kProgressBytes = uint64_t{1} << 20;

  // `response_fields` are added to the upstream's answer, where they replace fields of the same
  // name, and to the proxy's own answers. `client_key` identifies the client for Places::Waiter.
  Relay(const RelayContext& context, std::optional<uint64_t> client_key, http::RequestHead head,
        http::Fields response_fields, http::ServerExchange& client, base::Instant now);
  ~Relay() override;
  // `end` is told about the progress and the end of this request. Call it before Begin.
  void SetEnd(RequestEnd end) {
    end_ = std::move(end);
    if (end_.has_listeners()) tell_at_ = kProgressBytes;
  }
  // The number of the pool's verdict. Call it before Begin.
  void SetAdmitted(uint64_t number) { number_ = number; }
  // Passes on only the head of the answer, without its cookies. For uncounted preflights: browsers
  // show their answers to no page, and other clients should not get content without being counted.
  // Call it before Begin.
  void LeaveOutContent() { leaves_out_content_ = true; }
  // Call it once, first.
  void Begin(base::Instant now);

  void OnData(std::string_view bytes, base::Instant now) override;
  void OnEnd(const http::Fields& trailers, base::Instant now) override;
  void OnAbort(base::Instant now) override;
  void OnWritable(base::Instant now) override;
  size_t HeldBytes() const override;

 private:
  enum class Stage : uint8_t { kWaiting, kAsked, kAnswering, kTunnel, kDone };

  // The upstream's side. Some of its functions have the names of the client's side.
  class Answer final : public http::ResponseReceiver {
   public:
    explicit Answer(Relay& relay) : relay_(relay) {}
    void OnInformational(const http::ResponseHead& head, base::Instant now) override;
    void OnHead(http::ResponseHead head, base::Instant now) override;
    void OnData(std::string_view bytes, base::Instant now) override;
    void OnEnd(const http::Fields& trailers, base::Instant now) override;
    void OnFailed(http::Failure failure, std::string_view detail, base::Instant now) override;
    void OnWritable(base::Instant now) override;

   private:
    Relay& relay_;
  };

  void OnPlace(Place& place, base::Instant now) override;
  void OnNoPlace(NoPlace why, std::string_view detail, base::Instant now) override;
  void OnTick(base::Instant now) override;

  void TakePlace(base::Instant now);
  // ---- The request's direction.
  bool holds_body() const { return holds_for_continue_ || !head_.protocol.empty(); }
  void SendBody(std::string_view bytes);
  void ReleaseBody();
  // Passes on the end of the request once everything before it was sent.
  void EndRequest();
  void CreditClient();
  // ---- The answer's direction.
  void BeginTunnel();
  void ForgetBody();
  void ForgetRequest();
  void CreditUpstream();
  bool MayTryAgain(http::Failure failure) const;
  void LeavePlace(Ended ended, base::Instant now);
  // ---- The end.
  struct FailedAnswer {
    RelayOutcome outcome;
    int status;
    std::string_view detail;
    std::string_view error;  // of Proxy-Status
  };
  // With `ended`, gives up the upstream if there is one.
  void Fail(const FailedAnswer& answer, Ended ended, base::Instant now);
  void GiveUpUpstream(Ended ended, base::Instant now);
  // After the answer's head.
  void CutShort(RelayOutcome outcome, base::Instant now);
  // Nothing is expected from either side any more. The rest of the request is dropped.
  void Finish(RelayOutcome outcome, base::Instant now);
  // Counts the bytes of a body.
  void Count(uint64_t& size, size_t bytes, base::Instant now) {
    size += bytes;
    if (sizes_.request + sizes_.response < tell_at_) [[likely]]
      return;
    tell_at_ = sizes_.request + sizes_.response + kProgressBytes;
    end_.TellProgress(sizes_, now);
  }
  // Subtracts the bytes of the answer that could not be sent before the client left.
  void TakeBackUnsent();
  // Tells the listeners of the end about the status of the answer, or that none will come.
  void TellHead(const http::ResponseHead& head, base::Instant now);
  void TellTrailers(const http::Fields& trailers, base::Instant now);
  // Tells the pool, once, that the upstream is done with the request.
  void LeavePool(Left how, base::Instant now);

  base::Instant Due() const;
  void SetTimeout();
  void OnTimeout(base::Instant now);
  void OnAnswerTimeout(base::Instant now);
  void FailAtDeadline(base::Instant now);
  void FailInQueue(base::Instant now);
  void FailInvalid(base::Instant now);

  const RelayContext& context_;
  http::RequestHead head_;
  size_t head_bytes_;  // 0: the head is forgotten, except method and protocol
  http::Fields response_fields_;
  http::ServerExchange& client_;
  Answer answer_{*this};
  Stage stage_ = Stage::kWaiting;
  Place* place_ = nullptr;                    // null: none yet, or left
  http::ClientExchange* upstream_ = nullptr;  // null: none yet, or gone

  // The beginning of the request's body, of which body_sent_ bytes were sent in this attempt. If
  // !body_kept_, the beginning is gone, and no other attempt is possible.
  std::string body_;
  size_t body_sent_ = 0;
  bool body_kept_ = true;
  bool request_ended_ = false;
  bool end_sent_ = false;  // in this attempt
  http::Fields trailers_;
  size_t client_uncredited_ = 0;    // received from the client, and not credited
  size_t upstream_uncredited_ = 0;  // the same of the upstream

  RequestEnd end_;
  BodySizes sizes_;
  uint64_t tell_at_ = UINT64_MAX;  // when this many bytes have passed

  WebSocketHandshake websocket_;
  bool holds_for_continue_ = false;
  bool continue_sent_ = false;  // to the client
  bool answer_ended_ = false;   // in a tunnel: the upstream has closed its direction
  bool grpc_ = false;
  bool leaves_out_content_ = false;
  bool may_have_trailers_ = false;  // the answer's body is kUnsized
  bool tried_after_no_answer_ = false;
  bool in_pool_ = true;  // until LeavePool
  uint64_t number_ = 0;  // of the pool's verdict
  bool was_sent_ = false;
  int status_ = 0;  // of the answer's head
  enum class Status : uint8_t { kUntold, kFollows, kTold };
  Status status_told_ = Status::kUntold;
  std::optional<uint32_t> grpc_status_of_head_{};
  uint32_t attempts_ = 0;
  base::Instant began_;
  base::Instant moved_;    // when the last byte of a body, or a head, moved in either direction
  base::Instant asked_{};  // when it began to wait for a place, then when the head was sent
  base::Instant timeout_set_{};
  std::optional<base::Instant> deadline_;  // grpc-timeout
};

}  // namespace headgate::proxy

// Bytes choose what a client, the upstreams and the clock do, in any order that the seam of
// headgate/http/exchange.h allows. Both sides are strict: they stop the process if the relay breaks
// a rule of the seam. In the end everything was given back exactly once.
#include <algorithm>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/proxy/relay.h"

namespace headgate::proxy {
namespace {

using http::BodyLength;
using http::kWindowBytes;
using Kind = BodyLength::Kind;

constexpr base::Instant kStart = base::Instant::FromNanos(1'000'000'000'000);

class Choices {
 public:
  Choices(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return at_ == size_; }
  uint8_t Next() { return empty() ? 0 : data_[at_++]; }
  bool Flip() { return (Next() & 1) != 0; }
  template <typename T>
  T Of(std::initializer_list<T> values) {
    return values.begin()[Next() % values.size()];
  }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t at_ = 0;
};

// One direction of a message that is being sent.
struct Sending {
  void Begin(const BodyLength& length) {
    HEADGATE_CHECK(!begun);
    begun = true;
    body = length;
  }
  void Data(size_t bytes) {
    HEADGATE_CHECK(begun && !ended);
    sent += bytes;
    HEADGATE_CHECK(body.kind != Kind::kSized || sent <= body.bytes);
    HEADGATE_CHECK(body.kind != Kind::kNone);
    unsent += bytes;
  }
  void End() {
    HEADGATE_CHECK(begun && !ended);
    ended = true;
  }

  bool begun = false;
  bool ended = false;
  BodyLength body;
  uint64_t sent = 0;
  size_t unsent = 0;
};

// The bytes that were delivered to the relay and that it has not consumed.
struct Delivered {
  void Consumed(size_t size) {
    HEADGATE_CHECK(size <= bytes);
    bytes -= size;
  }
  size_t room() const { return kWindowBytes - bytes; }
  size_t bytes = 0;
};

struct StrictClient final : http::ServerExchange {
  void SendInformational(const http::ResponseHead& head) override {
    HEADGATE_CHECK(!gone && !response.begun && head.status < 200 && head.status != 101);
  }
  void SendHead(const http::ResponseHead& head) override {
    HEADGATE_CHECK(!gone && !aborted);
    tunnel = head.body.kind == Kind::kTunnel;
    HEADGATE_CHECK(tunnel == (head.status == 101) && (!tunnel || wants_tunnel));
    response.Begin(head.body);
  }
  void SendData(std::string_view bytes) override {
    HEADGATE_CHECK(!gone && !aborted);
    response.Data(bytes.size());
  }
  void SendEnd(const http::Fields&) override {
    HEADGATE_CHECK(!gone && !aborted);
    response.End();
  }
  void Abort() override {
    HEADGATE_CHECK(!gone && !aborted);
    aborted = true;
  }
  void Consumed(size_t bytes) override { request.Consumed(bytes); }
  size_t unsent_bytes() const override { return response.unsent; }

  bool wants_tunnel = false;
  bool tunnel = false;
  bool gone = false;
  bool aborted = false;
  Sending response;
  Delivered request;
};

struct StrictUpstream final : http::ClientSession, http::ClientExchange, Place {
  size_t free_places() const override { return 1; }
  bool finished() const override { return false; }
  size_t open_exchanges() const override { return 0; }
  http::ClientExchange& Begin(const http::RequestHead& head, http::ResponseReceiver& to,
                              base::Instant) override {
    HEADGATE_CHECK(receiver == nullptr && taken && !left);
    receiver = &to;
    wants_tunnel = !head.protocol.empty();
    request.Begin(head.body);
    return *this;
  }
  void OnBytes(std::string_view, base::Instant) override {}
  void OnInputEnd(base::Instant) override {}
  void OnBroken(std::string_view, base::Instant) override {}
  std::string& output() override { return output_; }
  void OnUnsent(size_t, base::Instant) override {}
  bool wants_input() const override { return true; }
  bool output_ended() const override { return false; }
  void SetWaker(std::function<void()>) override {}

  void SendData(std::string_view bytes) override {
    HEADGATE_CHECK(receiver != nullptr);
    request.Data(bytes.size());
  }
  void SendEnd(const http::Fields&) override {
    HEADGATE_CHECK(receiver != nullptr);
    request.End();
    if (tunnel && answer_ended) receiver = nullptr;
  }
  void Cancel() override {
    HEADGATE_CHECK(receiver != nullptr);
    receiver = nullptr;
  }
  void Consumed(size_t bytes) override {
    HEADGATE_CHECK(receiver != nullptr);
    answer.Consumed(bytes);
  }
  size_t unsent_bytes() const override { return request.unsent; }

  http::ClientSession& session() override { return *this; }
  bool reused() const override { return is_reused; }
  bool speaks_http2() const override { return http2; }
  void Leave(Places::Waiter&, Ended, base::Instant) override {
    HEADGATE_CHECK(taken && !std::exchange(left, true));
  }

  bool taken = false;
  bool left = false;
  bool is_reused = false;
  bool http2 = false;
  http::ResponseReceiver* receiver = nullptr;
  bool wants_tunnel = false;
  bool tunnel = false;
  bool head_sent = false;
  bool answer_ended = false;
  BodyLength answer_body;
  uint64_t answer_sent = 0;
  Sending request;
  Delivered answer;

 private:
  std::string output_;
};

struct Once final : Admission {
  Verdict Admit(std::string_view, base::Instant) override { return {}; }
  void OnLeft(Left, base::Instant, base::Instant) override { HEADGATE_CHECK(++left == 1); }
  int left = 0;
};

// Told about the end of the exchange.
struct OneEnd final : EndListener {
  struct Told {
    int sizes = 0;
    int ends = 0;
    BodySizes bodies;
  };
  explicit OneEnd(Told& t) : told(t) {}
  void OnResponseSize(uint64_t, base::Instant) override {
    HEADGATE_CHECK(++told.sizes == 1 && told.ends == 0);
  }
  void OnProgress(const BodySizes&, base::Instant) override { HEADGATE_CHECK(told.ends == 0); }
  void OnEnded(const BodySizes& sizes, base::Instant) override {
    HEADGATE_CHECK(++told.ends == 1);
    told.bodies = sizes;
  }
  Told& told;
};

class World final : Places {
 public:
  explicit World(Choices& choices) : choices_(choices) {
    options_.attempts_max = 1 + choices.Next() % 3;
    http::RequestHead head{.method = choices.Of<std::string>({"GET", "POST", "PUT", "HEAD"}),
                           .target = "/",
                           .scheme = "http",
                           .authority = "a"};
    head.version = choices.Of({http::Version::kHttp11, http::Version::kHttp2});
    switch (choices.Next() % 4) {
      case 0:
        head.method = "GET";
        head.protocol = choices.Flip() ? "websocket" : "chat";
        client_.wants_tunnel = true;
        break;
      case 1:
        head.body = {.kind = Kind::kUnsized};
        if (choices.Flip()) head.fields.Add("content-type", "application/grpc");
        if (choices.Flip()) head.fields.Add("grpc-timeout", "3S");
        break;
      case 2:
        head.body = {.kind = Kind::kSized, .bytes = uint64_t{choices.Next()} * 1024};
        break;
      default:
        break;
    }
    head.expects_continue = head.body.kind != Kind::kNone && choices.Flip();
    body_ = head.body;
    relay_.emplace(context_, std::nullopt, std::move(head), http::Fields(), client_, now_);
    RequestEnd end;
    end.Add(std::make_unique<OneEnd>(told_), now_);
    relay_->SetEnd(std::move(end));
    relay_->Begin(now_);
  }

  void Run() {
    for (int steps = 0; steps < 1000 && !choices_.empty() && relay_; ++steps) Step();
    relay_.reset();
    HEADGATE_CHECK(admission_.left == 1 && waiting_ == nullptr);
    HEADGATE_CHECK(told_.ends == 1 && told_.bodies.request <= request_sent_ &&
                   told_.bodies.response <= client_.response.sent);
    for (const auto& upstream : upstreams_) {
      HEADGATE_CHECK(upstream->left || !upstream->taken);
      HEADGATE_CHECK(upstream->receiver == nullptr);
    }
    uint64_t ended = 0;
    for (const base::Counter& outcome : counters_.outcomes) ended += outcome.value();
    HEADGATE_CHECK(ended == 1);
  }

 private:
  StrictUpstream& MakePlace() {
    StrictUpstream& upstream = *upstreams_.emplace_back(std::make_unique<StrictUpstream>());
    upstream.is_reused = choices_.Flip();
    upstream.http2 = choices_.Flip();
    upstream.taken = true;
    return upstream;
  }
  Taken Take(Waiter& waiter, base::Instant) override {
    HEADGATE_CHECK(waiting_ == nullptr);
    switch (choices_.Next() % 4) {
      case 0:
        return {.refused = NoPlace::kQueueFull};
      case 1:
        waiting_ = &waiter;
        return {};
      default:
        return {.place = &MakePlace()};
    }
  }
  void Forget(Waiter& waiter) override {
    if (waiting_ == &waiter) waiting_ = nullptr;
  }

  // The exchange that is open, or null.
  StrictUpstream* Open() {
    if (upstreams_.empty() || upstreams_.back()->receiver == nullptr) return nullptr;
    return upstreams_.back().get();
  }

  void Step() {
    switch (choices_.Next() % 11) {
      case 0:
        return ClientSends();
      case 1:
        return ClientEnds();
      case 2:
        return ClientTakes();
      case 3:
        // Rare, so that most exchanges go on.
        if (choices_.Next() % 8 == 0) ClientGoes();
        return;
      case 4:
        return PlaceComes();
      case 5:
        now_ += choices_.Of<base::Duration>({std::chrono::milliseconds(100),
                                             std::chrono::seconds(1), std::chrono::seconds(6),
                                             std::chrono::minutes(2), std::chrono::hours(2)});
        return wheel_.Advance(now_);
      default:
        if (StrictUpstream* const upstream = Open(); upstream != nullptr) UpstreamActs(*upstream);
    }
  }

  bool may_send() const {
    return !request_ended_ && !client_.gone &&
           (body_.kind == Kind::kUnsized || body_.kind == Kind::kSized || client_.tunnel);
  }
  void ClientSends() {
    size_t size = std::min<size_t>(size_t{choices_.Next()} * 257, client_.request.room());
    if (body_.kind == Kind::kSized) size = std::min<size_t>(size, body_.bytes - request_sent_);
    if (!may_send() || size == 0) return;
    request_sent_ += size;
    client_.request.bytes += size;
    relay_->OnData(std::string(size, 'x'), now_);
  }
  void ClientEnds() {
    const bool complete = body_.kind != Kind::kSized || request_sent_ == body_.bytes;
    // A request for a tunnel ends with the tunnel, or with an answer that refuses it.
    const bool undecided = client_.wants_tunnel && !client_.response.begun;
    if (request_ended_ || client_.gone || !complete || undecided) return;
    request_ended_ = true;
    relay_->OnEnd({}, now_);
    Settle();
  }
  void ClientTakes() {
    const bool was_full = client_.response.unsent >= kWindowBytes;
    client_.response.unsent = 0;
    if (was_full && !client_.gone) relay_->OnWritable(now_);
  }
  void ClientGoes() {
    client_.gone = true;
    relay_->OnAbort(now_);
    relay_.reset();
  }
  // The session destroys the receiver once both directions have ended.
  void Settle() {
    if (client_.response.ended && request_ended_) relay_.reset();
  }

  void PlaceComes() {
    Waiter* const waiter = std::exchange(waiting_, nullptr);
    if (waiter == nullptr) return;
    if (choices_.Flip()) return waiter->OnPlace(MakePlace(), now_);
    waiter->OnNoPlace(choices_.Of({NoPlace::kRefused, NoPlace::kTimeout, NoPlace::kClosed}), "",
                      now_);
  }

  void UpstreamActs(StrictUpstream& upstream) {
    http::ResponseReceiver& receiver = *upstream.receiver;
    switch (choices_.Next() % 6) {
      case 0:
        if (upstream.head_sent) return;
        return receiver.OnInformational({.status = choices_.Of({100, 103})}, now_);
      case 1:
        return SendHead(upstream);
      case 2: {
        size_t size = std::min<size_t>(size_t{choices_.Next()} * 257, upstream.answer.room());
        if (upstream.answer_body.kind == Kind::kSized)
          size = std::min<size_t>(size, upstream.answer_body.bytes - upstream.answer_sent);
        const bool has_body = upstream.answer_body.kind != Kind::kNone;
        if (!upstream.head_sent || upstream.answer_ended || !has_body || size == 0) return;
        upstream.answer_sent += size;
        upstream.answer.bytes += size;
        return receiver.OnData(std::string(size, 'y'), now_);
      }
      case 3: {
        const bool complete = upstream.answer_body.kind != Kind::kSized ||
                              upstream.answer_sent == upstream.answer_body.bytes;
        if (!upstream.head_sent || upstream.answer_ended || !complete) return;
        upstream.answer_ended = true;
        const bool open = upstream.tunnel && !upstream.request.ended;
        if (!open) upstream.receiver = nullptr;
        receiver.OnEnd({}, now_);
        return Settle();
      }
      case 4: {
        const bool was_full = upstream.request.unsent >= kWindowBytes;
        upstream.request.unsent = 0;
        if (was_full) receiver.OnWritable(now_);
        return;
      }
      default: {
        if (choices_.Next() % 4 != 0) return;
        upstream.receiver = nullptr;
        const auto failure =
            upstream.head_sent ? http::Failure::kTruncated
                               : choices_.Of({http::Failure::kNotSent, http::Failure::kNoAnswer,
                                              http::Failure::kInvalid, http::Failure::kTruncated});
        return receiver.OnFailed(failure, "", now_);
      }
    }
  }

  void SendHead(StrictUpstream& upstream) {
    if (std::exchange(upstream.head_sent, true)) return;
    http::ResponseHead head{.status = choices_.Of({200, 204, 404, 503})};
    if (upstream.wants_tunnel && choices_.Flip()) {
      head = {.status = 101, .body = {.kind = Kind::kTunnel}};
      upstream.tunnel = true;
      // From now on the request's direction carries the tunnel.
      upstream.request.body = head.body;
    } else if (head.status == 200) {
      head.body.kind = choices_.Of({Kind::kNone, Kind::kSized, Kind::kUnsized});
      if (head.body.kind == Kind::kSized) head.body.bytes = uint64_t{choices_.Next()} * 1024;
    }
    upstream.answer_body = head.body;
    upstream.receiver->OnHead(std::move(head), now_);
  }

  Choices& choices_;
  base::Instant now_ = kStart;
  RelayOptions options_;
  Once admission_;
  OneEnd::Told told_;
  TickWheel wheel_{kStart};
  RelayCounters counters_;
  base::Random random_{1};
  RelayContext context_{.options = options_,
                        .admission = admission_,
                        .places = *this,
                        .wheel = wheel_,
                        .counters = counters_,
                        .random = random_};
  StrictClient client_;
  BodyLength body_;
  uint64_t request_sent_ = 0;
  bool request_ended_ = false;
  Waiter* waiting_ = nullptr;
  std::vector<std::unique_ptr<StrictUpstream>> upstreams_;
  std::optional<Relay> relay_;
};

}  // namespace
}  // namespace headgate::proxy

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  headgate::proxy::Choices choices(data, size);
  headgate::proxy::World(choices).Run();
  return 0;
}

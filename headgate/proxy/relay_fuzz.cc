// The fuzzer's bytes choose the steps of a client, of the upstreams and of the clock, in any order
// that headgate/http/exchange.h allows. At the end, everything must have been given back exactly
// once.
#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/proxy/relay_rig.h"

namespace headgate::proxy {
namespace {

using http::BodyLength;
using http::kWindowBytes;
using Kind = BodyLength::Kind;

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

// The bytes of a body that may still be delivered to the relay, which has consumed `credited` of
// `delivered`.
size_t Room(uint64_t delivered, uint64_t credited) {
  HEADGATE_CHECK(credited <= delivered);
  return kWindowBytes - (delivered - credited);
}

// An upstream that the fuzzer plays, and how much of its answer it has sent.
struct FuzzedUpstream final : PlayedUpstream {
  void SendEnd(const http::Fields& trailers) override {
    PlayedUpstream::SendEnd(trailers);
    if (tunnel && answer_ended) receiver = nullptr;
  }
  bool wants_tunnel() const { return body.kind == Kind::kTunnel; }

  bool tunnel = false;
  bool head_sent = false;
  bool answer_ended = false;
  BodyLength answer_body;
  uint64_t answer_sent = 0;
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

class World final : RelayRig {
 public:
  explicit World(Choices& choices) : choices_(choices) {
    client.takes = false;
    options.attempts_max = 1 + choices.Next() % 3;
    http::RequestHead head{.method = choices.Of<std::string>({"GET", "POST", "PUT", "HEAD"}),
                           .target = "/",
                           .scheme = "http",
                           .authority = "a"};
    head.version = choices.Of({http::Version::kHttp11, http::Version::kHttp2});
    switch (choices.Next() % 4) {
      case 0:
        head.method = "GET";
        head.protocol = choices.Flip() ? "websocket" : "chat";
        wants_tunnel_ = true;
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
    Make(std::move(head));
    RequestEnd end;
    end.Add(std::make_unique<OneEnd>(told_), now);
    relay->SetEnd(std::move(end));
    relay->Begin(now);
  }

  void Run() {
    for (int steps = 0; steps < 1000 && !choices_.empty() && relay; ++steps) {
      Step();
      Check();
    }
    relay.reset();
    Check();
    HEADGATE_CHECK(admission.left.size() == 1 && waiting == nullptr);
    HEADGATE_CHECK(told_.ends == 1 && told_.bodies.request <= request_sent_ &&
                   told_.bodies.response <= client.sent);
    for (const auto& one : upstreams_)
      HEADGATE_CHECK(one->receiver == nullptr && one->left.size() == 1);
    uint64_t ended = 0;
    for (const base::Counter& outcome : counters.outcomes) ended += outcome.value();
    HEADGATE_CHECK(ended == 1);
  }

 private:
  FuzzedUpstream& MakePlace() {
    FuzzedUpstream& made = *upstreams_.emplace_back(std::make_unique<FuzzedUpstream>());
    made.takes = false;
    made.is_reused = choices_.Flip();
    made.http2 = choices_.Flip();
    return made;
  }
  Taken Take(Waiter& waiter, base::Instant) override {
    HEADGATE_CHECK(waiting == nullptr);
    switch (choices_.Next() % 4) {
      case 0:
        return {.refused = NoPlace::kQueueFull};
      case 1:
        waiting = &waiter;
        return {};
      default:
        return {.place = &MakePlace()};
    }
  }
  // Checks that the rig cannot make.
  void Check() const {
    Room(request_sent_, client.credited);
    HEADGATE_CHECK(!is_tunnel() || wants_tunnel_);
    for (const auto& one : upstreams_) {
      Room(one->answer_sent, one->credited);
      HEADGATE_CHECK(one->left.size() + (one->receiver != nullptr ? 1 : 0) == 1);
      HEADGATE_CHECK(one->tunnel || !one->wants_tunnel() || one->sent == 0);
    }
  }

  // The exchange that is open, or null.
  FuzzedUpstream* Open() {
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
        // Failures are rare, so that most exchanges get further.
        if (choices_.Next() % 8 == 0) ClientGoes();
        return;
      case 4:
        return PlaceComes();
      case 5:
        now += choices_.Of<base::Duration>({std::chrono::milliseconds(100), std::chrono::seconds(1),
                                            std::chrono::seconds(6), std::chrono::minutes(2),
                                            std::chrono::hours(2)});
        return wheel.Advance(now);
      default:
        if (FuzzedUpstream* const asked = Open(); asked != nullptr) UpstreamActs(*asked);
    }
  }

  bool is_tunnel() const { return client.body.kind == Kind::kTunnel; }
  bool may_send() const {
    return !request_ended_ &&
           (body_.kind == Kind::kUnsized || body_.kind == Kind::kSized || is_tunnel());
  }
  void ClientSends() {
    size_t size =
        std::min<size_t>(size_t{choices_.Next()} * 257, Room(request_sent_, client.credited));
    if (body_.kind == Kind::kSized) size = std::min<size_t>(size, body_.bytes - request_sent_);
    if (!may_send() || size == 0) return;
    request_sent_ += size;
    relay->OnData(std::string(size, 'x'), now);
  }
  void ClientEnds() {
    const bool complete = body_.kind != Kind::kSized || request_sent_ == body_.bytes;
    // A request for a tunnel ends with the tunnel, or with an answer that refuses it.
    const bool undecided = wants_tunnel_ && !client.begun;
    if (request_ended_ || !complete || undecided) return;
    request_ended_ = true;
    relay->OnEnd({}, now);
    Settle();
  }
  void ClientTakes() {
    const bool was_full = std::exchange(client.unsent, 0) >= kWindowBytes;
    if (was_full) relay->OnWritable(now);
  }
  void ClientGoes() {
    client.closed = true;
    relay->OnAbort(now);
    relay.reset();
  }
  // The session destroys the receiver once both directions have ended.
  void Settle() {
    if (client.ended && request_ended_) relay.reset();
  }

  void PlaceComes() {
    Waiter* const waiter = std::exchange(waiting, nullptr);
    if (waiter == nullptr) return;
    if (choices_.Flip()) return waiter->OnPlace(MakePlace(), now);
    waiter->OnNoPlace(choices_.Of({NoPlace::kRefused, NoPlace::kTimeout, NoPlace::kClosed,
                                   NoPlace::kUntrusted, NoPlace::kTlsFailed}),
                      "", now);
  }

  void UpstreamActs(FuzzedUpstream& asked) {
    http::ResponseReceiver& receiver = *asked.receiver;
    switch (choices_.Next() % 6) {
      case 0:
        if (asked.head_sent) return;
        return receiver.OnInformational({.status = choices_.Of({100, 103})}, now);
      case 1:
        return SendHead(asked);
      case 2: {
        size_t size = std::min<size_t>(size_t{choices_.Next()} * 257,
                                       Room(asked.answer_sent, asked.credited));
        if (asked.answer_body.kind == Kind::kSized)
          size = std::min<size_t>(size, asked.answer_body.bytes - asked.answer_sent);
        const bool has_body = asked.answer_body.kind != Kind::kNone;
        if (!asked.head_sent || asked.answer_ended || !has_body || size == 0) return;
        asked.answer_sent += size;
        return receiver.OnData(std::string(size, 'y'), now);
      }
      case 3: {
        const bool complete =
            asked.answer_body.kind != Kind::kSized || asked.answer_sent == asked.answer_body.bytes;
        if (!asked.head_sent || asked.answer_ended || !complete) return;
        asked.answer_ended = true;
        const bool open = asked.tunnel && !asked.ended;
        if (!open) asked.receiver = nullptr;
        receiver.OnEnd({}, now);
        return Settle();
      }
      case 4: {
        const bool was_full = std::exchange(asked.unsent, 0) >= kWindowBytes;
        if (was_full) receiver.OnWritable(now);
        return;
      }
      default: {
        if (choices_.Next() % 4 != 0) return;
        asked.receiver = nullptr;
        const auto failure = asked.head_sent
                                 ? http::Failure::kTruncated
                                 : choices_.Of({http::Failure::kNotSent, http::Failure::kNoAnswer,
                                                http::Failure::kNoTunnels, http::Failure::kInvalid,
                                                http::Failure::kTruncated});
        return receiver.OnFailed(failure, "", now);
      }
    }
  }

  void SendHead(FuzzedUpstream& asked) {
    if (std::exchange(asked.head_sent, true)) return;
    http::ResponseHead head{.status = choices_.Of({200, 204, 404, 503})};
    if (asked.wants_tunnel() && choices_.Flip()) {
      head = {.status = 101, .body = {.kind = Kind::kTunnel}};
      asked.tunnel = true;
    } else if (head.status == 200) {
      head.body.kind = choices_.Of({Kind::kNone, Kind::kSized, Kind::kUnsized});
      if (head.body.kind == Kind::kSized) head.body.bytes = uint64_t{choices_.Next()} * 1024;
    }
    asked.answer_body = head.body;
    asked.receiver->OnHead(std::move(head), now);
  }

  Choices& choices_;
  OneEnd::Told told_;
  bool wants_tunnel_ = false;
  BodyLength body_;
  uint64_t request_sent_ = 0;
  bool request_ended_ = false;
  std::vector<std::unique_ptr<FuzzedUpstream>> upstreams_;
};

}  // namespace
}  // namespace headgate::proxy

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  headgate::proxy::Choices choices(data, size);
  headgate::proxy::World(choices).Run();
  return 0;
}

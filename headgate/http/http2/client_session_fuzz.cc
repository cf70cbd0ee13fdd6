// Any frames of a server, and any calls of the user in between, cause no crash. Only valid
// responses reach a receiver, within its window, and each exchange ends exactly once.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/http/http2/client_session.h"
#include "headgate/http/http2/fuzz_script.h"

namespace {

using namespace headgate;
using namespace headgate::http;
using http2::FuzzScript;

class Receiver final : public ResponseReceiver {
 public:
  void OnInformational(const ResponseHead& head, base::Instant) override {
    HEADGATE_CHECK(open() && !answered_ && head.status >= 100 && head.status < 200);
  }
  void OnHead(ResponseHead head, base::Instant) override {
    HEADGATE_CHECK(open() && !std::exchange(answered_, true));
    tunnel_ = head.body.kind == BodyLength::Kind::kTunnel;
    HEADGATE_CHECK(tunnel_ ? head.status == 101 : head.status >= 200 && head.status <= 599);
    for (const auto [name, value] : head.fields) {
      HEADGATE_CHECK(name.find_first_of(": \r\nX") == name.npos && !name.empty());
      HEADGATE_CHECK(value.find_first_of(std::string_view("\r\n\0", 3)) == value.npos);
    }
  }
  void OnData(std::string_view bytes, base::Instant) override {
    HEADGATE_CHECK(open() && answered_ && !bytes.empty());
    unconsumed += bytes.size();
    HEADGATE_CHECK(unconsumed <= kWindowBytes);
  }
  void OnEnd(const Fields&, base::Instant) override {
    HEADGATE_CHECK(open() && answered_ && !std::exchange(ended_, true));
    if (!tunnel_) exchange = nullptr;
  }
  void OnFailed(Failure, std::string_view, base::Instant) override {
    HEADGATE_CHECK(open());
    exchange = nullptr;
  }
  void OnWritable(base::Instant) override {
    HEADGATE_CHECK(open() && exchange->unsent_bytes() < kWindowBytes);
  }
  bool open() const { return exchange != nullptr; }
  bool may_send() const { return open() && !sent_end && (!wants_tunnel || tunnel_); }

  ClientExchange* exchange = nullptr;
  size_t unconsumed = 0;
  uint64_t left = UINT64_MAX;  // of a sized request
  bool wants_tunnel = false;
  bool sent_end = false;
  bool tunnel_ended() const { return tunnel_ && ended_ && sent_end; }

 private:
  bool answered_ = false;
  bool ended_ = false;
  bool tunnel_ = false;
};

using Receivers = std::vector<std::unique_ptr<Receiver>>;

void Begin(http2::ClientSession& session, Receivers& receivers, uint32_t choice,
           base::Instant now) {
  if (session.free_places() == 0) return;
  RequestHead head{.version = Version::kHttp2};
  head.method = choice % 3 == 0 ? "HEAD" : "POST";
  head.target = "/";
  head.authority = "a.example";
  receivers.push_back(std::make_unique<Receiver>());
  Receiver& receiver = *receivers.back();
  receiver.wants_tunnel = choice % 5 == 0;
  if (receiver.wants_tunnel) {
    head.method = "GET";
    head.protocol = "websocket";
  } else if (choice % 4 == 1) {
    head.body = {BodyLength::Kind::kSized, choice};
    receiver.left = choice;
  } else if (choice % 4 == 2) {
    head.body.kind = BodyLength::Kind::kUnsized;
  } else {
    receiver.left = 0;
  }
  receiver.exchange = &session.Begin(head, receiver, now);
}

void Act(Receivers& receivers, FuzzScript& script) {
  if (receivers.empty()) return;
  Receiver& receiver = *receivers[script.Byte() % receivers.size()];
  const uint32_t choice = script.Byte();
  if (!receiver.open() || receiver.tunnel_ended()) return;
  if (choice % 4 == 0) {
    receiver.exchange->Consumed(std::exchange(receiver.unconsumed, 0));
  } else if (choice % 16 == 1) {
    std::exchange(receiver.exchange, nullptr)->Cancel();
  } else if (!receiver.may_send()) {
    return;
  } else if (choice % 4 == 2) {
    const auto size = std::min<uint64_t>(receiver.left, choice * 300);
    if (receiver.left != UINT64_MAX) receiver.left -= size;
    receiver.exchange->SendData(std::string(size, 'q'));
  } else {
    receiver.sent_end = true;
    receiver.exchange->SendEnd({});
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzScript script(data, size);
  http2::Counters counters;
  const http2::ClientOptions options{.streams_max = 8};
  Receivers receivers;
  http2::ClientSession session(options, counters);
  base::Instant now = base::Instant::FromNanos(0);
  http2::FrameLog log;
  (void)log.Read(std::string_view(session.output()).substr(http2::kPreface.size()));
  session.output().clear();
  if (script.Byte() % 8 != 0)
    session.OnBytes(http2::Settings(http2::Setting(8, script.Byte() % 2)), now);
  size_t unsent = 0;
  while (!script.done()) {
    switch (script.Byte() % 8) {
      case 0:
        Begin(session, receivers, script.Byte(), now);
        break;
      case 1:
        Act(receivers, script);
        break;
      case 2:
        session.OnBytes(script.Bytes(script.Byte()), now);
        break;
      case 3:
        unsent = script.Byte() % 2 == 0 ? 0 : unsent / 2;
        now += std::chrono::milliseconds(script.Byte());
        session.OnUnsent(unsent, now);
        break;
      default:
        session.OnBytes(script.NextFrame(false), now);
        break;
    }
    const std::string output = std::exchange(session.output(), {});
    unsent += output.size();
    HEADGATE_CHECK(unsent < 400'000);
    for (const std::string& line : log.Read(output))
      HEADGATE_CHECK(!line.starts_with("TYPE") && !line.ends_with(" invalid"));
  }
  session.OnBroken("the end", now);
  HEADGATE_CHECK(session.open_exchanges() == 0);
  for (const auto& receiver : receivers)
    HEADGATE_CHECK(!receiver->open() || receiver->tunnel_ended());
  return 0;
}

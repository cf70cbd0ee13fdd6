// Any frames, and any calls of the application in between, cause no crash and no unbounded buffer.
// Only valid requests reach the application, within their windows, and each ends exactly once.
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/http/http2/fuzz_script.h"
#include "headgate/http/http2/server_session.h"

namespace {

using namespace headgate;
using namespace headgate::http;
using http2::FuzzScript;

struct Record {
  ServerExchange* exchange = nullptr;
  RequestHead head;
  size_t unconsumed = 0;
  bool answered = false;
  bool response_ended = false;
  bool request_ended = false;
  bool aborted = false;
  uint64_t left = UINT64_MAX;  // of a sized response
  size_t sent = 0;
};

void CheckHead(const RequestHead& head) {
  HEADGATE_CHECK(!head.method.empty() && !head.authority.empty());
  HEADGATE_CHECK(head.method != "CONNECT");
  HEADGATE_CHECK(head.target.starts_with('/') || head.target == "*");
  for (const auto [name, value] : head.fields) {
    HEADGATE_CHECK(name.find_first_of(": \r\nX") == name.npos && !name.empty());
    HEADGATE_CHECK(value.find_first_of(std::string_view("\r\n\0", 3)) == value.npos);
    HEADGATE_CHECK(name != "host" && name != "connection" && name != "te");
  }
}

class Receiver final : public RequestReceiver {
 public:
  explicit Receiver(Record& record) : record_(record) {}
  ~Receiver() override {
    // A receiver is told about the end before it is destroyed, unless the application aborted.
    record_.exchange = nullptr;
  }
  void OnData(std::string_view bytes, base::Instant) override {
    HEADGATE_CHECK(!bytes.empty() && !record_.request_ended && !record_.aborted);
    record_.unconsumed += bytes.size();
    HEADGATE_CHECK(record_.unconsumed <= kWindowBytes);
  }
  void OnEnd(const Fields&, base::Instant) override {
    HEADGATE_CHECK(!record_.request_ended && !record_.aborted);
    record_.request_ended = true;
  }
  void OnAbort(base::Instant) override {
    HEADGATE_CHECK(!record_.aborted);
    record_.aborted = true;
  }
  void OnWritable(base::Instant) override {
    HEADGATE_CHECK(record_.exchange->unsent_bytes() < kWindowBytes);
  }

 private:
  Record& record_;
};

class FuzzApplication final : public Application {
 public:
  std::unique_ptr<RequestReceiver> OnRequest(RequestHead&& head, const net::Peer&,
                                             ServerExchange& exchange, base::Instant) override {
    CheckHead(head);
    records.push_back(std::make_unique<Record>());
    records.back()->exchange = &exchange;
    records.back()->head = std::move(head);
    return std::make_unique<Receiver>(*records.back());
  }
  std::vector<std::unique_ptr<Record>> records;
};

void Respond(Record& record, uint32_t choice) {
  ServerExchange& exchange = *record.exchange;
  if (record.response_ended) return;
  if (!record.answered) {
    if (choice % 8 == 0) return exchange.SendInformational({.status = 103});
    ResponseHead head{.status = choice % 8 == 1 ? 204 : 200};
    if (choice % 4 == 2) head.body = {BodyLength::Kind::kSized, choice};
    if (choice % 4 == 3) head.body.kind = BodyLength::Kind::kUnsized;
    if (!record.head.protocol.empty() && choice % 3 == 0)
      head = {.status = 101, .body = {.kind = BodyLength::Kind::kTunnel}};
    record.answered = true;
    record.left = head.body.kind == BodyLength::Kind::kSized ? choice : UINT64_MAX;
    return exchange.SendHead(head);
  }
  switch (choice % 4) {
    case 0: {
      Fields trailers;
      if (choice % 8 == 0) trailers.Add("x", "y");
      record.response_ended = true;
      return exchange.SendEnd(trailers);
    }
    case 1:
      record.response_ended = true;
      return exchange.Abort();
    default: {
      const auto size = std::min<uint64_t>(record.left, choice * 300);
      if (record.left != UINT64_MAX) record.left -= size;
      record.sent += size;
      return exchange.SendData(std::string(size, 'r'));
    }
  }
}

void Act(FuzzApplication& application, FuzzScript& script) {
  if (application.records.empty()) return;
  Record& record = *application.records[script.Byte() % application.records.size()];
  const uint32_t choice = script.Byte();
  if (record.exchange == nullptr) return;
  if (choice % 5 == 4) {
    record.exchange->Consumed(std::exchange(record.unconsumed, 0));
  } else {
    Respond(record, choice / 5);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzScript script(data, size);
  FuzzApplication application;
  {
    http2::Counters counters;
    const http2::ServerOptions options{.streams_max = 4, .linger_bytes_max = 1'000};
    http2::ServerSession session(application, options, net::Peer{}, counters);
    base::Instant now = base::Instant::FromNanos(0);
    http2::FrameLog log;
    const bool begins = script.Byte() % 8 != 0;
    std::string input;
    if (begins) input = std::string(http2::kPreface) + http2::Settings();
    size_t unsent = 0;
    bool closed = false;
    while (!script.done() && !closed) {
      switch (const uint32_t op = script.Byte() % 8) {
        case 0:
          Act(application, script);
          break;
        case 1:
          input += script.Bytes(script.Byte());
          break;
        case 2:
          unsent = script.Byte() % 2 == 0 ? 0 : unsent / 2;
          session.OnUnsent(unsent, now);
          break;
        case 3:
          now += std::chrono::milliseconds(script.Byte());
          if (script.Byte() % 16 == 0) session.OnDrain();
          break;
        default:
          input += script.NextFrame(true);
          if (op >= 6) continue;  // more at once
          break;
      }
      std::string output;
      const net::Session::Progress progress = session.OnBytes(input, output, now);
      HEADGATE_CHECK(progress.consumed == input.size());
      // Nothing lingers beyond its time.
      if (progress.call_at) {
        HEADGATE_CHECK(*progress.call_at > now &&
                       *progress.call_at <= now + options.linger_timeout);
      }
      input.clear();
      unsent += output.size();
      // The session adds DATA until 128 KiB are unsent, so at most one frame exceeds this; all
      // other output is small.
      HEADGATE_CHECK(unsent < 300'000);
      for (const std::string& line : log.Read(output))
        HEADGATE_CHECK(!line.starts_with("TYPE") && !line.ends_with(" invalid"));
      // A buffer at most doubles.
      size_t bytes_max = 4 * kWindowBytes;
      for (const auto& record : application.records) {
        if (record->exchange != nullptr) bytes_max += 2 * record->sent;
      }
      HEADGATE_CHECK(session.BufferedBytes() <= bytes_max);
      closed = progress.close;
    }
  }
  for (const auto& record : application.records) HEADGATE_CHECK(record->exchange == nullptr);
  return 0;
}

// Any bytes, in any portions, give the same requests and answers as all bytes at once. Requests
// that are accepted have no field of the connection, and are understood in the same way after they
// were written again: nothing can be smuggled through. The first byte chooses the bounds and the
// size of the portions; the second byte is their seed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/base/random.h"
#include "headgate/http/http1/server_session.h"

namespace {

using namespace headgate;
using namespace headgate::http;
using Kind = BodyLength::Kind;

constexpr base::Instant kNow = base::Instant::FromNanos(0);

struct Received {
  RequestHead head;
  std::string body{};
  Fields trailers{};
  bool ended = false;
  bool aborted = false;
};

std::string Text(const Fields& fields) {
  std::string text;
  for (const auto [name, value] : fields) text.append(name).append("\n").append(value).append("\n");
  return text;
}

std::string Text(const Received& received) {
  const RequestHead& head = received.head;
  std::string text = head.method + '\n' + head.authority + '\n' + head.target + '\n' +
                     head.protocol + '\n' + Text(head.fields) + '\n';
  text += std::to_string(static_cast<int>(head.body.kind)) + ' ' + std::to_string(head.body.bytes);
  text += head.expects_continue ? " continue" : "";
  text += head.accepts_trailers ? " trailers" : "";
  return text + '\n' + received.body + '\n' + Text(received.trailers) +
         (received.aborted ? "aborted"
          : received.ended ? "ended"
                           : "");
}

// Consumes in pieces that do not divide the window, and answers at the end, in one of many forms.
class Receiver final : public RequestReceiver {
 public:
  Receiver(std::shared_ptr<Received> received, ServerExchange& exchange)
      : received_(std::move(received)), exchange_(exchange) {}

  void OnData(std::string_view bytes, base::Instant /*now*/) override {
    HEADGATE_CHECK(!bytes.empty() && !received_->ended && !received_->aborted);
    received_->body += bytes;
    uncredited_ += bytes.size();
    HEADGATE_CHECK(uncredited_ <= kWindowBytes);
    if (uncredited_ > 1000) exchange_.Consumed(std::exchange(uncredited_, 0));
  }
  void OnEnd(const Fields& trailers, base::Instant /*now*/) override {
    HEADGATE_CHECK(!received_->ended && !received_->aborted);
    received_->ended = true;
    received_->trailers = trailers;
    if (received_->head.protocol.empty()) Answer();
  }
  void OnAbort(base::Instant /*now*/) override { received_->aborted = true; }
  void OnWritable(base::Instant /*now*/) override {}

  void Answer() {
    const size_t size = received_->body.size();
    ResponseHead head{.status = size % 5 == 4 ? 204 : 200, .fields = {}, .body = {}};
    head.body.kind = size % 3 == 0 ? Kind::kUnsized : Kind::kSized;
    if (head.body.kind == Kind::kSized) head.body.bytes = size;
    if (size % 2 == 0) exchange_.SendInformational({.status = 103, .fields = {}, .body = {}});
    exchange_.SendHead(head);
    exchange_.SendData(received_->body);
    exchange_.SendEnd(received_->trailers);
  }

 private:
  const std::shared_ptr<Received> received_;
  ServerExchange& exchange_;
  size_t uncredited_ = 0;
};

class Recorder final : public Application {
 public:
  std::unique_ptr<RequestReceiver> OnRequest(RequestHead&& head, const net::Peer& /*peer*/,
                                             ServerExchange& exchange,
                                             base::Instant /*now*/) override {
    HEADGATE_CHECK(!head.method.empty() && head.method != "CONNECT");
    HEADGATE_CHECK(head.target == "*" || head.target.starts_with('/'));
    for (const std::string_view name :
         {"Connection", "Host", "Content-Length", "Transfer-Encoding", "Keep-Alive", "TE",
          "Upgrade", "Expect", "Proxy-Connection", "Content_Length"}) {
      HEADGATE_CHECK(!head.fields.Find(name));
    }
    received.push_back(std::make_shared<Received>(Received{.head = std::move(head)}));
    auto receiver = std::make_unique<Receiver>(received.back(), exchange);
    // A tunnel is not opened.
    if (!received.back()->head.protocol.empty()) receiver->Answer();
    return receiver;
  }

  std::vector<std::shared_ptr<Received>> received;
};

struct Outcome {
  std::vector<std::shared_ptr<Received>> received;
  std::string output;
  bool close = false;

  std::string Requests() const {
    std::string text;
    for (const auto& request : received) text += Text(*request) + "\n----\n";
    return text;
  }
};

Outcome Feed(std::string_view input, size_t portion_max, uint64_t seed,
             const http1::ServerOptions& options) {
  Recorder recorder;
  Outcome outcome;
  {
    http1::ServerSession session(recorder, options, net::Peer{});
    base::Random random(seed);
    std::string rest;
    while (!input.empty() && !outcome.close) {
      const size_t portion = std::min<size_t>(input.size(), 1 + random.Below(portion_max));
      rest.append(input.substr(0, portion));
      input.remove_prefix(portion);
      net::Session::Progress progress;
      do {
        std::string output;
        progress = session.OnBytes(rest, output, kNow);
        HEADGATE_CHECK(progress.consumed <= rest.size());
        rest.erase(0, progress.consumed);
        outcome.output += output;
      } while (progress.more);
      outcome.close = progress.close;
      HEADGATE_CHECK(outcome.close || progress.stop_reading ||
                     rest.size() <= options.bounds.head_bytes_max);
      HEADGATE_CHECK(!progress.protocol_error || outcome.close);
    }
    // Before the session ends, which aborts an incomplete request.
    for (const auto& received : recorder.received)
      outcome.received.push_back(std::make_shared<Received>(*received));
  }
  for (const auto& received : recorder.received)
    HEADGATE_CHECK(received->ended || received->aborted);
  return outcome;
}

// Writes the complete requests as a proxy does, and reads them again.
void Rewrite(const Outcome& outcome) {
  std::string rewritten;
  std::string expected;
  for (const auto& request : outcome.received) {
    // HTTP/1.1 needs a host.
    if (!request->ended || request->head.authority.empty()) return;
    Received read = *request;
    if (read.head.body.kind == Kind::kNone && read.head.protocol.empty() &&
        (read.head.method == "POST" || read.head.method == "PUT" || read.head.method == "PATCH")) {
      read.head.body.kind = Kind::kSized;
    }
    http1::BodyWriter writer;
    http1::WriteRequestHead(request->head, writer, rewritten);
    writer.Write(request->body, rewritten);
    HEADGATE_CHECK(writer.End(&request->trailers, rewritten));
    expected += Text(read) + "\n----\n";
  }
  const http1::ServerOptions wide{.bounds = {.line_bytes_max = 1 << 20,
                                             .head_bytes_max = 1 << 20,
                                             .chunk_extra_bytes_max = 1 << 20,
                                             .fields_max = 200,
                                             .body_bytes_max = 1 << 30}};
  HEADGATE_CHECK(Feed(rewritten, rewritten.size() + 1, 0, wide).Requests() == expected);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 2, size - 2);
  http1::ServerOptions options;
  if ((data[0] & 0x80) != 0) {
    options.bounds = {.line_bytes_max = 48,
                      .head_bytes_max = 120,
                      .chunk_extra_bytes_max = 16,
                      .fields_max = 4,
                      .body_bytes_max = 24};
    options.never_nominated = {"X-Client-Id"};
  }
  const Outcome whole = Feed(input, input.size() + 1, 0, options);
  for (const size_t portion_max : {size_t{1}, size_t{1} + data[0] % 64}) {
    const Outcome parts = Feed(input, portion_max, data[1], options);
    HEADGATE_CHECK(whole.close == parts.close);
    HEADGATE_CHECK(whole.output == parts.output);
    HEADGATE_CHECK(whole.Requests() == parts.Requests());
  }
  Rewrite(whole);
  return 0;
}

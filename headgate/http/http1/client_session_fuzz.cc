// Any bytes of a server, in any portions, give the same response as all bytes at once: complete,
// failed, or cut off. A connection is used again only after a complete response, and with no byte
// left. The first byte chooses the request and the bounds; the second byte is the seed of the
// portions.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/base/random.h"
#include "headgate/http/http1/client_session.h"

namespace {

using namespace headgate;
using namespace headgate::http;

constexpr base::Instant kNow = base::Instant::FromNanos(0);

void Append(const Fields& fields, std::string& text) {
  for (const auto [name, value] : fields) text.append(name).append("\n").append(value).append("\n");
}

class Recorder final : public ResponseReceiver {
 public:
  explicit Recorder(http1::ClientSession& session) : session_(session) {}

  void OnInformational(const ResponseHead& head, base::Instant /*now*/) override {
    HEADGATE_CHECK(!over && !has_head_ && head.status >= 100 && head.status < 200);
    Append(head);
  }
  void OnHead(ResponseHead head, base::Instant /*now*/) override {
    HEADGATE_CHECK(!over && !has_head_ && (head.status >= 200 || head.status == 101));
    has_head_ = true;
    Append(head);
  }
  void OnData(std::string_view bytes, base::Instant /*now*/) override {
    HEADGATE_CHECK(!over && has_head_ && !bytes.empty());
    text += bytes;
    uncredited += bytes.size();
  }
  void OnEnd(const Fields& trailers, base::Instant /*now*/) override {
    HEADGATE_CHECK(!over && has_head_);
    over = true;
    ::Append(trailers, text);
    text += "end";
  }
  void OnFailed(Failure failure, std::string_view detail, base::Instant /*now*/) override {
    HEADGATE_CHECK(!over);
    over = true;
    HEADGATE_CHECK(session_.finished());
    text += std::to_string(static_cast<int>(failure)).append(detail);
  }
  void OnWritable(base::Instant /*now*/) override {}

  std::string text;
  size_t uncredited = 0;
  bool over = false;

 private:
  void Append(const ResponseHead& head) {
    text += std::to_string(head.status) + ' ' + std::to_string(static_cast<int>(head.body.kind)) +
            ' ' + std::to_string(head.body.bytes) + '\n';
    ::Append(head.fields, text);
    for (const std::string_view name :
         {"Connection", "Content-Length", "Transfer-Encoding", "Keep-Alive", "Upgrade"})
      HEADGATE_CHECK(!head.fields.Find(name));
  }

  http1::ClientSession& session_;
  bool has_head_ = false;
};

RequestHead Request(uint8_t choice) {
  RequestHead head;
  head.method = choice == 1 ? "HEAD" : choice == 2 ? "POST" : "GET";
  head.target = "/";
  head.authority = "a.example";
  if (choice == 3) head.protocol = "websocket";
  return head;
}

std::string Receive(std::string_view bytes, size_t portion_max, uint64_t seed,
                    const RequestHead& request, const Bounds& bounds) {
  http1::ClientSession session(bounds);
  Recorder recorder(session);
  ClientExchange& exchange = session.Begin(request, recorder, kNow);
  exchange.SendEnd({});
  session.output().clear();
  base::Random random(seed);
  while (!bytes.empty()) {
    const size_t portion = std::min<size_t>(bytes.size(), 1 + random.Below(portion_max));
    session.OnBytes(bytes.substr(0, portion), kNow);
    bytes.remove_prefix(portion);
    HEADGATE_CHECK(session.wants_input() || recorder.uncredited >= kWindowBytes);
    if (!recorder.over) exchange.Consumed(std::exchange(recorder.uncredited, 0));
    HEADGATE_CHECK(session.wants_input());
  }
  HEADGATE_CHECK(recorder.over == (session.open_exchanges() == 0));
  const bool usable = session.free_places() > 0;
  HEADGATE_CHECK(!usable || (recorder.over && !session.finished()));
  session.OnInputEnd(kNow);
  HEADGATE_CHECK(recorder.over && session.finished());
  return recorder.text + (usable ? " usable" : "");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  static constexpr Bounds kSmall{.line_bytes_max = 48,
                                 .head_bytes_max = 120,
                                 .chunk_extra_bytes_max = 16,
                                 .fields_max = 4,
                                 .body_bytes_max = 24};
  const Bounds& bounds = (data[0] & 0x80) != 0 ? kSmall : http1::kResponseBounds;
  const RequestHead request = Request(data[0] & 3);
  const std::string whole = Receive(bytes, bytes.size() + 1, 0, request, bounds);
  for (const size_t portion_max : {size_t{1}, size_t{1} + data[0] % 64})
    HEADGATE_CHECK(Receive(bytes, portion_max, data[1], request, bounds) == whole);
  return 0;
}

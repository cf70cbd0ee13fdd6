// Any bytes, in any portions, cause no crash and no unbounded buffer, and give the same answers as
// all bytes at once. The first byte chooses the bounds (small bounds are exceeded soon) and the
// size of the portions; the second byte is their seed.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/http/session.h"

namespace {

using namespace headgate;

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

struct Sum {
  void Add(std::string_view text) {
    for (const char c : text) value = static_cast<uint8_t>(31 * value + static_cast<uint8_t>(c));
  }
  void Add(const http::Request& request) {
    HEADGATE_CHECK(!request.method.empty());
    HEADGATE_CHECK(request.target == "*" || request.target.starts_with('/'));
    Add(request.method);
    Add(request.target);
    for (const auto& [name, text] : request.fields) {
      Add(name);
      Add(text);
    }
  }
  std::string Text() const { return std::to_string(value); }
  uint8_t value = 0;
};

// A text in parts of one byte.
class TextSource final : public http::BodySource {
 public:
  explicit TextSource(std::string text) : text_(std::move(text)) {}
  Next Read(size_t /*bytes_max*/, std::string& out, base::Instant /*now*/) override {
    out += text_[given_++];
    return given_ < text_.size() ? Next::kMore : Next::kEnd;
  }

 private:
  const std::string text_;
  size_t given_ = 0;
};

class SumSink final : public http::BodySink {
 public:
  explicit SumSink(const Sum& head) : sum_(head) {}
  Took Write(std::string_view part, base::Instant /*now*/) override {
    sum_.Add(part);
    return Took::kMore;
  }
  void Finish(http::Response& response, base::Instant /*now*/) override {
    response.stream = std::make_unique<TextSource>(sum_.Text());
  }

 private:
  Sum sum_;
};

// Reads every byte that it is given. Below /parts, bodies are sent and received in parts.
class SumHandler final : public http::Handler {
 public:
  void Handle(const http::Request& request, http::Response& response,
              base::Instant /*now*/) override {
    Sum sum;
    sum.Add(request);
    sum.Add(request.body);
    if (!InParts(request)) {
      response.body = sum.Text();
    } else {
      response.stream = std::make_unique<TextSource>(sum.Text());
    }
  }
  Reception Receive(const http::Request& head, http::Response& /*response*/,
                    base::Instant /*now*/) override {
    if (!InParts(head)) return {};
    Sum sum;
    sum.Add(head);
    return {.kind = Reception::Kind::kInParts, .sink = std::make_unique<SumSink>(sum)};
  }

 private:
  static bool InParts(const http::Request& request) { return request.target.starts_with("/parts"); }
};

struct Answers {
  std::string output;
  bool close = false;
};

// Splits into portions of 1 to `portion_max` bytes, derived from `portions`.
Answers Feed(std::string_view input, size_t portion_max, uint32_t portions,
             const http::Options& options) {
  SumHandler handler;
  http::Session session(handler, options, net::Peer{});
  Answers answers;
  std::string rest;
  while (!input.empty() && !answers.close) {
    portions = portions * 1'664'525 + 1'013'904'223;
    // Feed everything at once if `portion_max` exceeds the input.
    const size_t wanted =
        portion_max > input.size() ? input.size() : 1 + (portions >> 16) % portion_max;
    const size_t portion = std::min(input.size(), wanted);
    rest.append(input.substr(0, portion));
    input.remove_prefix(portion);
    net::Session::Progress progress;
    do {
      std::string output;
      progress = session.OnBytes(rest, output, base::Instant::FromNanos(0));
      HEADGATE_CHECK(progress.consumed <= rest.size());
      HEADGATE_CHECK(output.empty() || output.starts_with("HTTP/1.1 "));
      rest.erase(0, progress.consumed);
      // If the body has arrived already, no 100-continue is sent.
      if (output.ends_with(kContinue)) output.resize(output.size() - kContinue.size());
      answers.output += output;
    } while (progress.more);
    answers.close = progress.close;
    HEADGATE_CHECK(answers.close || rest.size() <= options.bounds.head_bytes_max);
  }
  return answers;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 2, size - 2);
  http::Options options;
  if ((data[0] & 0x80) != 0) {
    options.bounds = {.line_bytes_max = 32,
                      .head_bytes_max = 96,
                      .chunk_extra_bytes_max = 96,
                      .fields_max = 3,
                      .body_bytes_max = 16};
  }
  const Answers whole = Feed(input, input.size() + 1, 0, options);
  for (const size_t portion_max : {size_t{1}, size_t{1} + data[0] % 64}) {
    const Answers parts = Feed(input, portion_max, data[1], options);
    HEADGATE_CHECK(whole.close == parts.close);
    HEADGATE_CHECK(whole.output == parts.output);
  }
  return 0;
}

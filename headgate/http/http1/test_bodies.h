// For the tests of this folder: bodies in parts, controlled by the test.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/http/body.h"
#include "headgate/http/handler.h"

namespace headgate::http::http1 {

// The settings of a source, and its state as visible to the test.
struct SourceControl {
  uint64_t size = 0;  // size of the content, the letters a to z in turn
  // How much of the content is available; the test calls `wake` after raising it.
  uint64_t ready = UINT64_MAX;
  bool states_size = true;
  bool endless = false;
  bool breaks = false;  // after all available content
  std::function<void()> on_read = [] {};

  std::function<void()> wake{};
  uint64_t given = 0;
  bool alive = false;

  static std::string Content(uint64_t from, uint64_t to) {
    std::string content;
    for (uint64_t i = from; i < to; ++i) content += static_cast<char>('a' + i % 26);
    return content;
  }
};

class TestSource final : public BodySource {
 public:
  explicit TestSource(SourceControl& control) : control_(control) { control_.alive = true; }
  ~TestSource() override { control_.alive = false; }

  Next Read(size_t bytes_max, std::string& out, base::Instant) override {
    control_.on_read();
    const uint64_t until = std::min(control_.size, control_.ready);
    const uint64_t to = std::min(until, control_.given + bytes_max);
    out += SourceControl::Content(control_.given, to);
    control_.given = to;
    if (to < until) return Next::kMore;
    if (control_.breaks) return Next::kBroken;
    return to < control_.size || control_.endless ? Next::kLater : Next::kEnd;
  }
  std::optional<uint64_t> size_bytes() const override {
    return control_.states_size ? std::optional(control_.size) : std::nullopt;
  }
  bool endless() const override { return control_.endless; }

 private:
  SourceControl& control_;
};

// Answers from the source, but for /small.
class StreamingHandler final : public Handler {
 public:
  void Handle(const Request& request, Response& response, base::Instant) override {
    if (request.path() == "/small") {
      response.body = "small";
      return;
    }
    source.wake = request.suspension->wake;
    response.stream = std::make_unique<TestSource>(source);
  }
  SourceControl source;
};

}  // namespace headgate::http::http1

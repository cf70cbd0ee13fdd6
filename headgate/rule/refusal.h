// A custom body for answers that refuse a request because of a limit.
//
//   refusal:
//     content_type: application/json
//     body: '{"error":"rate_limited","rule":"${rule}","limit":${limit},"retry_after":${seconds}}'
//
// The body is a template with three placeholders; `$${` stands for `${` itself. Everything else is
// copied byte for byte. In JSON the name of the rule is escaped as in a JSON string, without
// quotes; in HTML and XML, as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"

namespace headgate::rule {

// A body is rendered for each refused request, so a large one would be a way to load the server.
inline constexpr size_t kRefusalBodyBytesMax = 16 * 1024;
inline constexpr size_t kContentTypeBytesMax = 128;

// The values of the placeholders.
struct Refused {
  std::string_view rule{};
  uint64_t limit = 0;
  // As in Retry-After. Absent if no wait helps: null in JSON, otherwise nothing.
  std::optional<uint64_t> seconds{};
};

// Immutable.
class Refusal {
 public:
  // InvalidArgument with a message that says which of the two is wrong, and why.
  static absl::StatusOr<Refusal> Make(std::string_view content_type, std::string_view body);

  const std::string& content_type() const { return content_type_; }
  // The template as it was written.
  const std::string& body() const { return body_; }
  void AppendBody(const Refused& refused, std::string& out) const;

  bool operator==(const Refusal& other) const {
    return content_type_ == other.content_type_ && body_ == other.body_;
  }

 private:
  enum class Escape : uint8_t { kNone, kJson, kMarkup };
  enum class Value : uint8_t { kText, kLimit, kSeconds, kRule };
  struct Part {
    Value value = Value::kText;
    std::string text{};  // of kText
  };

  absl::Status ReadParts();
  static Escape EscapeOf(std::string_view content_type);

  std::string content_type_;
  std::string body_;
  Escape escape_ = Escape::kNone;
  std::vector<Part> parts_;
};

}  // namespace headgate::rule

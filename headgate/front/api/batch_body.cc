#include "headgate/front/api/batch_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace headgate::front::api {
namespace {

constexpr std::string_view kBatchForm =
    R"(send {"checks": [CHECK, …]}, each CHECK as in /v1/check)";

class Scanner {
 public:
  explicit Scanner(std::string_view body) : body_(body) {}

  bool Take(std::string_view token) {
    SkipSpace();
    if (!body_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }

  // The object or array that begins here. Its brackets need not match in kind.
  std::optional<CheckText> TakeObject() {
    SkipSpace();
    if (at_ == body_.size() || body_[at_] != '{') return std::nullopt;
    const size_t begin = at_;
    size_t depth = 0;
    bool in_string = false;
    for (; at_ < body_.size(); ++at_) {
      const char c = body_[at_];
      if (in_string) {
        if (c == '\\') ++at_;
        in_string = c != '"';
      } else if (c == '"') {
        in_string = true;
      } else if (c == '{' || c == '[') {
        ++depth;
      } else if ((c == '}' || c == ']') && --depth == 0) {
        ++at_;
        return CheckText{.begin = begin, .size = at_ - begin};
      }
    }
    return std::nullopt;
  }

  bool AtEnd() {
    SkipSpace();
    return at_ == body_.size();
  }
  size_t at() const { return std::min(at_, body_.size()); }

 private:
  void SkipSpace() {
    while (at_ < body_.size() &&
           (body_[at_] == ' ' || body_[at_] == '\t' || body_[at_] == '\r' || body_[at_] == '\n'))
      ++at_;
  }

  const std::string_view body_;
  size_t at_ = 0;
};

}  // namespace

std::optional<BodyError> SplitChecks(std::string_view body, std::vector<CheckText>& checks) {
  checks.clear();
  Scanner scanner(body);
  const auto wrong = [&](std::string_view expected) {
    return BodyError{.detail = fmt::format("expected {} at byte {}", expected, scanner.at()),
                     .hint = std::string(kBatchForm)};
  };
  if (scanner.AtEnd())
    return BodyError{.detail = "the body is empty", .hint = std::string(kBatchForm)};
  if (!scanner.Take("{")) return wrong("an object");
  if (!scanner.Take("\"checks\"") || !scanner.Take(":")) return wrong("the only field 'checks'");
  if (!scanner.Take("[")) return wrong("an array of checks");
  if (scanner.Take("]"))
    return BodyError{.detail = "checks must not be empty", .hint = std::string(kBatchForm)};
  do {
    const std::optional<CheckText> check = scanner.TakeObject();
    if (!check) return wrong("a check that is an object");
    if (checks.size() == kChecksMax)
      return BodyError{.detail = fmt::format("more than {} checks", kChecksMax), .hint = ""};
    checks.push_back(*check);
  } while (scanner.Take(","));
  if (!scanner.Take("]")) return wrong("a comma or the end of the array");
  if (!scanner.Take("}") || !scanner.AtEnd()) return wrong("the end of the body");
  return std::nullopt;
}

}  // namespace headgate::front::api

#include "headgate/testing/line_reader.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "headgate/rule/duration.h"

namespace headgate::testing {
namespace {

constexpr std::string_view kSpaces = " \t\r\f\v";
constexpr std::string_view kDurationForm =
    "numbers, whole or decimal, with ns, us, ms, s, m, h or d: 10s, 1.5m, 1790000000s7ns";
// The longest quote of a word in a message.
constexpr size_t kQuotedMax = 60;

}  // namespace

std::optional<uint64_t> WholeNumber(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

LineReader::LineReader(uint32_t line, std::string_view text) : line_(line), text_(text) {
  Advance();
}

void LineReader::Advance() {
  size_t begin = std::min(text_.find_first_not_of(kSpaces, at_), text_.size());
  if (begin < text_.size() && text_[begin] == '#') begin = text_.size();
  at_ = std::min(text_.find_first_of(kSpaces, begin), text_.size());
  next_ = {text_.substr(begin, at_ - begin), static_cast<uint32_t>(begin + 1)};
}

Word LineReader::Take() {
  const Word word = next_;
  if (!done()) Advance();
  return word;
}

bool LineReader::TakeIf(std::string_view text) {
  if (done() || next_.text != text) return false;
  Advance();
  return true;
}

uint64_t LineReader::TakeNumber(std::string_view what, std::string_view hint) {
  const Word word = Take();
  const auto number = WholeNumber(word.text);
  if (!number) FailMissing(word, what, hint);
  return number.value_or(0);
}

base::Duration LineReader::TakeDuration(std::string_view what) {
  const Word word = Take();
  if (word.text.empty()) {
    FailMissing(word, what, kDurationForm);
    return base::Duration(0);
  }
  const auto duration = rule::ParseDuration(word.text);
  if (!duration.ok()) {
    Fail(word, fmt::format("{}: {}", what, std::string(duration.status().message())),
         kDurationForm);
    return base::Duration(0);
  }
  return *duration;
}

void LineReader::Fail(const Word& at, std::string message, std::string_view hint) {
  if (!failed()) problem_ = {line_, at.column, std::move(message), std::string(hint)};
  at_ = text_.size();
  next_ = {{}, static_cast<uint32_t>(text_.size() + 1)};
}

void LineReader::FailMissing(const Word& at, std::string_view what, std::string_view hint) {
  if (at.text.empty()) {
    Fail(at, fmt::format("expected {}, but the line ends here", what), hint);
  } else {
    Fail(at, fmt::format("expected {}, got \"{}\"", what, at.text.substr(0, kQuotedMax)), hint);
  }
}

}  // namespace headgate::testing

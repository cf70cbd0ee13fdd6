// Reads one line of a scenario, word by word. Keeps the first problem. After a problem the line
// counts as ended and every value reads as 0, so a parser need not check each value; it checks
// once, at the end.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/time.h"

namespace headgate::testing {

// A problem in the text of a scenario. Lines and columns (in bytes) count from 1.
struct ScenarioProblem {
  uint32_t line = 1;
  uint32_t column = 1;
  std::string message;
  std::string hint;
};

struct Word {
  std::string_view text;  // empty at the end of the line
  uint32_t column = 1;
};

// The value of `text` if it consists only of digits; empty otherwise, or if it exceeds 64 bits.
std::optional<uint64_t> WholeNumber(std::string_view text);

class LineReader {
 public:
  // Words are separated by spaces. A comment starts with a # at the beginning of a word, so a key
  // may contain a #.
  LineReader(uint32_t line, std::string_view text);

  // The word that Take would return.
  const Word& next() const { return next_; }
  bool done() const { return next_.text.empty(); }
  Word Take();
  bool TakeIf(std::string_view text);
  // `what` names the expected value in the message: "a burst".
  uint64_t TakeNumber(std::string_view what, std::string_view hint);
  base::Duration TakeDuration(std::string_view what);

  void Fail(const Word& at, std::string message, std::string_view hint);
  // Reports "expected `what`, got …" for an unexpected word.
  void FailMissing(const Word& at, std::string_view what, std::string_view hint);
  bool failed() const { return problem_.has_value(); }
  const std::optional<ScenarioProblem>& problem() const { return problem_; }

 private:
  void Advance();

  const uint32_t line_;
  std::string_view text_;
  size_t at_ = 0;
  Word next_;
  std::optional<ScenarioProblem> problem_;
};

}  // namespace headgate::testing

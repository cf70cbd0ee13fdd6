// One line of a scenario, word by word. The first thing that is wrong is kept; after it the line is
// at its end and every value read is 0, so that a parser reads straight on and looks once, at the
// end, whether all was well.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/time.h"

namespace headgate::testing {

// Something in the text that is no scenario. Lines and columns (bytes) count from 1.
struct ScenarioProblem {
  uint32_t line = 1;
  uint32_t column = 1;
  std::string message;
  std::string hint;
};

struct Word {
  std::string_view text;  // empty: the line ends here
  uint32_t column = 1;
};

// The number that `text` is, digits alone; nothing where it is none or has more than 64 bits.
std::optional<uint64_t> WholeNumber(std::string_view text);

class LineReader {
 public:
  // Words are parted by spaces. A comment begins with a # at the beginning of a word, so that a key
  // may contain one.
  LineReader(uint32_t line, std::string_view text);

  // The word that Take would return.
  const Word& next() const { return next_; }
  bool done() const { return next_.text.empty(); }
  Word Take();
  bool TakeIf(std::string_view text);
  // `what` says, for the message, what should stand here: "a burst".
  uint64_t TakeNumber(std::string_view what, std::string_view hint);
  base::Duration TakeDuration(std::string_view what);

  void Fail(const Word& at, std::string message, std::string_view hint);
  // "expected `what`, got …" for a word that is something else.
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

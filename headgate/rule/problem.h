// What is wrong with a rule file, for the person who wrote it. All problems of all files are collected; a bound keeps a
// hostile file from filling the log.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/rule/document.h"

namespace headgate::rule {

struct Problem {
  std::string file;
  uint32_t line = 1;    // from 1
  uint32_t column = 1;  // from 1, in characters
  std::string message;
  std::string hint;  // what to do about it, or empty
};

// "file:line:column: message", and on a second line "  hint: …". Control characters are shown, not sent.
std::string Describe(const Problem& problem);

// The same for several, each on lines of its own.
std::string Describe(const std::vector<Problem>& problems);

// At most so many are kept of one file; the last one says how many there were beyond.
inline constexpr size_t kProblemsPerFileMax = 100;

// The problems of one file.
class ProblemList {
 public:
  explicit ProblemList(std::string file) : file_(std::move(file)) {}

  void Add(Mark mark, std::string message, std::string hint = {});
  bool empty() const { return problems_.empty(); }
  // Whether another one would only be counted: time to stop looking for more.
  bool full() const { return problems_.size() >= kProblemsPerFileMax; }

  // In the order of the file, each once.
  std::vector<Problem> Take() &&;

 private:
  std::string file_;
  std::vector<Problem> problems_;
  size_t beyond_ = 0;
};

// Foreign text inside a message: whole, but for what would fill a screen ("…").
std::string Shown(std::string_view text);

// "did you mean 'rate_limit'?" where one of `words` is a slip of the finger away, else empty.
std::string DidYouMean(std::string_view text, const std::vector<std::string_view>& words);

}  // namespace headgate::rule

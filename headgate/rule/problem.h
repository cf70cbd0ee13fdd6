// Problems of rule files, described for the person who wrote them. All problems of all files are
// collected, up to a bound that keeps a hostile file from filling the log.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "headgate/rule/mark.h"

namespace headgate::rule {

struct Problem {
  std::string file;     // empty: not in a particular file
  uint32_t line = 1;    // from 1; 0: the file as a whole, for example if it cannot be read
  uint32_t column = 1;  // from 1, in characters
  std::string message;
  std::string hint;  // how to fix it, or empty
  // The number of problems that this one represents. More than 1 only in the last problem of a file
  // that has very many.
  size_t stands_for = 1;

  bool operator==(const Problem&) const = default;
};

// The number of problems, including the ones that were only counted.
size_t CountOf(std::span<const Problem> problems);

// A problem of a file as a whole.
Problem WholeFileProblem(std::string file, std::string message, std::string hint = {});

// "file:line:column: message", as far as the position is known. Control characters are escaped.
std::string PlaceAndMessage(const Problem& problem);

// PlaceAndMessage, and on a second line "  hint: …".
std::string Describe(const Problem& problem);

// Describe() for several problems, each on lines of its own.
std::string Describe(const std::vector<Problem>& problems);

// The most problems kept for one file. One more at the end gives the number of the others.
inline constexpr size_t kProblemsPerFileMax = 100;
// The most problems counted for one file. Beyond it, checking stops.
inline constexpr size_t kProblemsCountedMax = 100'000;

// The problems of one file.
class ProblemList {
 public:
  explicit ProblemList(std::string file) : file_(std::move(file)) {}

  void Add(Mark mark, std::string message, std::string hint = {});
  bool empty() const { return problems_.empty(); }
  // Whether to stop checking for more problems.
  bool full() const { return seen_.size() >= kProblemsCountedMax; }

  // All problems, once each, in the order of the file.
  std::vector<Problem> Take() &&;

 private:
  std::string file_;
  std::vector<Problem> problems_;
  absl::flat_hash_set<size_t> seen_;  // hashes of position and message
};

// Foreign text for a message: complete unless it would fill a screen, otherwise cut ("…").
std::string Shown(std::string_view text);

// Which of `words` was probably meant. It differs by at most two typing errors (and at most one per
// four letters), or equals `text` up to a '_' or '-' in it, or starts with `text` (at least four
// letters). Empty if there is none.
std::string_view NearestWord(std::string_view text, const std::vector<std::string_view>& words);

// "did you mean 'rate_limit'?", or empty.
std::string DidYouMean(std::string_view text, const std::vector<std::string_view>& words);

}  // namespace headgate::rule

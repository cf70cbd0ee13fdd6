// Problems of rule files, for the person who wrote them. All problems of all files are collected; a
// bound keeps a hostile file from filling the log.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "headgate/rule/document.h"

namespace headgate::rule {

struct Problem {
  std::string file;     // empty: no file in particular
  uint32_t line = 1;    // from 1; 0: the file as a whole, which could not be read for instance
  uint32_t column = 1;  // from 1, in characters
  std::string message;
  std::string hint;  // what to do about it, or empty
  size_t stands_for =
      1;  // how many problems this one says: more in the last one of a file that has very many

  bool operator==(const Problem&) const = default;
};

// How many there are, those that are only counted included.
size_t CountOf(std::span<const Problem> problems);

// A problem of a whole file.
Problem WholeFileProblem(std::string file, std::string message, std::string hint = {});

// "file:line:column: message", as far as the place is known. Control characters are shown, not
// sent.
std::string PlaceAndMessage(const Problem& problem);

// The same, and on a second line "  hint: …".
std::string Describe(const Problem& problem);

// The same for several, each on lines of its own.
std::string Describe(const std::vector<Problem>& problems);

// At most so many are kept of one file; one more at the end says how many others there are.
inline constexpr size_t kProblemsPerFileMax = 100;
// At most so many are counted of one file; then nobody looks for more.
inline constexpr size_t kProblemsCountedMax = 100'000;

// The problems of one file.
class ProblemList {
 public:
  explicit ProblemList(std::string file) : file_(std::move(file)) {}

  void Add(Mark mark, std::string message, std::string hint = {});
  bool empty() const { return problems_.empty(); }
  // Time to stop looking for more.
  bool full() const { return seen_.size() >= kProblemsCountedMax; }

  // In the order of the file, each once.
  std::vector<Problem> Take() &&;

 private:
  std::string file_;
  std::vector<Problem> problems_;
  absl::flat_hash_set<size_t> seen_;  // hashes of place and message
};

// Foreign text inside a message: whole, but for what would fill a screen ("…").
std::string Shown(std::string_view text);

// The one of `words` that was probably meant: a slip of the finger or two away (one in four
// letters), the beginning of `text` up to a '_' or '-', or begun by `text` (at least four letters).
// Empty if there is none.
std::string_view NearestWord(std::string_view text, const std::vector<std::string_view>& words);

// "did you mean 'rate_limit'?", or empty.
std::string DidYouMean(std::string_view text, const std::vector<std::string_view>& words);

}  // namespace headgate::rule

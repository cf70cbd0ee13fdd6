#include "headgate/rule/problem.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include "absl/hash/hash.h"
#include "headgate/rule/quote.h"

namespace headgate::rule {
namespace {

constexpr size_t kShownBytesMax = 200;
constexpr size_t kWordBytesMax = 48;
constexpr size_t kBeginningBytesMin = 4;

// The number of letters to insert, delete, replace or swap with their neighbour to turn one word
// into the other (optimal string alignment). Both words have at most kWordBytesMax bytes.
size_t EditDistance(std::string_view a, std::string_view b) {
  std::array<std::array<size_t, kWordBytesMax + 1>, kWordBytesMax + 1> distance{};
  for (size_t i = 0; i <= a.size(); ++i) distance[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) distance[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t change = distance[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      distance[i][j] = std::min({distance[i - 1][j] + 1, distance[i][j - 1] + 1, change});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        distance[i][j] = std::min(distance[i][j], distance[i - 2][j - 2] + 1);
      }
    }
  }
  return distance[a.size()][b.size()];
}

}  // namespace

Problem WholeFileProblem(std::string file, std::string message, std::string hint) {
  return {.file = std::move(file),
          .line = 0,
          .column = 0,
          .message = std::move(message),
          .hint = std::move(hint)};
}

std::string PlaceAndMessage(const Problem& problem) {
  std::string out = Printable(problem.file);
  if (problem.line != 0) out += fmt::format(":{}:{}", problem.line, problem.column);
  return fmt::format("{}{}{}", out, out.empty() ? "" : ": ", Printable(problem.message));
}

std::string Describe(const Problem& problem) {
  const std::string hint =
      problem.hint.empty() ? "" : fmt::format("\n  hint: {}", Printable(problem.hint));
  return PlaceAndMessage(problem) + hint;
}

std::string Describe(const std::vector<Problem>& problems) {
  std::string out;
  for (const Problem& problem : problems) out += Describe(problem) + "\n";
  return out;
}

void ProblemList::Add(Mark mark, std::string message, std::string hint) {
  // An alias reports the problems of its anchor again.
  if (full() || !seen_.insert(absl::HashOf(mark.line, mark.column, message)).second) return;
  if (problems_.size() >= kProblemsPerFileMax) return;
  problems_.push_back({.file = file_,
                       .line = mark.line,
                       .column = mark.column,
                       .message = std::move(message),
                       .hint = std::move(hint)});
}

std::vector<Problem> ProblemList::Take() && {
  std::stable_sort(problems_.begin(), problems_.end(), [&](const Problem& a, const Problem& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  if (const size_t beyond = seen_.size() - problems_.size(); beyond > 0) {
    const Problem& last = problems_.back();
    problems_.push_back(
        {.file = file_,
         .line = last.line,
         .column = last.column,
         .message = fmt::format("and {}{} more problem{}", full() ? "at least " : "", beyond,
                                beyond == 1 ? "" : "s"),
         .hint = "correct these first",
         .stands_for = beyond});
  }
  return std::move(problems_);
}

size_t CountOf(std::span<const Problem> problems) {
  size_t count = 0;
  for (const Problem& problem : problems) count += problem.stands_for;
  return count;
}

std::string Shown(std::string_view text) {
  if (text.size() <= kShownBytesMax) return std::string(text);
  return fmt::format("{}…", text.substr(0, kShownBytesMax));
}

std::string_view NearestWord(std::string_view text, const std::vector<std::string_view>& words) {
  if (text.empty() || text.size() > kWordBytesMax) return {};
  std::string_view nearest;
  size_t nearest_distance = 3;
  for (const std::string_view word : words) {
    if (word.size() > kWordBytesMax) continue;
    const size_t distance = EditDistance(text, word);
    // A short word is close to many others, so allow only one error per four letters.
    if (distance >= nearest_distance || distance * 4 > std::max(text.size(), word.size())) continue;
    nearest = word;
    nearest_distance = distance;
  }
  if (!nearest.empty()) return nearest;
  for (const std::string_view word : words) {
    const bool begins =
        text.starts_with(word) && (text[word.size()] == '_' || text[word.size()] == '-');
    if (begins && word.size() > nearest.size()) nearest = word;
  }
  if (!nearest.empty() || text.size() < kBeginningBytesMin) return nearest;
  for (const std::string_view word : words) {
    if (word.starts_with(text) && (nearest.empty() || word.size() < nearest.size())) nearest = word;
  }
  return nearest;
}

std::string DidYouMean(std::string_view text, const std::vector<std::string_view>& words) {
  const std::string_view nearest = NearestWord(text, words);
  return nearest.empty() ? std::string() : fmt::format("did you mean '{}'?", nearest);
}

}  // namespace headgate::rule

#include "headgate/rule/problem.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include "headgate/rule/quote.h"

namespace headgate::rule {
namespace {

constexpr size_t kShownBytesMax = 200;
constexpr size_t kWordBytesMax = 32;

// How many letters must be added, dropped, changed or swapped with their neighbour to make one word of the other
// (optimal string alignment). Both are at most kWordBytesMax long.
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

std::string Describe(const Problem& problem) {
  std::string out =
      fmt::format("{}:{}:{}: {}", Printable(problem.file), problem.line, problem.column, Printable(problem.message));
  if (!problem.hint.empty()) out += fmt::format("\n  hint: {}", Printable(problem.hint));
  return out;
}

std::string Describe(const std::vector<Problem>& problems) {
  std::string out;
  for (const Problem& problem : problems) out += Describe(problem) + "\n";
  return out;
}

void ProblemList::Add(Mark mark, std::string message, std::string hint) {
  if (problems_.size() >= kProblemsPerFileMax) {
    ++beyond_;
    return;
  }
  problems_.push_back({.file = file_,
                       .line = mark.line,
                       .column = mark.column,
                       .message = std::move(message),
                       .hint = std::move(hint)});
}

std::vector<Problem> ProblemList::Take() && {
  const auto order = [](const Problem& p) { return std::tie(p.line, p.column, p.message); };
  std::stable_sort(problems_.begin(), problems_.end(), [&](const Problem& a, const Problem& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  // An alias brings its anchor's problems once more.
  problems_.erase(std::unique(problems_.begin(), problems_.end(),
                              [&](const Problem& a, const Problem& b) { return order(a) == order(b); }),
                  problems_.end());
  if (beyond_ > 0) {
    const Problem& last = problems_.back();
    problems_.push_back({.file = file_,
                         .line = last.line,
                         .column = last.column,
                         .message = fmt::format("and {} more problems", beyond_),
                         .hint = {}});
  }
  return std::move(problems_);
}

std::string Shown(std::string_view text) {
  if (text.size() <= kShownBytesMax) return std::string(text);
  return fmt::format("{}…", text.substr(0, kShownBytesMax));
}

std::string DidYouMean(std::string_view text, const std::vector<std::string_view>& words) {
  if (text.empty() || text.size() > kWordBytesMax) return {};
  std::string_view nearest;
  size_t nearest_distance = 3;
  for (const std::string_view word : words) {
    if (word.size() > kWordBytesMax) continue;
    const size_t distance = EditDistance(text, word);
    // A short word is soon made of any other: one slip in four letters.
    if (distance >= nearest_distance || distance * 4 > std::max(text.size(), word.size())) continue;
    nearest = word;
    nearest_distance = distance;
  }
  return nearest.empty() ? std::string() : fmt::format("did you mean '{}'?", nearest);
}

}  // namespace headgate::rule

#include "headgate/base/line_diff.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace headgate::base {
namespace {

constexpr size_t kContext = 3;
// A larger table is not computed: everything between the first and the last difference is then
// shown as replaced.
constexpr size_t kTableMax = 1'000'000;

std::vector<std::string_view> LinesOf(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    lines.push_back(line);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return lines;
}

struct Step {
  char mark;  // ' ', '-' or '+'
  std::string_view line;
};

// The shortest way from one text to the other by a longest common subsequence of lines.
void AppendMiddle(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b,
                  size_t begin, size_t a_end, size_t b_end, std::vector<Step>& steps) {
  const size_t rows = a_end - begin;
  const size_t columns = b_end - begin;
  std::vector<uint32_t> common;  // lengths for the rests of both texts that begin at row and column
  const auto at = [&](size_t row, size_t column) -> uint32_t& {
    return common[row * (columns + 1) + column];
  };
  const bool small = (rows + 1) * (columns + 1) <= kTableMax;
  if (small) {
    common.assign((rows + 1) * (columns + 1), 0);
    for (size_t row = rows; row-- > 0;) {
      for (size_t column = columns; column-- > 0;) {
        at(row, column) = a[begin + row] == b[begin + column]
                              ? at(row + 1, column + 1) + 1
                              : std::max(at(row + 1, column), at(row, column + 1));
      }
    }
  }
  size_t row = 0;
  size_t column = 0;
  while (row < rows || column < columns) {
    if (small && row < rows && column < columns && a[begin + row] == b[begin + column]) {
      steps.push_back({' ', a[begin + row]});
      ++row;
      ++column;
    } else if (row < rows &&
               (column == columns || !small || at(row + 1, column) >= at(row, column + 1))) {
      steps.push_back({'-', a[begin + row++]});
    } else {
      steps.push_back({'+', b[begin + column++]});
    }
  }
}

std::vector<Step> StepsBetween(const std::vector<std::string_view>& a,
                               const std::vector<std::string_view>& b) {
  size_t begin = 0;
  while (begin < a.size() && begin < b.size() && a[begin] == b[begin]) ++begin;
  size_t a_end = a.size();
  size_t b_end = b.size();
  while (a_end > begin && b_end > begin && a[a_end - 1] == b[b_end - 1]) {
    --a_end;
    --b_end;
  }
  std::vector<Step> steps;
  for (size_t i = 0; i < begin; ++i) steps.push_back({' ', a[i]});
  AppendMiddle(a, b, begin, a_end, b_end, steps);
  for (size_t i = a_end; i < a.size(); ++i) steps.push_back({' ', a[i]});
  return steps;
}

// "10,3": three lines from line 10 on. If there are no lines, the number is the line before them.
std::string Place(size_t lines_before, size_t count) {
  return std::to_string(lines_before + (count > 0 ? 1 : 0)) + "," + std::to_string(count);
}

}  // namespace

std::string LineDiff(std::string_view before, std::string_view after) {
  const std::vector<std::string_view> a = LinesOf(before);
  const std::vector<std::string_view> b = LinesOf(after);
  const std::vector<Step> steps = StepsBetween(a, b);
  const auto differs = [&](size_t i) { return i < steps.size() && steps[i].mark != ' '; };
  std::string out;
  size_t i = 0;
  size_t old_line = 0;
  size_t new_line = 0;
  const auto pass = [&](const Step& step) {
    if (step.mark != '+') ++old_line;
    if (step.mark != '-') ++new_line;
  };
  while (i < steps.size()) {
    size_t first = i;
    while (first < steps.size() && !differs(first)) ++first;
    if (first == steps.size()) break;
    const size_t begin = std::max(i, first - std::min(first, kContext));
    // A part ends where the next difference is so far away that their contexts do not touch.
    size_t last = first;
    for (size_t next = first; next < steps.size() && next <= last + 2 * kContext + 1; ++next)
      if (differs(next)) last = next;
    const size_t end = std::min(last + 1 + kContext, steps.size());
    for (; i < begin; ++i) pass(steps[i]);
    const size_t old_begin = old_line;
    const size_t new_begin = new_line;
    std::string lines;
    for (; i < end; ++i) {
      pass(steps[i]);
      lines.append(1, steps[i].mark).append(steps[i].line).append("\n");
    }
    const size_t old_count = old_line - old_begin;
    const size_t new_count = new_line - new_begin;
    out.append("@@ -").append(Place(old_begin, old_count));
    out.append(" +").append(Place(new_begin, new_count)).append(" @@\n").append(lines);
  }
  return out;
}

}  // namespace headgate::base

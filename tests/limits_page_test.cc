// Checks that every setting, metric and test that docs/reference/limits.md names exists.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tests/source_dir.h"
#include "tests/tidy/source_tree.h"

namespace headgate::tidy {
namespace limits_page_test {

using ::testing::HasSubstr;

const std::vector<SourceFile>& Tree() {
  static const std::vector<SourceFile> tree = ReadTree(SourceDir());
  return tree;
}

const std::string& TextOf(std::string_view path) {
  static const std::string none;
  for (const SourceFile& file : Tree()) {
    if (file.path == path) return file.text;
  }
  ADD_FAILURE() << path << " is missing";
  return none;
}

std::string_view Trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(' ');
  return begin == text.npos ? std::string_view()
                            : text.substr(begin, text.find_last_not_of(' ') + 1 - begin);
}

// The cells of "| a | b |".
std::vector<std::string_view> Cells(std::string_view line) {
  std::vector<std::string_view> cells;
  for (line.remove_prefix(1); !line.empty();) {
    const size_t bar = line.find('|');
    if (bar == line.npos) break;
    cells.push_back(Trimmed(line.substr(0, bar)));
    line.remove_prefix(bar + 1);
  }
  return cells;
}

// The text between backticks.
std::vector<std::string> Names(std::string_view cell) {
  std::vector<std::string> names;
  while (true) {
    const size_t begin = cell.find('`');
    const size_t end = begin == cell.npos ? cell.npos : cell.find('`', begin + 1);
    if (end == cell.npos) return names;
    names.emplace_back(cell.substr(begin + 1, end - begin - 1));
    cell.remove_prefix(end + 1);
  }
}

// The cells of a column, from every row of every table that has the column.
struct Row {
  int line;
  std::string_view cell;
};
std::vector<Row> Column(std::string_view name) {
  std::vector<Row> rows;
  std::vector<std::string_view> head;
  for (const SourceLine& line : Lines(TextOf("docs/reference/limits.md"))) {
    if (!line.text.starts_with("|")) {
      head.clear();
      continue;
    }
    const std::vector<std::string_view> cells = Cells(line.text);
    if (head.empty()) {
      head = cells;
      continue;
    }
    if (cells[0].starts_with("---")) continue;
    EXPECT_EQ(cells.size(), head.size()) << "limits.md:" << line.number;
    for (size_t i = 0; i < std::min(cells.size(), head.size()); ++i) {
      if (head[i] == name) rows.push_back({line.number, cells[i]});
    }
  }
  EXPECT_FALSE(rows.empty()) << "docs/reference/limits.md has no column \"" << name << "\"";
  return rows;
}

// Settings of `headgate serve` have their names, those of `headgate sidecar` their flags.
TEST(LimitsPage, NamesSettingsThatExist) {
  const std::string& settings = TextOf("headgate/app/settings/settings_table.cc");
  const std::string& sidecar = TextOf("headgate/app/settings/sidecar_table.cc");
  for (const Row& row : Column("setting")) {
    const std::vector<std::string> names = Names(row.cell);
    EXPECT_TRUE(!names.empty() || row.cell == "fixed")
        << "limits.md:" << row.line << ": " << row.cell;
    for (std::string name : names) {
      const bool is_flag = name.starts_with("--");
      if (is_flag) name = name.substr(2);
      std::replace(name.begin(), name.end(), '-', '_');
      EXPECT_THAT(is_flag ? settings + sidecar : settings,
                  HasSubstr(fmt::format(".name = \"{}\"", name)))
          << "limits.md:" << row.line;
    }
  }
}

TEST(LimitsPage, NamesMetricsThatExist) {
  const std::string& catalog = TextOf("headgate/observe/catalog.cc");
  for (const Row& row : Column("metric")) {
    const std::vector<std::string> names = Names(row.cell);
    EXPECT_TRUE(!names.empty() || row.cell == "—") << "limits.md:" << row.line << ": " << row.cell;
    for (const std::string& name : names) {
      EXPECT_THAT(catalog, HasSubstr(fmt::format("\"{}\"", name))) << "limits.md:" << row.line;
    }
  }
}

// `Suite.Name` of a C++ test, or the name of a Python one.
bool IsTest(std::string_view name) {
  const size_t dot = name.find('.');
  for (const SourceFile& file : Tree()) {
    if (dot == name.npos) {
      if (file.path.ends_with(".py") &&
          file.text.find(fmt::format("def {}(", name)) != std::string::npos)
        return true;
      continue;
    }
    if (!file.path.ends_with("_test.cc")) continue;
    for (const std::string_view macro : {"TEST", "TEST_F", "TEST_P", "TYPED_TEST"}) {
      const std::string test =
          fmt::format("{}({}, {})", macro, name.substr(0, dot), name.substr(dot + 1));
      if (file.text.find(test) != std::string::npos) return true;
    }
  }
  return false;
}

TEST(LimitsPage, NamesTestsThatExist) {
  for (const std::string_view column : {"test", "tests"}) {
    for (const Row& row : Column(column)) {
      const std::vector<std::string> names = Names(row.cell);
      EXPECT_FALSE(names.empty()) << "limits.md:" << row.line << " names no test";
      for (const std::string& name : names) {
        EXPECT_TRUE(IsTest(name)) << "limits.md:" << row.line
                                  << " names a test that is not there: " << name;
      }
    }
  }
}

}  // namespace limits_page_test
}  // namespace headgate::tidy

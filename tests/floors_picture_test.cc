// Compares the picture of the floors in docs/internals/README.md with the dependencies in CMake.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/source_dir.h"
#include "tests/tidy/source_tree.h"

namespace headgate::tidy {
namespace floors_picture_test {

using Graph = std::map<std::string, std::set<std::string>>;

// The nodes that can be reached from each node. The picture leaves out arrows that follow from
// others, so only these sets can be compared.
Graph Closure(const Graph& direct) {
  Graph closure;
  for (const auto& [start, unused] : direct) {
    std::set<std::string>& reached = closure[start];
    std::vector<std::string> open = {start};
    while (!open.empty()) {
      const auto node = direct.find(open.back());
      open.pop_back();
      if (node == direct.end()) continue;
      for (const std::string& next : node->second) {
        if (reached.insert(next).second) open.push_back(next);
      }
    }
  }
  return closure;
}

// The USES of each `headgate_library(NAME … USES …)`.
Graph DependenciesInCMake() {
  Graph graph;
  for (const SourceFile& file : ReadTree(SourceDir())) {
    if (file.name() != "CMakeLists.txt" || file.folder().empty()) continue;
    const size_t begin = file.text.find("headgate_library(");
    if (begin == file.text.npos) continue;
    const size_t open = file.text.find('(', begin) + 1;
    std::istringstream words(file.text.substr(open, file.text.find(')', open) - open));
    std::string keyword;
    std::string name;
    for (std::string word; words >> word;) {
      if (word == "NAME" || word == "USES" || word == "LINKS" || word == "TEST_USES" ||
          word == "TEST_LINKS") {
        keyword = word;
      } else if (keyword == "NAME") {
        name = word;
        graph[name];
      } else if (keyword == "USES") {
        graph[name].insert(word);
      }
    }
  }
  return graph;
}

// The arrows of the first Mermaid drawing: "a --> b", where "a[front/api]" gives a node another
// name.
Graph DependenciesInThePicture(std::string_view page) {
  const size_t begin = page.find("```mermaid\n");
  const size_t end = page.find("```\n", begin + 3);
  if (begin == page.npos || end == page.npos) return {};
  std::map<std::string, std::string> names;
  std::vector<std::pair<std::string, std::string>> arrows;
  for (const SourceLine& line : Lines(page.substr(begin, end - begin))) {
    std::istringstream words{std::string(line.text)};
    std::string from, arrow, to;
    words >> from >> arrow >> to;
    if (arrow == "-->") arrows.emplace_back(from, to);
    if (const size_t bracket = from.find('['); bracket != from.npos && from.ends_with("]"))
      names[from.substr(0, bracket)] = from.substr(bracket + 1, from.size() - bracket - 2);
  }
  const auto name_of = [&](const std::string& node) {
    const auto name = names.find(node);
    return name == names.end() ? node : name->second;
  };
  Graph graph;
  for (const auto& [from, to] : arrows) {
    graph[name_of(from)].insert(name_of(to));
    graph[name_of(to)];
  }
  return graph;
}

TEST(FloorsPicture, ShowsTheDependenciesInCMake) {
  for (const SourceFile& file : ReadTree(SourceDir())) {
    if (file.path != "docs/internals/README.md") continue;
    const Graph shown = Closure(DependenciesInThePicture(file.text));
    const Graph actual = Closure(DependenciesInCMake());
    EXPECT_EQ(shown, actual) << "draw the missing arrows in docs/internals/README.md";
    return;
  }
  ADD_FAILURE() << "docs/internals/README.md is missing";
}

}  // namespace floors_picture_test
}  // namespace headgate::tidy

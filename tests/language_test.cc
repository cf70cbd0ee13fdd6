// The texts of the tree keep to plain English: phrases that readers stumble over, each with its
// replacement. CONTRIBUTING.md has the rule.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/source_dir.h"
#include "tests/tidy/prose.h"
#include "tests/tidy/source_tree.h"

namespace headgate::tidy {
namespace language_test {

enum Held : uint8_t { kEverywhere, kNotInOlderTexts };

struct Example {
  BannedPhrase phrase;
  std::string_view bad;   // a text in which the phrase is found
  std::string_view good;  // a text that looks similar and is correct
  Held held = kEverywhere;
};

// Texts that do not keep the newest rules yet.
constexpr std::array<std::string_view, 6> kOlderTexts = {
    "headgate/algorithm/fair_share",
    "headgate/http/",
    "headgate/limiter/",
    "headgate/share/",
    "docs/guides/sidecar.md",
    "docs/internals/leases.md",
};

const std::vector<Example>& Examples() {
  static const std::vector<Example> examples = {
      {{"so many|few", "write `this many`, `at most N`, or name the number"},
       "Serves so many connections at a time.",
       "Too many connections at a time; few are served."},
      {{"so much !as|more|less|better|worse|for|the", "write `this much`, or name the quantity"},
       "Ends earlier by so much.",
       "Costs not so much as a decision."},
      {{"so long", "write `this long`; `while` or `if` for a condition"},
       "A denial is remembered so long.",
       "A denial is remembered for this long, as long as it holds."},
      {{"^ of", "begin with the subject: `one of …`, `the … of …`"},
       "The table. Of equal records the older one.",
       "Out of equal records, one of the older ones."},
      {{"^ what !to|follows", "begin with the thing itself: `the … that …`"},
       "What nobody wants goes back.",
       "What is a lease? A share that one node spends alone. It says what follows."},
      {{"^ who", "name the person or program: `a client that …`, `the user who …`"},
       "Who asks waits.",
       "Who asks? The client who waits."},
      {{"for|to|of|by|with|from|than who|whoever", "name the person or program: `a client that …`"},
       "It is exclusive for who replaces it.",
       "It is for users who replace it, and says who did."},
      {{"^ where", "write `if` or `when`; `where` is for places"},
       "Where no rule applies, the request passes.",
       "Where does it go? It stays where it was."},
      {{"where none|nothing|nobody", "write `if none …`; `where` is for places", "place|places"},
       "Null where none applies.",
       "Null if none applies, wherever nothing is."},
      {{"where there is|are|was|were", "write `if there is …`; `where` is for places"},
       "False where there is no room.",
       "False if there is room."},
      {{"where no", "write `if no …`; `where` is for places"},
       "Empty where no file is named.",
       "Empty if no file is named."},
      {{", where it is|was|has|can|cannot|does", "write `if it …`; `where` is for places",
        "here|there"},
       "The second line, where it is not empty.",
       "The line is where it was."},
      {{"is|are|was|were|be no "
        "!longer|more|less|fewer|better|worse|later|earlier|larger|smaller|greater|higher|lower|"
        "different|use|need|faster|slower|older|newer|wider|shorter",
        "write `is not a …` or `does not …`", "there"},
       "An address is no name.",
       "There is no name, and the address is no longer needed."},
      {{"shall", "write `must`, `should` or `will`"},
       "The server shall answer.",
       "The server answers on the marshalled socket."},
      {{"is|are|was|were to be", "write `must be`, `should be` or `will be`"},
       "The lease is to be returned.",
       "The lease has to be returned."},
      {{"one and the same", "write `one` or `the same`"},
       "After one and the same delay.",
       "After the same delay."},
      {{"kin", "write `related …`, or name them"},
       "CL.THROTTLE and its kin.",
       "CL.THROTTLE and other kinds."},
      {{"store|server|redis is|was|were away", "write `unreachable` or `down`"},
       "While the store is away.",
       "While the store is far away, or unreachable."},
      {{"those who|that|whose|which", "name the thing: `the requests that …`, `a client that …`"},
       "Calls those that wait.",
       "Calls the entries that wait, and those of other loops.",
       kNotInOlderTexts},
      {{"go|goes|going|went|gone on", "write `continue`, or name the thing that happens"},
       "The old process goes on.",
       "The old process continues to serve, and goes away later.",
       kNotInOlderTexts},
      {{"under way", "write `in progress` or `in flight`"},
       "While a call is under way.",
       "While a call is in flight, or on its way.",
       kNotInOlderTexts},
      {{"anew", "write `again`, or name the new start"},
       "The window begins anew.",
       "The window begins again, like a new one.",
       kNotInOlderTexts},
      {{"as if never used", "write `full again` or `fresh` (headgate/algorithm/decide.h)"},
       "Until the bucket is as if never used.",
       "Until the bucket is full again, as if it had not been used.",
       kNotInOlderTexts},
      {{"only|a|the|one|another|each|0 look|looks", "a look that takes nothing is a `peek`"},
       "A cost of 0 looks, and the look is free.",
       "A cost of 0 peeks; the bucket only looked full.",
       kNotInOlderTexts},
      {{"for|of|than|with|from|in|by|beside|besides|beyond|after|before|into|behind|without what",
        "name the thing: `the bytes that …`, `the result of …`"},
       "More than what it asks for.",
       "It says what it asks for.",
       kNotInOlderTexts},
  };
  return examples;
}

bool IsHeldIn(const Example& example, std::string_view path) {
  const auto starts_path = [&](std::string_view place) { return path.starts_with(place); };
  if (example.held == kNotInOlderTexts &&
      std::any_of(kOlderTexts.begin(), kOlderTexts.end(), starts_path))
    return false;
  // The reference and the model define when a bucket is as if never used.
  return example.phrase.pattern != "as if never used" ||
         !(starts_path("docs/reference/") || starts_path("tests/model/"));
}

SourceFile File(std::string_view path, std::string_view text) {
  return {.path = std::string(path), .text = std::string(text), .code = {}};
}

// "path:line: `phrase`: what to write" for each that is found in the file.
std::vector<std::string> Found(const SourceFile& file) {
  std::vector<std::string> found;
  for (const Paragraph& paragraph : ProseOf(file)) {
    for (const Example& example : Examples()) {
      if (!IsHeldIn(example, file.path)) continue;
      const int line = FindPhrase(example.phrase, paragraph);
      if (line == 0) continue;
      found.push_back(fmt::format("{}:{}: `{}`: {}", file.path, line, example.phrase.pattern,
                                  example.phrase.instead));
    }
  }
  return found;
}

TEST(Language, NoPhraseIsUsedThatHasABetterOne) {
  for (const SourceFile& file : ReadTree(SourceDir())) {
    if (file.path == "tests/language_test.cc") continue;
    for (const std::string& message : Found(file)) ADD_FAILURE() << message;
  }
}

// A canary: a pattern that finds nothing would go unnoticed.
TEST(Language, EachPhraseIsFoundInItsExampleAndNotInTheCorrectOne) {
  for (const Example& example : Examples()) {
    const std::string expected =
        fmt::format("x.cc:2: `{}`: {}", example.phrase.pattern, example.phrase.instead);
    EXPECT_THAT(Found(File("x.cc", fmt::format("int a;\n// {}\n", example.bad))),
                ::testing::Contains(expected));
    EXPECT_THAT(Found(File("x.cc", fmt::format("int a;\n// {}\n", example.good))),
                ::testing::IsEmpty());
  }
}

TEST(Language, ReadsEveryKindOfComment) {
  const auto finds = [](std::string_view path, std::string_view text) {
    const std::vector<std::string> found = Found(File(path, text));
    return found.size() == 1 ? found.front().substr(0, found.front().find(": `")) : "";
  };
  EXPECT_EQ(finds("a.h", "int a;  // it shall be\n"), "a.h:1");
  EXPECT_EQ(finds("a.cc", "// serves so\n// many at once\n"), "a.cc:1") << "across lines";
  EXPECT_EQ(finds("a.py", "x = 1  # it shall be\n"), "a.py:1");
  EXPECT_EQ(finds("a.py", "\"\"\"A test.\n\nIt shall be.\n\"\"\"\n"), "a.py:3");
  EXPECT_EQ(finds("a.scenario", "# it shall be\n"), "a.scenario:1");
  EXPECT_EQ(finds("a.md", "# Title\n\ntext\n\n- an item that\n  shall be\n"), "a.md:6");
  EXPECT_EQ(finds("a.md", "| a | it shall be |\n"), "a.md:1");
}

TEST(Language, CodeQuotesAndHeadingsMaySayAnything) {
  EXPECT_THAT(Found(File("a.cc", "int shall = kin;\nauto b = \"who shall\";\n")),
              ::testing::IsEmpty());
  EXPECT_THAT(Found(File("a.cc", "// the word `shall` or \"one and the same\"\n")),
              ::testing::IsEmpty());
  EXPECT_THAT(Found(File("a.h", "//   a diagram: kin --shall--> kin\n")), ::testing::IsEmpty());
  EXPECT_THAT(Found(File("a.md", "## What it costs\n\n```\nshall\n```\n")), ::testing::IsEmpty());
  EXPECT_THAT(Found(File("a.json", "# shall")), ::testing::IsEmpty());
  EXPECT_THAT(Found(File("a.py", "A = \"\"\"shall\n\"\"\"\nshall = kin\n")), ::testing::IsEmpty());
  EXPECT_THAT(Found(File("a.py", "\"\"\"An example:\n\n    it shall\n\"\"\"\n")),
              ::testing::IsEmpty());
}

}  // namespace language_test
}  // namespace headgate::tidy

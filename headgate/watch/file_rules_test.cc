#include "headgate/watch/file_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/watch/temp_directory.h"

namespace headgate::watch {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

// Rules that only remember which text they were made of.
struct TextRules final : rule::RuleSet {
  explicit TextRules(std::string made_of) : text(std::move(made_of)) {}
  bool Find(std::string_view, std::span<const rule::Entry>, rule::Match&) const override { return false; }
  bool AllOrNothing(std::string_view) const override { return false; }
  std::span<const rule::Rule> rules() const override { return {}; }
  std::string text;
};

rule::Problem Bad(const std::string& file, uint32_t line) {
  return {.file = file, .line = line, .message = "bad", .hint = ""};
}

// A server as far as rules concern it: what is in force, and what it was told is wrong.
struct Server {
  explicit Server(std::string path)
      : source(
            {std::move(path)},
            [](std::span<const FileText> files) -> FileRules::Loaded {
              std::string text;
              for (const FileText& file : files) {
                if (file.text.starts_with("bad")) return {nullptr, {Bad(file.path, 1), Bad(file.path, 2)}};
                text += file.text;
              }
              return {std::make_shared<TextRules>(text), {}};
            },
            [this](std::shared_ptr<const rule::RuleSet> rules) {
              std::string text = static_cast<const TextRules&>(*rules).text;
              if (text == "too many limits") return absl::ResourceExhaustedError("too many different limits");
              in_force = std::move(text);
              return absl::OkStatus();
            },
            [this](const FileRules::Refusal& refusal) {
              problems.clear();
              for (const rule::Problem& problem : refusal.problems) problems.push_back(PlaceAndMessage(problem));
              awaited = refusal.awaited;
            }) {
    source.Step(now);
  }

  void RunASecond() {
    const base::Instant end = now + 1s;
    for (; now <= end; now = std::max(now, source.wake_at())) source.Step(now);
    now = end;
  }

  std::string in_force = "nothing";
  std::vector<std::string> problems;
  bool awaited = false;
  base::Instant now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  FileRules source;
};

TEST(FileRules, LoadsAtOnceAndFollows) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Server server(temp / "a.yaml");
  EXPECT_EQ(server.in_force, "one");
  EXPECT_EQ(server.source.loaded_at(), server.now);
  temp.Replace("a.yaml", "two");
  server.RunASecond();
  EXPECT_EQ(server.in_force, "two");
  EXPECT_EQ(server.source.loaded(), 2u);
  EXPECT_GT(*server.source.loaded_at(), server.now - 1s);
}

TEST(FileRules, ABadFileKeepsTheLastGoodRulesAndSaysAllThatIsWrong) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Server server(temp / "a.yaml");
  temp.Write("a.yaml", "bad");
  server.RunASecond();
  EXPECT_EQ(server.in_force, "one");
  EXPECT_THAT(server.problems, ElementsAre((temp / "a.yaml") + ":1:1: bad", (temp / "a.yaml") + ":2:1: bad"));
  EXPECT_EQ(server.source.refused(), 1u);
  EXPECT_EQ(server.source.problem_count(), 2u);

  temp.Write("a.yaml", "mended");
  server.RunASecond();
  EXPECT_EQ(server.in_force, "mended");
  EXPECT_EQ(server.source.problem_count(), 0u);
}

TEST(FileRules, GoingBackToTheLastGoodTextClearsTheProblem) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Server server(temp / "a.yaml");
  temp.Write("a.yaml", "bad");
  server.RunASecond();
  temp.Write("a.yaml", "one");
  server.RunASecond();
  EXPECT_EQ(server.in_force, "one");
  EXPECT_EQ(server.source.problem_count(), 0u);
}

TEST(FileRules, ADirectoryWithoutRuleFilesIsAwaited) {
  TempDirectory temp;
  Server server(temp.path());
  EXPECT_EQ(server.in_force, "nothing");
  EXPECT_TRUE(server.awaited);
  temp.Write("a.yaml", "bad");
  server.RunASecond();
  EXPECT_FALSE(server.awaited);
  temp.Write("a.yaml", "one");
  server.RunASecond();
  EXPECT_EQ(server.in_force, "one");
}

TEST(FileRules, APathThatIsNotThereIsNotAwaited) {
  TempDirectory temp;
  EXPECT_FALSE(Server(temp / "missing").awaited);
}

TEST(FileRules, FilesThatAreGoneAreNotNoRules) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Server server(temp.path());
  temp.Remove("a.yaml");
  server.RunASecond();
  EXPECT_EQ(server.in_force, "one");
  EXPECT_THAT(server.problems, ElementsAre(HasSubstr("no file *.yaml or *.yml in this directory")));
  temp.Remove("");
  server.RunASecond();
  EXPECT_EQ(server.in_force, "one");
  EXPECT_THAT(server.problems, ElementsAre(HasSubstr("No such file or directory")));
}

TEST(FileRules, OneBadFileOfADirectoryRefusesTheWhole) {
  TempDirectory temp;
  temp.Write("a.yaml", "a");
  temp.Write("b.yaml", "b");
  Server server(temp.path());
  temp.Write("a.yaml", "A");
  temp.Write("b.yaml", "bad");
  server.RunASecond();
  EXPECT_EQ(server.in_force, "ab");
}

TEST(FileRules, RulesThatCannotBePutInForceAreRefused) {
  TempDirectory temp;
  temp.Write("a.yaml", "one");
  Server server(temp / "a.yaml");
  temp.Write("a.yaml", "too many limits");
  server.RunASecond();
  EXPECT_EQ(server.in_force, "one");
  EXPECT_THAT(server.problems, ElementsAre("too many different limits"));
  EXPECT_EQ(server.source.loaded(), 1u);
  EXPECT_EQ(server.source.refused(), 1u);
}

TEST(FileRules, AStartWithoutFilesHasNoRulesUntilTheyAppear) {
  TempDirectory temp;
  Server server(temp / "a.yaml");
  EXPECT_EQ(server.in_force, "nothing");
  EXPECT_EQ(server.source.loaded_at(), std::nullopt);
  EXPECT_EQ(server.source.refused(), 1u);
  temp.Write("a.yaml", "one");
  server.RunASecond();
  EXPECT_EQ(server.in_force, "one");
}

}  // namespace
}  // namespace headgate::watch

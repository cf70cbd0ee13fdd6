#include "headgate/watch/rule_follower.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace headgate::watch {
namespace rule_follower_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Rules that only store the text they were made from.
struct TextRules final : rule::RuleSet {
  explicit TextRules(std::string made_of) : text(std::move(made_of)) {}
  bool Find(std::string_view, std::span<const rule::Entry>, rule::Match&) const override {
    return false;
  }
  std::span<const rule::Rule> rules() const override { return {}; }
  std::string text;
};

// A source whose documents the test sets.
class FakeSource final : public rule::Source {
 public:
  void Subscribe(OnDocuments on_documents) override { on_documents_ = std::move(on_documents); }
  void Refresh() override { ++refreshed; }
  std::optional<rule::SourceDocument> Place(std::string_view) const override { return {}; }
  void Read(std::string_view, OnDocument) override {}
  void Write(const rule::DocumentChange&, OnWritten) override {}
  bool documents_stand_alone() const override { return stand_alone; }
  void Confirm() override { ++confirmed; }
  Figures figures() const override { return own; }

  void Hold(std::initializer_list<std::string> texts) {
    rule::DocumentSet set;
    for (const std::string& text : texts)
      set.documents.push_back({.name = text, .text = text, .version = text});
    on_documents_(set);
  }
  // Documents of these names and texts.
  void HoldNamed(std::initializer_list<std::pair<std::string, std::string>> documents,
                 std::vector<rule::Problem> problems = {}) {
    rule::DocumentSet set{.documents = {}, .problems = std::move(problems)};
    for (const auto& [name, text] : documents)
      set.documents.push_back({.name = name, .text = text, .version = text});
    on_documents_(set);
  }
  void Fail(std::string message, bool awaited = false) {
    on_documents_({.documents = {},
                   .problems = {rule::WholeFileProblem("", std::move(message))},
                   .awaited = awaited});
  }

  Figures own;
  bool stand_alone = false;
  int refreshed = 0;
  int confirmed = 0;

 private:
  OnDocuments on_documents_;
};

// Stands for the server: the rules in force and the reported problems.
struct Server {
  explicit Server(size_t source_count) {
    std::vector<std::unique_ptr<rule::Source>> owned;
    for (size_t i = 0; i < source_count; ++i) {
      auto source = std::make_unique<FakeSource>();
      sources.push_back(source.get());
      owned.push_back(std::move(source));
    }
    follower = std::make_unique<RuleFollower>(
        std::move(owned), [](std::span<const rule::read::RuleFile> files) { return Load(files); },
        [this](const RuleFollower::Loaded& loaded, auto) { return Publish(*loaded.rules); },
        [this](const RuleFollower::Refusal& refusal) {
          problems.clear();
          for (const rule::Problem& problem : refusal.problems) problems.push_back(problem.message);
          awaited = refusal.awaited;
        });
    follower->Start();
  }

  // Loading fails if two documents have the same text, which is reported at the later one, or if
  // one contradicts the command line, which is reported there.
  static RuleFollower::Loaded Load(std::span<const rule::read::RuleFile> files) {
    RuleFollower::Loaded loaded;
    std::string text;
    for (const rule::read::RuleFile& file : files) {
      if (file.text.starts_with("BAD"))
        loaded.problems.push_back(rule::WholeFileProblem(std::string(file.name), file.text));
      if (file.text.starts_with("LINE"))
        loaded.problems.push_back(rule::WholeFileProblem("--rule", file.text));
      if (text.find(file.text) != std::string::npos) {
        loaded.problems.push_back(
            rule::WholeFileProblem(file.name == file.text ? "" : file.name, "twice " + file.text));
      }
      text += file.text;
    }
    if (loaded.problems.empty()) loaded.rules = std::make_shared<TextRules>(text);
    return loaded;
  }

  absl::Status Publish(const rule::RuleSet& rules) {
    const std::string& text = static_cast<const TextRules&>(rules).text;
    if (text == "too many limits") return absl::ResourceExhaustedError("too many different limits");
    in_force = text;
    return absl::OkStatus();
  }

  std::vector<FakeSource*> sources;
  std::unique_ptr<RuleFollower> follower;
  std::string in_force = "nothing";
  std::vector<std::string> problems;
  bool awaited = false;
};

TEST(RuleFollower, PublishesWhatASourceHoldsWhenItChanges) {
  Server server(1);
  EXPECT_FALSE(server.follower->heard_from_all());
  server.sources[0]->Hold({"a", "b"});
  EXPECT_TRUE(server.follower->heard_from_all());
  EXPECT_EQ(server.in_force, "ab");
  server.sources[0]->Hold({"c"});
  EXPECT_EQ(server.in_force, "c");
}

TEST(RuleFollower, WithoutASourceTheRulesOfNoDocumentAreInForce) {
  Server server(0);
  EXPECT_EQ(server.in_force, "");
  EXPECT_TRUE(server.follower->heard_from_all());
}

TEST(RuleFollower, OneBadDocumentRefusesAllOfItsSourceAndSaysAllThatIsWrong) {
  Server server(1);
  server.sources[0]->Hold({"a"});
  server.sources[0]->Hold({"b", "BAD 1", "BAD 2"});
  EXPECT_EQ(server.in_force, "a");
  EXPECT_THAT(server.problems, ElementsAre("BAD 1", "BAD 2"));
  EXPECT_EQ(server.follower->problem_count(), 2u);
  server.sources[0]->Hold({"b"});
  EXPECT_EQ(server.in_force, "b");
  EXPECT_EQ(server.follower->problem_count(), 0u);
}

TEST(RuleFollower, GoingBackToTheLastGoodTextClearsTheProblem) {
  Server server(1);
  server.sources[0]->Hold({"a"});
  server.sources[0]->Hold({"BAD"});
  server.sources[0]->Hold({"a"});
  EXPECT_EQ(server.in_force, "a");
  EXPECT_EQ(server.follower->problem_count(), 0u);
}

TEST(RuleFollower, ASourceThatHasNothingYetIsAwaited) {
  Server server(1);
  server.sources[0]->Fail("no rule file", true);
  EXPECT_EQ(server.in_force, "nothing");
  EXPECT_TRUE(server.awaited);
  EXPECT_TRUE(server.follower->heard_from_all());
  server.sources[0]->Hold({"BAD"});
  EXPECT_FALSE(server.awaited);
}

TEST(RuleFollower, ASourceThatCannotBeReadAnyMoreKeepsItsLastRules) {
  Server server(1);
  server.sources[0]->Hold({"a"});
  server.sources[0]->Fail("gone");
  EXPECT_EQ(server.in_force, "a");
  EXPECT_THAT(server.problems, ElementsAre("gone"));
}

TEST(RuleFollower, RulesThatCannotBePutInForceAreRefused) {
  Server server(1);
  server.sources[0]->Hold({"a"});
  server.sources[0]->Hold({"too many limits"});
  EXPECT_EQ(server.in_force, "a");
  EXPECT_THAT(server.problems, ElementsAre("too many different limits"));
}

TEST(RuleFollower, NothingIsInForceUntilEverySourceHasSaidWhatItHolds) {
  Server server(2);
  server.sources[1]->Hold({"b"});
  EXPECT_EQ(server.in_force, "nothing");
  EXPECT_THAT(server.problems, IsEmpty());
  server.sources[0]->Hold({"a"});
  EXPECT_EQ(server.in_force, "ab");
}

TEST(RuleFollower, ABadSourceDoesNotHoldUpTheOthers) {
  Server server(2);
  server.sources[0]->Hold({"a"});
  server.sources[1]->Hold({"b"});
  server.sources[0]->Hold({"BAD"});
  EXPECT_EQ(server.in_force, "ab");
  server.sources[1]->Hold({"c"});
  EXPECT_EQ(server.in_force, "ac");
  EXPECT_EQ(server.follower->problem_count(), 1u);
  server.sources[0]->Hold({"A"});
  EXPECT_EQ(server.in_force, "Ac");
  EXPECT_EQ(server.follower->problem_count(), 0u);
}

TEST(RuleFollower, ASourceThatCannotBeReadDoesNotHoldUpTheOthers) {
  Server server(2);
  server.sources[0]->Hold({"a"});
  server.sources[1]->Hold({"b"});
  server.sources[0]->Fail("gone");
  server.sources[1]->Hold({"c"});
  EXPECT_EQ(server.in_force, "ac");
  EXPECT_EQ(server.follower->problem_count(), 1u) << "the first source is still gone";
  server.sources[0]->Hold({"a"});
  EXPECT_EQ(server.follower->problem_count(), 0u);
}

TEST(RuleFollower, CountsTheProblemsOfAllSources) {
  Server server(2);
  server.sources[0]->Hold({"a"});
  server.sources[1]->Hold({"b"});
  server.sources[0]->Hold({"BAD 1", "BAD 2"});
  server.sources[1]->Hold({"BAD 3"});
  EXPECT_EQ(server.in_force, "ab");
  EXPECT_EQ(server.follower->problem_count(), 3u);
  server.sources[0]->Fail("gone");
  EXPECT_EQ(server.follower->problem_count(), 2u) << "its bad documents are gone, too";
  server.sources[0]->Hold({"c"});
  EXPECT_EQ(server.in_force, "cb");
  EXPECT_EQ(server.follower->problem_count(), 1u);
}

TEST(RuleFollower, AContradictionAtStartEndsWhenEitherSourceChanges) {
  Server server(2);
  server.sources[0]->Hold({"a"});
  server.sources[1]->Hold({"a"});
  EXPECT_EQ(server.in_force, "nothing");
  EXPECT_EQ(server.follower->problem_count(), 1u);
  server.sources[0]->Hold({"b"});
  EXPECT_EQ(server.in_force, "ba");
  EXPECT_EQ(server.follower->problem_count(), 0u);
}

TEST(RuleFollower, RulesThatContradictedAnotherSourceApplyOnceThatSourceHasChanged) {
  Server server(2);
  server.sources[0]->Hold({"a"});
  server.sources[1]->Hold({"b"});
  server.sources[0]->Hold({"b"});
  EXPECT_EQ(server.in_force, "ab");
  EXPECT_THAT(server.problems, ElementsAre("twice b"));
  server.sources[1]->Hold({"c"});
  EXPECT_EQ(server.in_force, "bc");
  EXPECT_EQ(server.follower->problem_count(), 0u);
}

TEST(RuleFollower, RefreshesAllSourcesAndSumsTheirFigures) {
  Server server(2);
  server.follower->Refresh();
  EXPECT_EQ(server.sources[0]->refreshed, 1);
  EXPECT_EQ(server.sources[1]->refreshed, 1);
  server.sources[0]->own = {.polling = false, .failures = 2};
  server.sources[1]->own = {.polling = true, .failures = 3};
  EXPECT_TRUE(server.follower->figures().polling);
  EXPECT_EQ(server.follower->figures().failures, 5u);
}

TEST(StandAlone, ABadDocumentIsRefusedAloneAndItsLastGoodTextStays) {
  Server server(1);
  server.sources[0]->stand_alone = true;
  server.sources[0]->HoldNamed({{"1", "a"}, {"2", "b"}, {"3", "c"}});
  server.sources[0]->HoldNamed({{"1", "A"}, {"2", "BAD"}, {"3", "c"}, {"4", "BAD too"}});
  EXPECT_EQ(server.in_force, "Abc");
  EXPECT_THAT(server.problems, ElementsAre("BAD", "BAD too"));
  EXPECT_EQ(server.follower->problem_count(), 2u);
  server.sources[0]->HoldNamed({{"1", "A"}, {"2", "B"}, {"3", "c"}});
  EXPECT_EQ(server.in_force, "ABc");
  EXPECT_EQ(server.follower->problem_count(), 0u);
}

TEST(StandAlone, AGoodTextThatNoLongerFitsGivesWay) {
  Server server(1);
  server.sources[0]->stand_alone = true;
  server.sources[0]->HoldNamed({{"1", "a"}, {"2", "b"}});
  // The last good text of "1" has moved to "2".
  server.sources[0]->HoldNamed({{"1", "BAD"}, {"2", "a"}});
  EXPECT_EQ(server.in_force, "ab");
  EXPECT_THAT(server.problems, ElementsAre("BAD", "twice a"));
}

TEST(StandAlone, NothingGoodIsNoRulesYet) {
  Server server(1);
  server.sources[0]->stand_alone = true;
  server.sources[0]->HoldNamed({{"1", "BAD"}});
  EXPECT_EQ(server.in_force, "nothing");
  server.sources[0]->HoldNamed({{"1", "BAD"}, {"2", "b"}});
  EXPECT_EQ(server.in_force, "b");
}

TEST(StandAlone, AllDocumentsMayGoOnceThereWereSome) {
  Server server(1);
  server.sources[0]->stand_alone = true;
  server.sources[0]->HoldNamed({{"1", "a"}});
  server.sources[0]->HoldNamed({});
  EXPECT_EQ(server.in_force, "");
}

TEST(StandAlone, WhatCannotBeReadDoesNotKeepTheOthersFromBeingLoaded) {
  Server server(1);
  server.sources[0]->stand_alone = true;
  server.sources[0]->HoldNamed({{"1", "a"}}, {rule::WholeFileProblem("2", "forbidden")});
  EXPECT_EQ(server.in_force, "a");
  EXPECT_THAT(server.problems, ElementsAre("forbidden"));
  EXPECT_EQ(server.follower->problem_count(), 1u);
}

TEST(StandAlone, ABadDocumentDoesNotBringBackOldDocumentsOfOtherSources) {
  Server server(2);
  server.sources[0]->stand_alone = true;
  server.sources[0]->HoldNamed({{"1", "a"}});
  server.sources[1]->Hold({"x"});
  server.sources[1]->Hold({"BAD x"});
  EXPECT_EQ(server.in_force, "ax");
  server.sources[0]->HoldNamed({{"1", "A"}, {"2", "BAD"}});
  EXPECT_EQ(server.in_force, "Ax") << "with the last good text of the other source";
  server.sources[1]->Hold({"y"});
  EXPECT_EQ(server.in_force, "Ay");
}

TEST(StandAlone, WhatIsInForceStaysIfANewDocumentContradictsIt) {
  Server server(1);
  server.sources[0]->stand_alone = true;
  server.sources[0]->HoldNamed({{"2", "b"}, {"3", "c"}});
  server.sources[0]->HoldNamed({{"1", "b"}, {"2", "b"}, {"3", "c"}, {"4", "d"}});
  EXPECT_EQ(server.in_force, "bcd");
  EXPECT_THAT(server.problems, ElementsAre("it contradicts 2, which is in force: twice b"));
  const rule::DocumentStates states = server.follower->States();
  EXPECT_FALSE(states.documents[0].in_force);
  EXPECT_EQ(states.documents[0].problems.size(), 1u);
  EXPECT_TRUE(states.documents[1].in_force);
  // The change of a document that is in force is refused in the same way.
  server.sources[0]->HoldNamed({{"2", "c"}, {"3", "c"}, {"4", "d"}});
  EXPECT_EQ(server.in_force, "bcd");
  server.sources[0]->HoldNamed({{"1", "b"}, {"2", "x"}, {"3", "c"}, {"4", "d"}});
  EXPECT_EQ(server.in_force, "bxcd") << "it fits now";
  EXPECT_EQ(server.follower->problem_count(), 0u);
}

TEST(StandAlone, FilesThatContradictADocumentInForceAreRefused) {
  Server server(2);
  server.sources[1]->stand_alone = true;
  server.sources[0]->Hold({"x"});
  server.sources[1]->HoldNamed({{"1", "y"}, {"2", "z"}});
  server.sources[0]->Hold({"y"});
  EXPECT_EQ(server.in_force, "xyz");
  EXPECT_THAT(server.problems, ElementsAre("it contradicts 1, which is in force: twice y"));
  server.sources[1]->HoldNamed({{"1", "w"}, {"2", "z"}});
  EXPECT_EQ(server.in_force, "ywz");
}

TEST(StandAlone, ADocumentThatContradictsTheCommandLineIsRefusedAlone) {
  Server server(1);
  server.sources[0]->stand_alone = true;
  server.sources[0]->HoldNamed({{"1", "a"}, {"2", "LINE"}});
  EXPECT_EQ(server.in_force, "a");
  server.sources[0]->HoldNamed({{"1", "A"}, {"2", "LINE"}, {"3", "c"}});
  EXPECT_EQ(server.in_force, "Ac");
  EXPECT_THAT(server.problems, ElementsAre("it contradicts --rule, which is in force: LINE"));
  EXPECT_EQ(server.follower->problem_count(), 1u);
}

TEST(RuleFollower, PassesTheConfirmationOfAnOperatorOn) {
  Server server(2);
  server.follower->Confirm();
  EXPECT_EQ(server.sources[0]->confirmed, 1);
  EXPECT_EQ(server.sources[1]->confirmed, 1);
}

}  // namespace rule_follower_test
}  // namespace headgate::watch

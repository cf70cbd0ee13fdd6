#include "headgate/watch/rule_editor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_replace.h"
#include "headgate/base/status_hint.h"
#include "headgate/rule/read/load.h"

namespace headgate::watch {
namespace rule_editor_test {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::string_view kTen =
    "domain: edge\ndescriptors:\n  - key: user\n    rate_limit: {unit: minute, requests_per_unit: "
    "10}\n";
constexpr std::string_view kTwenty =
    "domain: edge\ndescriptors:\n  - key: user\n    rate_limit: {unit: minute, requests_per_unit: "
    "20}\n";

// A source in memory. It publishes what is written, and can lose answers.
class MemorySource final : public rule::Source {
 public:
  void Subscribe(OnDocuments on_documents) override {
    on_documents_ = std::move(on_documents);
    Publish();
  }
  void Refresh() override {}
  void CatchUp(std::function<void()> done) override {
    if (std::exchange(behind_, false)) Publish();
    if (!caught_up) return done();
    *caught_up = std::move(done);
  }
  std::optional<rule::SourceDocument> Place(std::string_view name) const override {
    if (!name.starts_with("/rules/")) return std::nullopt;
    return rule::SourceDocument{.name = std::string(name), .text = {}, .version = {}};
  }
  absl::Status CheckRemoval(std::string_view) const override { return removal; }
  void Read(std::string_view name, OnDocument done) override {
    if (unreadable > 0) {
      --unreadable;
      return done(absl::UnavailableError("away"));
    }
    const auto found = documents.find(name);
    if (found == documents.end()) return done(absl::NotFoundError("no such document"));
    done(found->second);
  }
  void Write(const rule::DocumentChange& change, OnWritten done) override {
    ++writes;
    if (on_write) on_write();
    if (!write_status.ok()) return done(write_status);
    if (changes_before_writes > 0) {
      --changes_before_writes;
      Set(change.name, documents[change.name].text + "# somebody else\n");
    }
    if (lost == Lost::kRequest) {
      lost = Lost::kNothing;
      return done(absl::UnknownError("connection lost"));
    }
    const auto found = documents.find(change.name);
    const std::string version = found == documents.end() ? "" : found->second.version;
    if (version != change.expected_version) return done(absl::AbortedError("another version"));
    if (change.text) {
      Set(change.name, *change.text);
    } else {
      documents.erase(change.name);
      Publish();
    }
    if (lost == Lost::kAnswer) {
      lost = Lost::kNothing;
      return done(absl::UnknownError("connection lost"));
    }
    done(change.text ? documents[change.name].version : "");
  }
  Figures figures() const override { return {}; }
  bool awaits_confirmation() const override { return awaits; }
  void Confirm() override { confirmed = true; }

  std::vector<rule::SourceDocument> kept;  // in force although they were deleted
  bool awaits = false;
  bool confirmed = false;
  void Set(const std::string& name, std::string_view text) {
    documents[name] = {
        .name = name, .text = std::string(text), .version = "v" + std::to_string(++versions_)};
    lags ? void(behind_ = true) : Publish();
  }
  void Publish() {
    if (!on_documents_) return;
    rule::DocumentSet set;
    for (const auto& [name, document] : documents) set.documents.push_back(document);
    for (const rule::SourceDocument& document : kept)
      if (!documents.contains(document.name)) set.documents.push_back(document);
    on_documents_(set);
  }

  enum class Lost { kNothing, kRequest, kAnswer };
  std::map<std::string, rule::SourceDocument, std::less<>> documents;
  absl::Status removal;
  absl::Status write_status;
  Lost lost = Lost::kNothing;
  int unreadable = 0;
  int writes = 0;
  int changes_before_writes = 0;  // by somebody else
  bool lags = false;              // what is written is published at the next CatchUp
  std::optional<std::function<void()>> caught_up;  // if set, takes `done` of CatchUp
  std::function<void()> on_write;

 private:
  OnDocuments on_documents_;
  bool behind_ = false;
  int versions_ = 0;
};

class MemoryJournal final : public rule::Journal {
 public:
  explicit MemoryJournal(std::map<std::string, rule::Note>& notes) : notes_(notes) {}
  size_t text_bytes_max() const override { return 1'000'000; }
  void Put(const rule::Note& note, OnNoted done) override {
    if (status.ok()) notes_[note.id] = note;
    done(status);
  }
  void Read(std::string_view document, size_t count, OnNotes done) override {
    std::vector<rule::Note> found;
    for (auto note = notes_.rbegin(); note != notes_.rend() && found.size() < count; ++note)
      if (document.empty() || note->second.document == document) found.push_back(note->second);
    done(std::move(found));
  }
  absl::Status status;

 private:
  std::map<std::string, rule::Note>& notes_;
};

class RuleEditorTest : public ::testing::Test {
 protected:
  explicit RuleEditorTest(bool with_journal = true) {
    auto source = std::make_unique<MemorySource>();
    source_ = source.get();
    source_->Set("/rules/edge.yaml", kTen);
    std::vector<std::unique_ptr<rule::Source>> sources;
    sources.push_back(std::move(source));
    follower_ = std::make_unique<RuleFollower>(
        std::move(sources),
        [](std::span<const rule::read::RuleFile> files) {
          rule::read::LoadResult result = rule::read::LoadRules(files);
          return RuleFollower::Loaded{.rules = std::move(result.rules),
                                      .problems = std::move(result.problems)};
        },
        [this](const RuleFollower::Loaded& loaded, std::span<const rule::read::RuleFile>) {
          rules_ = loaded.rules;
          return absl::OkStatus();
        },
        [](const RuleFollower::Refusal&) {});
    follower_->Start();
    auto journal = with_journal ? std::make_unique<MemoryJournal>(notes_) : nullptr;
    journal_ = journal.get();
    editor_ = std::make_unique<RuleEditor>(
        *follower_, loop_, clock_,
        RuleEditor::Options{
            .journal = std::move(journal),
            .instance = "web-3",
            .rules = [this] { return rules_; },
            .count_live =
                [](auto& differences) {
                  for (auto& one : differences) one.live_buckets = 7;
                },
            .on_edited = [this](const rule::PastChange& change,
                                const absl::Status&) { told_.push_back(change.outcome); },
            .on_outcome_not_noted =
                [this](const rule::PastChange& change, const absl::Status&) {
                  told_.push_back(change.outcome + ", not noted");
                }});
  }

  rule::EditResult Put(std::string_view name, std::string_view text, std::string_view version,
                       rule::DryRun dry_run = rule::DryRun::kNo) {
    return Change({.change = {.name = std::string(name),
                              .text = std::string(text),
                              .expected_version = std::string(version)},
                   .author = {.user = "ann", .address = "10.0.0.7:4711"},
                   .dry_run = dry_run});
  }
  rule::EditResult Remove(std::string_view name, std::string_view version) {
    return Change({.change = {.name = std::string(name),
                              .text = {},
                              .expected_version = std::string(version)},
                   .author = {}});
  }
  rule::EditResult Change(const rule::Edit& edit) {
    std::optional<rule::EditResult> result;
    editor_->Change(edit, [&](rule::EditResult r) { result = std::move(r); });
    return Await(result);
  }
  rule::EditResult RollBack(const std::string& change, std::string_view version = "*") {
    std::optional<rule::EditResult> result;
    editor_->RollBack({.document = "/rules/edge.yaml",
                       .change = change,
                       .expected_version = std::string(version),
                       .author = {}},
                      [&](rule::EditResult r) { result = std::move(r); });
    return Await(result);
  }
  rule::EditResult Await(std::optional<rule::EditResult>& result) {
    loop_.RunUntil([&] { return result.has_value(); }, 60s);
    return result.value_or(rule::EditResult{.status = absl::DeadlineExceededError("no result")});
  }
  std::vector<rule::PastChange> History() {
    std::vector<rule::PastChange> changes;
    editor_->History("", 100, [&](absl::StatusOr<std::vector<rule::PastChange>> found) {
      if (found.ok()) changes = *found;
    });
    return changes;
  }
  std::string InForce() const {
    const auto& limits = rules_->rules()[0].limits;
    return std::to_string(limits[0].limit.spec().requests);
  }

  base::SystemClock clock_;
  net::EventLoop loop_{clock_};
  std::map<std::string, rule::Note> notes_;
  MemorySource* source_ = nullptr;
  MemoryJournal* journal_ = nullptr;
  std::shared_ptr<const rule::RuleSet> rules_;
  std::unique_ptr<RuleFollower> follower_;
  std::unique_ptr<RuleEditor> editor_;
  std::vector<std::string> told_;
};

TEST_F(RuleEditorTest, WritesAValidDocumentAndNotesWhoDidIt) {
  const rule::EditResult result = Put("/rules/edge.yaml", kTwenty, "v1");
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.version, "v2");
  EXPECT_EQ(InForce(), "20");
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(result.differences[0].before->limits[0].limit.spec().requests, 10u);
  EXPECT_EQ(result.differences[0].after->limits[0].limit.spec().requests, 20u);
  EXPECT_EQ(result.differences[0].live_buckets, 7u);

  const std::vector<rule::PastChange> history = History();
  ASSERT_EQ(history.size(), 1u);
  EXPECT_EQ(history[0].user, "ann");
  EXPECT_EQ(history[0].address, "10.0.0.7:4711");
  EXPECT_EQ(history[0].action, "put");
  EXPECT_EQ(history[0].outcome, "done");
  EXPECT_EQ(history[0].old_version, "v1");
  EXPECT_EQ(history[0].new_version, "v2");
  EXPECT_EQ(history[0].old_text, kTen);
  EXPECT_EQ(history[0].new_text, kTwenty);
}

TEST_F(RuleEditorTest, WhoeverComesSecondDoesNotWin) {
  EXPECT_TRUE(Put("/rules/edge.yaml", kTwenty, "v1").status.ok());
  EXPECT_TRUE(absl::IsAborted(Put("/rules/edge.yaml", kTen, "v1").status));
  EXPECT_EQ(InForce(), "20");
  EXPECT_TRUE(absl::IsAborted(Put("/rules/edge.yaml", kTen, "").status));
  EXPECT_TRUE(absl::IsAborted(Put("/rules/other.yaml", kTen, "v9").status));
  EXPECT_TRUE(absl::IsAborted(Put("/rules/other.yaml", kTen, "*").status));
  EXPECT_EQ(History().size(), 1u);
}

TEST_F(RuleEditorTest, RefusesADocumentWithAProblemBeforeItIsWritten) {
  const rule::EditResult result = Put("/rules/edge.yaml", "domain: edge\nlimits: 3\n", "v1");
  EXPECT_TRUE(absl::IsInvalidArgument(result.status));
  ASSERT_FALSE(result.problems.empty());
  EXPECT_EQ(result.problems[0].file, "/rules/edge.yaml");
  EXPECT_EQ(source_->writes, 0);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(RuleEditorTest, ADryRunChangesAndNotesNothing) {
  const rule::EditResult result = Put("/rules/edge.yaml", kTwenty, "v1", rule::DryRun::kYes);
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.differences.size(), 1u);
  EXPECT_EQ(source_->writes, 0);
  EXPECT_TRUE(notes_.empty());
}

TEST_F(RuleEditorTest, TheSameTextIsNoChange) {
  const rule::EditResult result = Put("/rules/edge.yaml", kTen, "v1");
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.version, "v1");
  EXPECT_EQ(source_->writes, 0);
}

TEST_F(RuleEditorTest, AnotherDocumentsProblemDoesNotStandInTheWayOfMendingThisOne) {
  source_->Set("/rules/a.yaml", "domain: [");
  source_->Set("/rules/b.yaml", "domain: {");
  const rule::EditResult result =
      Put("/rules/a.yaml", "domain: a\n", source_->documents["/rules/a.yaml"].version);
  EXPECT_TRUE(result.status.ok()) << result.status;
  ASSERT_EQ(result.others.size(), 1u);
  EXPECT_EQ(result.others[0].file, "/rules/b.yaml");
  // It would break a rule of another document that is good now.
  const rule::EditResult twice = Put("/rules/c.yaml", kTen, "");
  EXPECT_TRUE(absl::IsInvalidArgument(twice.status)) << twice.status;
}

TEST_F(RuleEditorTest, AChangeHasToFitToTheOneThatWasWrittenAMomentAgo) {
  source_->lags = true;
  EXPECT_TRUE(Put("/rules/x.yaml", "domain: zz\n", "").status.ok());
  const rule::EditResult twice = Put("/rules/y.yaml", "domain: zz\n", "");
  EXPECT_TRUE(absl::IsInvalidArgument(twice.status)) << twice.status;
  ASSERT_FALSE(twice.problems.empty());
  EXPECT_FALSE(source_->documents.contains("/rules/y.yaml"));
  // A name that is free again can be used at once.
  EXPECT_TRUE(Put("/rules/x.yaml", "domain: other\n", "*").status.ok());
  EXPECT_TRUE(Put("/rules/y.yaml", "domain: zz\n", "").status.ok());
}

TEST_F(RuleEditorTest, FindsARuleInADocumentThatWasWrittenAMomentAgo) {
  source_->lags = true;
  EXPECT_TRUE(Put("/rules/new.yaml", "domain: fresh\n", "").status.ok());
  std::optional<rule::EditResult> result;
  editor_->ChangeRule({.rule = {.domain = "fresh", .entries = {{.key = "user", .value = {}}}},
                       .action = rule::RuleAction::kPut,
                       .text = "{rate_limit: {unit: minute, requests_per_unit: 20}}",
                       .expected_version = "",
                       .author = {}},
                      [&](rule::EditResult r) { result = std::move(r); });
  EXPECT_TRUE(Await(result).status.ok());
  absl::StatusOr<rule::SourceDocument> read;
  editor_->ReadRule({.domain = "fresh", .entries = {{.key = "user", .value = {}}}},
                    [&](absl::StatusOr<rule::SourceDocument> document) { read = document; });
  EXPECT_TRUE(read.ok()) << read.status();
}

TEST_F(RuleEditorTest, ChangesWaitForTheOneThatIsUnderWay) {
  source_->lags = true;
  source_->caught_up.emplace();
  std::vector<std::string> ended;
  const auto put = [&](const std::string& name) {
    editor_->Change(
        {.change = {.name = name, .text = "domain: zz\n", .expected_version = ""}, .author = {}},
        [&ended, name](const rule::EditResult& result) {
          ended.push_back(name + (result.status.ok() ? " done" : " refused"));
        });
  };
  put("/rules/x.yaml");
  put("/rules/y.yaml");
  for (size_t i = 0; i < 1'000; ++i) put("/rules/z.yaml");
  EXPECT_EQ(ended, std::vector<std::string>{"/rules/z.yaml refused"}) << "too many wait";
  const auto catch_up = std::exchange(source_->caught_up, std::nullopt);
  (*catch_up)();
  ASSERT_EQ(ended.size(), 1'002u);
  EXPECT_EQ(ended[1], "/rules/x.yaml done");
  EXPECT_EQ(ended[2], "/rules/y.yaml refused");
  EXPECT_EQ(ended.back(), "/rules/z.yaml refused");
}

TEST_F(RuleEditorTest, ASecondYamlDocumentIsRefused) {
  const std::string two = std::string(kTwenty) + "---\ndomain: other\n";
  const rule::EditResult result = Put("/rules/edge.yaml", two, "v1");
  EXPECT_TRUE(absl::IsInvalidArgument(result.status)) << result.status;
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0].line, 5u);
  EXPECT_EQ(result.problems[0].message, "error loading config file: yaml: more than one document");
  EXPECT_EQ(source_->writes, 0);
  // A mark before the only document, and one behind it, are part of it.
  EXPECT_TRUE(Put("/rules/edge.yaml", "---\n" + std::string(kTwenty) + "...\n", "v1").status.ok());
}

TEST_F(RuleEditorTest, NothingIsChangedIfItCannotBeNoted) {
  journal_->status = absl::UnavailableError("disk full");
  const rule::EditResult result = Put("/rules/edge.yaml", kTwenty, "v1");
  EXPECT_TRUE(absl::IsUnavailable(result.status));
  EXPECT_THAT(std::string(result.status.message()), HasSubstr("disk full"));
  EXPECT_EQ(source_->writes, 0);
}

TEST_F(RuleEditorTest, AFailedWriteIsNotedAsFailed) {
  source_->write_status = absl::UnavailableError("read-only file system");
  EXPECT_TRUE(absl::IsUnavailable(Put("/rules/edge.yaml", kTwenty, "v1").status));
  ASSERT_EQ(History().size(), 1u);
  EXPECT_EQ(History()[0].outcome, "failed");
  EXPECT_EQ(told_, std::vector<std::string>{"failed"});
}

TEST_F(RuleEditorTest, FindsOutWhatBecameOfAWriteWithoutAnAnswer) {
  source_->lost = MemorySource::Lost::kAnswer;
  const rule::EditResult applied = Put("/rules/edge.yaml", kTwenty, "v1");
  EXPECT_TRUE(applied.status.ok()) << applied.status;
  EXPECT_EQ(applied.version, "v2");
  EXPECT_EQ(source_->writes, 1);

  source_->lost = MemorySource::Lost::kRequest;
  source_->unreadable = 0;
  const rule::EditResult repeated = Put("/rules/edge.yaml", kTen, "v2");
  EXPECT_TRUE(repeated.status.ok()) << repeated.status;
  EXPECT_EQ(source_->writes, 3);
  EXPECT_EQ(InForce(), "10");
}

TEST_F(RuleEditorTest, ARemovalHasToTakeTheRulesAway) {
  source_->removal = absl::FailedPreconditionError("it is the last one");
  EXPECT_TRUE(absl::IsFailedPrecondition(Remove("/rules/edge.yaml", "v1").status));
  source_->removal = absl::OkStatus();
  source_->Set("/rules/more.yaml", "domain: more\n");
  const rule::EditResult result = Remove("/rules/edge.yaml", "v1");
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.version, "");
  ASSERT_EQ(result.differences.size(), 1u);
  EXPECT_FALSE(result.differences[0].after.has_value());
  EXPECT_TRUE(rules_->rules().empty());
}

TEST_F(RuleEditorTest, RollsBackTheLatestChangeAndToAnyEarlierOne) {
  EXPECT_TRUE(absl::IsNotFound(RollBack("").status));
  (void)Put("/rules/edge.yaml", kTwenty, "v1");
  const std::string first = History()[0].id;
  EXPECT_TRUE(RollBack("").status.ok());
  EXPECT_EQ(InForce(), "10");
  EXPECT_EQ(History()[0].action, "rollback");
  EXPECT_TRUE(RollBack(first).status.ok());
  EXPECT_EQ(InForce(), "20");
  EXPECT_TRUE(absl::IsAborted(RollBack(first, "v1").status));
  EXPECT_TRUE(absl::IsNotFound(RollBack("no such change").status));
}

TEST_F(RuleEditorTest, UndoesAChangeWhoseOutcomeACrashLeftOpen) {
  const std::string thirty = absl::StrReplaceAll(std::string(kTen), {{"10", "30"}});
  (void)Put("/rules/edge.yaml", kTwenty, "v1");
  (void)Put("/rules/edge.yaml", thirty, "v2");
  // The crash came between the write and the note of its outcome.
  std::string& note = notes_.rbegin()->second.text;
  note = absl::StrReplaceAll(note, {{"\"done\"", "\"begun\""}});
  EXPECT_TRUE(RollBack("").status.ok());
  EXPECT_EQ(InForce(), "20");
}

TEST_F(RuleEditorTest, DoesNotUndoAChangeThatACrashPrevented) {
  const std::string thirty = absl::StrReplaceAll(std::string(kTen), {{"10", "30"}});
  (void)Put("/rules/edge.yaml", kTwenty, "v1");
  (void)Put("/rules/edge.yaml", thirty, "v2");
  std::string& note = notes_.rbegin()->second.text;
  note = absl::StrReplaceAll(note, {{"\"done\"", "\"begun\""}});
  source_->Set("/rules/edge.yaml", kTwenty);
  EXPECT_TRUE(RollBack("").status.ok());
  EXPECT_EQ(InForce(), "10");
}

TEST_F(RuleEditorTest, RollsBackARemovalWithoutAnExpectedVersion) {
  source_->Set("/rules/more.yaml", "domain: more\n");
  EXPECT_TRUE(Remove("/rules/edge.yaml", "v1").status.ok());
  const rule::EditResult result = RollBack("");
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(source_->documents["/rules/edge.yaml"].text, kTen);
}

TEST_F(RuleEditorTest, ARuleEditForAnyVersionBeginsAgainIfTheDocumentChanges) {
  source_->changes_before_writes = 3;
  std::optional<rule::EditResult> result;
  rule::RuleEdit edit{.rule = {.domain = "edge", .entries = {{.key = "user", .value = {}}}},
                      .action = rule::RuleAction::kPut,
                      .text = "{rate_limit: {unit: minute, requests_per_unit: 20}}",
                      .expected_version = "*",
                      .author = {}};
  editor_->ChangeRule(edit, [&](rule::EditResult r) { result = std::move(r); });
  EXPECT_TRUE(Await(result).status.ok());
  EXPECT_EQ(source_->writes, 4);
  // Somebody who named a version does not get another one.
  source_->changes_before_writes = 1;
  edit.expected_version = source_->documents["/rules/edge.yaml"].version;
  edit.text = "{rate_limit: {unit: minute, requests_per_unit: 30}}";
  result.reset();
  editor_->ChangeRule(edit, [&](rule::EditResult r) { result = std::move(r); });
  EXPECT_TRUE(absl::IsAborted(Await(result).status));
}

TEST_F(RuleEditorTest, ANewRuleIsAddedToADocumentThatChangesMeanwhile) {
  source_->changes_before_writes = 3;
  std::optional<rule::EditResult> result;
  rule::RuleEdit edit{.rule = {.domain = "edge", .entries = {{.key = "path", .value = {}}}},
                      .action = rule::RuleAction::kPut,
                      .text = "{rate_limit: {unit: minute, requests_per_unit: 20}}",
                      .expected_version = "",
                      .author = {}};
  editor_->ChangeRule(edit, [&](rule::EditResult r) { result = std::move(r); });
  EXPECT_TRUE(Await(result).status.ok()) << result->status;
  EXPECT_EQ(source_->writes, 4);
  // It exists now.
  result.reset();
  editor_->ChangeRule(edit, [&](rule::EditResult r) { result = std::move(r); });
  EXPECT_TRUE(absl::IsAborted(Await(result).status));
  EXPECT_EQ(source_->writes, 4);
}

TEST_F(RuleEditorTest, SaysThatADeletedDocumentIsKept) {
  source_->Set("/rules/more.yaml", "domain: more\n");
  source_->kept = {source_->documents["/rules/more.yaml"]};
  source_->awaits = true;
  const rule::EditResult removed = Remove("/rules/more.yaml", "*");
  EXPECT_TRUE(absl::IsFailedPrecondition(removed.status)) << removed.status;
  EXPECT_THAT(removed.status.message(),
              HasSubstr("is deleted, and stays in force, because that looked like an accident"));
  EXPECT_FALSE(source_->documents.contains("/rules/more.yaml"));
  EXPECT_EQ(History()[0].outcome, "done");
  EXPECT_TRUE(absl::IsFailedPrecondition(Remove("/rules/more.yaml", "*").status)) << "once more";
  source_->kept.clear();
  source_->Set("/rules/other.yaml", "domain: other\n");
  EXPECT_TRUE(Remove("/rules/other.yaml", "*").status.ok()) << "others may be kept";
}

TEST_F(RuleEditorTest, TellsThatAnOutcomeCouldNotBeNoted) {
  source_->on_write = [&] { journal_->status = absl::UnavailableError("disk full"); };
  EXPECT_TRUE(Put("/rules/edge.yaml", kTwenty, "v1").status.ok());
  EXPECT_EQ(told_, (std::vector<std::string>{"done", "done, not noted"}));
}

TEST_F(RuleEditorTest, CutsALongDiffAtALine) {
  std::string text(kTen);
  for (int i = 0; i < 200'000; ++i) text += "# comment\n";
  const rule::EditResult result = Put("/rules/edge.yaml", text, "v1", rule::DryRun::kYes);
  EXPECT_TRUE(result.status.ok()) << result.status;
  EXPECT_LE(result.diff.size(), (size_t{1} << 20) + 100);
  EXPECT_THAT(result.diff, HasSubstr("+# comment\n... "));
}

TEST_F(RuleEditorTest, ADocumentOfNoSourceIsRefused) {
  EXPECT_TRUE(absl::IsPermissionDenied(Put("/etc/passwd", kTen, "").status));
  absl::Status status;
  editor_->Read("/etc/passwd", [&](const auto& document) { status = document.status(); });
  EXPECT_TRUE(absl::IsNotFound(status));
}

TEST_F(RuleEditorTest, ConfirmsWhatWaitsForItAndNothingElse) {
  absl::Status status;
  const auto confirm = [&] {
    editor_->Confirm({.user = "ann", .address = "10.0.0.7"},
                     [&](absl::Status result) { status = std::move(result); });
  };
  confirm();
  EXPECT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_FALSE(source_->confirmed);
  EXPECT_TRUE(notes_.empty());
  source_->awaits = true;
  confirm();
  EXPECT_TRUE(status.ok());
  EXPECT_TRUE(source_->confirmed);
  EXPECT_EQ(notes_.size(), 1u);
}

TEST_F(RuleEditorTest, SaysHowEachDocumentIs) {
  source_->Set("/rules/bad.yaml", "domain: [");
  rule::DocumentStates states;
  editor_->List([&](absl::StatusOr<rule::DocumentStates> found) { states = *std::move(found); });
  ASSERT_EQ(states.documents.size(), 2u);
  EXPECT_EQ(states.documents[0].name, "/rules/bad.yaml");
  EXPECT_FALSE(states.documents[0].in_force);
  EXPECT_EQ(states.documents[0].problems.size(), 1u);
  EXPECT_TRUE(states.documents[1].in_force);
  EXPECT_TRUE(states.documents[1].problems.empty());
}

class RuleEditorWithoutJournal : public RuleEditorTest {
 protected:
  RuleEditorWithoutJournal() : RuleEditorTest(false) {}
};

TEST_F(RuleEditorWithoutJournal, ChangesNothing) {
  const rule::EditResult result = Put("/rules/edge.yaml", kTwenty, "v1");
  EXPECT_TRUE(absl::IsFailedPrecondition(result.status));
  EXPECT_THAT(base::HintOf(result.status), ::testing::HasSubstr("--audit-log PATH"));
  EXPECT_EQ(source_->writes, 0);
  EXPECT_TRUE(Put("/rules/edge.yaml", kTwenty, "v1", rule::DryRun::kYes).status.ok());
}

}  // namespace rule_editor_test
}  // namespace headgate::watch

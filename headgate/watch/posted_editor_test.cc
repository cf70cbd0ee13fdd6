#include "headgate/watch/posted_editor.h"

#include <gtest/gtest.h>

#include <vector>

namespace headgate::watch {
namespace posted_editor_test {

using namespace std::chrono_literals;

// Keeps each question until the test answers it.
class SlowEditor final : public rule::Editor {
 public:
  void List(OnStates done) override { lists.push_back(std::move(done)); }
  void Read(std::string_view, OnDocument) override {}
  std::string NameOfLimit(std::string_view) const override { return {}; }
  void Change(const rule::Edit&, OnEdited done) override { changes.push_back(std::move(done)); }
  void ReadRule(const rule::RulePath&, OnDocument) override {}
  void ChangeRule(const rule::RuleEdit&, OnEdited) override {}
  void RollBack(const rule::Rollback&, OnEdited) override {}
  void History(std::string_view, size_t, OnChanges) override {}
  void Confirm(const rule::Author&, std::function<void(absl::Status)>) override {}

  std::vector<OnStates> lists;
  std::vector<OnEdited> changes;
};

// Both loops run on the thread of the test.
struct PostedEditorTest : ::testing::Test {
  static void Turn(net::EventLoop& loop) {
    int asked = 0;
    (void)loop.RunUntil([&] { return ++asked > 1; }, 1ms);
  }
  bool Until(const std::function<bool()>& done) {
    const base::BootTime end = own.Now() + 20s;
    while (!done()) {
      if (own.Now() > end) return false;
      Turn(sources);
      Turn(own);
    }
    return true;
  }
  void Change(PostedEditor& posted) {
    posted.Change({}, [this](const rule::EditResult& result) { results.push_back(result.status); });
  }

  base::SystemClock clock;
  net::EventLoop sources{clock};
  net::EventLoop own{clock};
  SlowEditor editor;
  EditorThread thread{.editor = editor, .loop = sources};
  std::vector<absl::Status> results;
};

TEST_F(PostedEditorTest, BringsResultsBack) {
  PostedEditor posted(thread, own, 20s);
  Change(posted);
  ASSERT_TRUE(Until([&] { return !editor.changes.empty(); }));
  EXPECT_EQ(thread.under_way.load(), 1u);
  editor.changes[0]({.status = absl::AbortedError("another version")});
  ASSERT_TRUE(Until([&] { return !results.empty(); }));
  EXPECT_TRUE(absl::IsAborted(results[0]));
  EXPECT_EQ(thread.under_way.load(), 0u);
}

TEST_F(PostedEditorTest, AResultThatComesTooLateIsUnknownAndDropped) {
  PostedEditor posted(thread, own, 10ms);
  Change(posted);
  Change(posted);
  ASSERT_TRUE(Until([&] { return results.size() == 2; }));
  EXPECT_TRUE(absl::IsUnknown(results[0]));
  EXPECT_TRUE(absl::IsUnknown(results[1]));
  EXPECT_EQ(thread.under_way.load(), 2u) << "both continue";
  ASSERT_TRUE(Until([&] { return editor.changes.size() == 2; }));
  for (const auto& done : editor.changes) done({.status = absl::OkStatus()});
  ASSERT_TRUE(Until([&] { return thread.under_way.load() == 0; }));
  bool listed = false;
  posted.List([&](const auto& states) { listed = states.ok(); });
  ASSERT_TRUE(Until([&] { return !editor.lists.empty(); }));
  editor.lists[0](rule::DocumentStates());
  ASSERT_TRUE(Until([&] { return listed; }));
  EXPECT_EQ(results.size(), 2u);
}

TEST_F(PostedEditorTest, RefusesMoreThanItsBoundAndAllAfterTheEnd) {
  PostedEditor posted(thread, own, 20s);
  for (uint32_t i = 0; i < PostedEditor::kUnderWayMax; ++i) Change(posted);
  EXPECT_TRUE(results.empty());
  Change(posted);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(results[0]));
  thread.closed.store(true);
  Change(posted);
  EXPECT_EQ(results.size(), 2u);
}

TEST_F(PostedEditorTest, TheEndWaitsForCallsThatAreUnderWay) {
  PostedEditor posted(thread, own, 20s);
  Change(posted);
  sources.Post(
      [this] { sources.Post([this] { editor.changes.at(0)({.status = absl::OkStatus()}); }); });
  thread.End();
  EXPECT_EQ(thread.under_way.load(), 0u);
  ASSERT_TRUE(Until([&] { return !results.empty(); }));
  EXPECT_TRUE(results[0].ok());
  Change(posted);
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(absl::IsUnavailable(results[1]));
}

}  // namespace posted_editor_test
}  // namespace headgate::watch

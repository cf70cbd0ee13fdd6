#include "headgate/watch/zookeeper/deletion_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <set>

namespace headgate::watch::zookeeper {
namespace deletion_guard_test {

using namespace std::chrono_literals;

constexpr base::BootTime kStart{1'000'000'000'000};

constexpr DeletionGuard::Found kMissing{.missing = true};

// The documents number `first` to `last`.
NodeTexts Documents(int first, int last) {
  NodeTexts documents;
  for (int i = first; i <= last; ++i)
    documents[fmt::format("key-{:02}", i)] = {.text = "x", .zxid = i};
  return documents;
}

class DeletionGuardTest : public ::testing::Test {
 protected:
  using Names = std::set<std::string, std::less<>>;

  // `meant`: the deletions that somebody has noted.
  void Now(const NodeTexts& there, base::Duration at, const DeletionGuard::Found& found = {},
           const Names& meant = {}) {
    guard_.OnDocuments(there, found, kStart + at);
    while (!guard_.TakeSuspects().empty()) {
      guard_.OnFoundOut(meant, kStart + at);
    }
    EXPECT_FALSE(guard_.suspects_any());
  }
  DeletionGuard guard_;
};

TEST_F(DeletionGuardTest, OneDocumentMayGo) {
  Now(Documents(1, 10), 0s);
  Now(Documents(2, 10), 1s);
  EXPECT_FALSE(guard_.alarmed());
  EXPECT_EQ(guard_.documents(), Documents(2, 10));
}

TEST_F(DeletionGuardTest, FewDocumentsMayAllGo) {
  Now(Documents(1, 9), 0s);
  Now({}, 1s);
  EXPECT_FALSE(guard_.alarmed());
  EXPECT_TRUE(guard_.documents().empty());
}

TEST_F(DeletionGuardTest, HalfOfTenAtOnceIsAnAccident) {
  Now(Documents(1, 10), 0s);
  Now(Documents(6, 10), 1s);
  EXPECT_TRUE(guard_.alarmed());
  EXPECT_EQ(guard_.kept().size(), 5u);
  EXPECT_EQ(guard_.documents(), Documents(1, 10));
}

TEST_F(DeletionGuardTest, LessThanHalfIsNot) {
  Now(Documents(1, 11), 0s);
  Now(Documents(6, 11), 1s);
  EXPECT_FALSE(guard_.alarmed());
}

TEST_F(DeletionGuardTest, OneAfterAnotherWithinTenSecondsIsAnAccidentAndAllComeBack) {
  Now(Documents(1, 10), 0s);
  for (int i = 1; i <= 4; ++i) Now(Documents(1 + i, 10), i * 1s);
  EXPECT_FALSE(guard_.alarmed());
  EXPECT_EQ(guard_.documents(), Documents(5, 10));
  Now(Documents(6, 10), 10'999ms);
  EXPECT_TRUE(guard_.alarmed());
  EXPECT_EQ(guard_.documents(), Documents(1, 10)) << "the first four too";
}

TEST_F(DeletionGuardTest, SlowlyAllMayGo) {
  Now(Documents(1, 20), 0s);
  for (int i = 1; i <= 20; ++i) Now(Documents(1 + i, 20), i * 2s);
  // Five of the last ten documents would be deleted within ten seconds.
  EXPECT_TRUE(guard_.alarmed());
  DeletionGuard slow;
  slow.OnDocuments(Documents(1, 20), {}, kStart);
  for (int i = 1; i <= 20; ++i) slow.OnDocuments(Documents(1 + i, 20), {}, kStart + i * 3s);
  EXPECT_FALSE(slow.alarmed());
  EXPECT_TRUE(slow.documents().empty());
}

TEST_F(DeletionGuardTest, AMissingDirectoryIsAnAccidentWithEvenOneDocument) {
  Now(Documents(1, 1), 0s);
  Now({}, 1s, kMissing);
  EXPECT_TRUE(guard_.alarmed());
  EXPECT_EQ(guard_.documents(), Documents(1, 1));
}

TEST_F(DeletionGuardTest, ADirectoryWhoseNodesGoFirstIsOneToo) {
  Now(Documents(1, 3), 0s);
  Now(Documents(2, 3), 1s);
  Now({}, 2s);
  EXPECT_FALSE(guard_.alarmed());
  Now({}, 3s, kMissing);
  EXPECT_TRUE(guard_.alarmed());
  EXPECT_EQ(guard_.documents(), Documents(1, 3));
}

TEST_F(DeletionGuardTest, ADirectoryThatNeverWasIsNone) {
  Now({}, 0s, kMissing);
  EXPECT_FALSE(guard_.alarmed());
}

TEST_F(DeletionGuardTest, MeanwhileChangesCountAndFurtherDeletionsDoNot) {
  Now(Documents(1, 10), 0s);
  Now(Documents(6, 10), 1s);
  NodeTexts changed = Documents(7, 11);
  changed["key-07"].text = "changed";
  Now(changed, 60s);
  NodeTexts expected = Documents(1, 11);
  expected["key-07"].text = "changed";
  EXPECT_EQ(guard_.documents(), expected);
}

TEST_F(DeletionGuardTest, EndsWhenTheDocumentsAreThereAgain) {
  Now(Documents(1, 10), 0s);
  Now({}, 1s, kMissing);
  NodeTexts again = Documents(1, 10);
  again["key-01"].text = "new";
  Now(again, 2s);
  EXPECT_FALSE(guard_.alarmed());
  EXPECT_EQ(guard_.documents(), again);
}

TEST_F(DeletionGuardTest, EndsWhenAnOperatorConfirms) {
  Now(Documents(1, 10), 0s);
  Now(Documents(10, 10), 1s);
  guard_.Confirm();
  EXPECT_FALSE(guard_.alarmed());
  EXPECT_EQ(guard_.documents(), Documents(10, 10));
  Now(Documents(10, 10), 2s);
  EXPECT_FALSE(guard_.alarmed());
}

TEST_F(DeletionGuardTest, ADirectoryThatWasMadeAnewIsAnAccidentToo) {
  Now(Documents(1, 3), 0s, {.created_zxid = 5});
  Now({}, 1s, {.created_zxid = 9});
  EXPECT_TRUE(guard_.alarmed());
  EXPECT_EQ(guard_.documents(), Documents(1, 3));
  Now(Documents(1, 3), 2s, {.created_zxid = 9});
  EXPECT_FALSE(guard_.alarmed());
  Now(Documents(2, 3), 3s, {.created_zxid = 9});
  EXPECT_EQ(guard_.documents(), Documents(2, 3)) << "it is the known one now";
}

TEST_F(DeletionGuardTest, ADirectoryThatWasMadeAnewWithAllItsDocumentsIsNoAccident) {
  Now(Documents(1, 3), 0s, {.created_zxid = 5});
  Now(Documents(1, 4), 1s, {.created_zxid = 9});
  EXPECT_FALSE(guard_.alarmed());
  Now(Documents(1, 3), 2s, {.created_zxid = 9});
  EXPECT_FALSE(guard_.alarmed());
}

TEST_F(DeletionGuardTest, NothingLeftAfterAGapIsAnAccidentWithFewDocumentsToo) {
  Now(Documents(1, 2), 0s, {.created_zxid = 5});
  Now(Documents(2, 2), 60s, {.created_zxid = 5, .after_gap = true});
  EXPECT_FALSE(guard_.alarmed()) << "one may have gone";
  Now({}, 120s, {.created_zxid = 5, .after_gap = true});
  EXPECT_TRUE(guard_.alarmed());
  EXPECT_EQ(guard_.documents(), Documents(2, 2));
}

TEST_F(DeletionGuardTest, RemembersTheDirectoryAndWhatIsKept) {
  guard_.Remember(Documents(1, 2), Documents(3, 4), 5);
  EXPECT_EQ(guard_.documents(), Documents(1, 4));
  Now(Documents(1, 2), 0s, {.created_zxid = 5, .after_gap = true});
  EXPECT_TRUE(guard_.alarmed());
  EXPECT_EQ(guard_.kept(), Documents(3, 4));
  DeletionGuard other;
  other.Remember(Documents(1, 2), {}, 5);
  other.OnDocuments(Documents(2, 2), {.created_zxid = 9, .after_gap = true}, kStart);
  other.TakeSuspects();
  other.OnFoundOut({}, kStart);
  EXPECT_EQ(other.kept(), Documents(1, 1));
}

TEST_F(DeletionGuardTest, DeletionsThatWereNotedAreBelieved) {
  Now(Documents(1, 10), 0s);
  Names noted;
  for (const auto& [name, node] : Documents(1, 10)) noted.insert(name);
  Now(Documents(6, 10), 1s, {}, noted);
  EXPECT_FALSE(guard_.alarmed());
  EXPECT_EQ(guard_.documents(), Documents(6, 10));
  Now({}, 2s, {}, noted);
  EXPECT_TRUE(guard_.documents().empty());
}

TEST_F(DeletionGuardTest, NotedDeletionsDoNotCountForTheOthers) {
  Now(Documents(1, 20), 0s);
  // Ten are noted, and four of the ten others go: less than half.
  Names noted;
  for (const auto& [name, node] : Documents(1, 10)) noted.insert(name);
  Now(Documents(15, 20), 1s, {}, noted);
  EXPECT_FALSE(guard_.alarmed());
  EXPECT_EQ(guard_.documents(), Documents(15, 20));
  Now(Documents(16, 20), 2s, {}, noted);
  EXPECT_TRUE(guard_.alarmed()) << "five of ten";
  EXPECT_EQ(guard_.documents(), Documents(11, 20)) << "the noted ones are gone";
}

TEST_F(DeletionGuardTest, UntilItIsToldItKeepsWithoutAnAlarm) {
  Now(Documents(1, 10), 0s);
  guard_.OnDocuments(Documents(6, 10), {}, kStart + 1s);
  EXPECT_EQ(guard_.TakeSuspects().size(), 5u);
  EXPECT_TRUE(guard_.suspects_any());
  EXPECT_FALSE(guard_.alarmed());
  EXPECT_EQ(guard_.documents(), Documents(1, 10));
  // The answer takes long, and one more goes meanwhile.
  guard_.OnDocuments(Documents(7, 10), {}, kStart + 30s);
  EXPECT_TRUE(guard_.TakeSuspects().empty()) << "one question at a time";
  guard_.OnNotFoundOut();
  EXPECT_EQ(guard_.TakeSuspects().size(), 6u);
  guard_.OnFoundOut({}, kStart + 31s);
  EXPECT_EQ(guard_.kept(), Documents(1, 6));
}

TEST_F(DeletionGuardTest, DocumentsThatWereMadeAMomentAgoMayGo) {
  Now({}, 0s);
  for (int i = 1; i <= 12; ++i) {
    const base::Duration at = 700ms * i;
    Now(Documents(i, i), at);
    Now({}, at + 300ms);
    EXPECT_FALSE(guard_.alarmed()) << i;
    EXPECT_TRUE(guard_.documents().empty()) << i;
  }
}

TEST_F(DeletionGuardTest, NewDocumentsDoNotHideThatHalfOfTheOldOnesGo) {
  Now(Documents(1, 10), 0s);
  NodeTexts more = Documents(6, 40);
  Now(more, 5s);
  EXPECT_TRUE(guard_.alarmed());
  EXPECT_EQ(guard_.kept(), Documents(1, 5));
}

}  // namespace deletion_guard_test
}  // namespace headgate::watch::zookeeper

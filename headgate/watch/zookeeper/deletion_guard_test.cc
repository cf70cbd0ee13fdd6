#include "headgate/watch/zookeeper/deletion_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

namespace headgate::watch::zookeeper {
namespace deletion_guard_test {

using namespace std::chrono_literals;

constexpr base::BootTime kStart{1'000'000'000'000};

// The documents number `first` to `last`.
NodeTexts Documents(int first, int last) {
  NodeTexts documents;
  for (int i = first; i <= last; ++i)
    documents[fmt::format("key-{:02}", i)] = {.text = "x", .zxid = i};
  return documents;
}

class DeletionGuardTest : public ::testing::Test {
 protected:
  void Now(const NodeTexts& there, base::Duration at, bool missing = false) {
    guard_.OnDocuments(there, missing, kStart + at);
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
  EXPECT_EQ(guard_.kept_count(), 5u);
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
  // Five of the last ten would go within ten seconds.
  EXPECT_TRUE(guard_.alarmed());
  DeletionGuard slow;
  slow.OnDocuments(Documents(1, 20), false, kStart);
  for (int i = 1; i <= 20; ++i) slow.OnDocuments(Documents(1 + i, 20), false, kStart + i * 3s);
  EXPECT_FALSE(slow.alarmed());
  EXPECT_TRUE(slow.documents().empty());
}

TEST_F(DeletionGuardTest, AMissingDirectoryIsAnAccidentWithEvenOneDocument) {
  Now(Documents(1, 1), 0s);
  Now({}, 1s, true);
  EXPECT_TRUE(guard_.alarmed());
  EXPECT_EQ(guard_.documents(), Documents(1, 1));
}

TEST_F(DeletionGuardTest, ADirectoryWhoseNodesGoFirstIsOneToo) {
  Now(Documents(1, 3), 0s);
  Now(Documents(2, 3), 1s);
  Now({}, 2s);
  EXPECT_FALSE(guard_.alarmed());
  Now({}, 3s, true);
  EXPECT_TRUE(guard_.alarmed());
  EXPECT_EQ(guard_.documents(), Documents(1, 3));
}

TEST_F(DeletionGuardTest, ADirectoryThatNeverWasIsNone) {
  Now({}, 0s, true);
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
  Now({}, 1s, true);
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

}  // namespace deletion_guard_test
}  // namespace headgate::watch::zookeeper

#include "headgate/watch/zookeeper/directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::watch::zookeeper {
namespace directory_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr int64_t kCreated = 1;  // the zxid of the directory's creation

// The names and texts, for comparison.
std::map<std::string, std::string> TextsOf(const Directory& directory) {
  std::map<std::string, std::string> texts;
  for (const auto& [name, node] : directory.nodes()) texts[name] = node.text;
  return texts;
}

// A directory with the nodes "a" and "b", read at zxid 10.
Directory WithTwo() {
  Directory directory;
  directory.OnConnected();
  EXPECT_TRUE(directory.TakeWanted().list);
  directory.OnListed({"b", "a"}, 10, kCreated);
  EXPECT_FALSE(directory.complete());
  EXPECT_THAT(directory.TakeWanted().nodes, ElementsAre("a", "b"));
  directory.OnRead("a", {.text = "one", .zxid = 5});
  EXPECT_FALSE(directory.complete());
  directory.OnRead("b", {.text = "two", .zxid = 9});
  EXPECT_TRUE(directory.complete());
  EXPECT_THAT(TextsOf(directory), ElementsAre(Pair("a", "one"), Pair("b", "two")));
  return directory;
}

TEST(Directory, ReadsTheListThenEachNode) { WithTwo(); }

TEST(Directory, AChangeCostsOneRead) {
  Directory directory = WithTwo();
  const uint64_t before = directory.reads();
  directory.OnNodeChanged("a");
  EXPECT_FALSE(directory.complete());
  const Directory::Wanted wanted = directory.TakeWanted();
  EXPECT_FALSE(wanted.list);
  EXPECT_THAT(wanted.nodes, ElementsAre("a"));
  directory.OnRead("a", {.text = "ONE", .zxid = 11});
  EXPECT_TRUE(directory.complete());
  EXPECT_EQ(directory.reads(), before + 1);
  EXPECT_EQ(directory.nodes().at("a").text, "ONE");
}

TEST(Directory, ANewNodeCostsTheListAndOneRead) {
  Directory directory = WithTwo();
  const uint64_t before = directory.reads();
  directory.OnListChanged();
  EXPECT_TRUE(directory.TakeWanted().list);
  directory.OnListed({"a", "b", "c"}, 12, kCreated);
  EXPECT_THAT(directory.TakeWanted().nodes, ElementsAre("c"));
  directory.OnRead("c", {.text = "three", .zxid = 12});
  EXPECT_EQ(directory.reads(), before + 2);
  EXPECT_EQ(directory.nodes().size(), 3u);
}

TEST(Directory, ANodeThatIsNotListedIsGone) {
  Directory directory = WithTwo();
  directory.OnListed({"b"}, 12, kCreated);
  EXPECT_TRUE(directory.complete());
  EXPECT_THAT(TextsOf(directory), ElementsAre(Pair("b", "two")));
}

TEST(Directory, AChangeWhileItIsReadIsReadAgain) {
  Directory directory = WithTwo();
  directory.OnNodeChanged("a");
  EXPECT_THAT(directory.TakeWanted().nodes, ElementsAre("a"));
  directory.OnNodeChanged("a");
  directory.OnRead("a", {.text = "1", .zxid = 11});
  EXPECT_FALSE(directory.complete());
  EXPECT_THAT(directory.TakeWanted().nodes, ElementsAre("a"));
  directory.OnRead("a", {.text = "2", .zxid = 12});
  EXPECT_TRUE(directory.complete());
}

TEST(Directory, EveryConnectionReadsEverythingAgain) {
  Directory directory = WithTwo();
  directory.OnConnected();
  const Directory::Wanted wanted = directory.TakeWanted();
  EXPECT_TRUE(wanted.list);
  EXPECT_THAT(wanted.nodes, ElementsAre("a", "b"));
  EXPECT_FALSE(directory.complete());
  EXPECT_EQ(directory.nodes().size(), 2u) << "the last texts stay until there are newer ones";
  // Meanwhile "a" was deleted and "c" made, and no watch said so.
  directory.OnGone("a");
  directory.OnRead("b", {.text = "TWO", .zxid = 11});
  directory.OnListed({"b", "c"}, 13, kCreated);
  EXPECT_THAT(directory.TakeWanted().nodes, ElementsAre("c"));
  directory.OnRead("c", {.text = "three", .zxid = 13});
  EXPECT_THAT(TextsOf(directory), ElementsAre(Pair("b", "TWO"), Pair("c", "three")));
}

TEST(Directory, AnAnswerOfAServerThatLagsBehindChangesNothing) {
  Directory directory = WithTwo();
  directory.OnConnected();
  directory.TakeWanted();
  directory.OnListed({"a"}, 9, kCreated);
  EXPECT_TRUE(directory.stale());
  directory.OnRead("a", {.text = "old", .zxid = 4});
  EXPECT_TRUE(directory.stale());
  EXPECT_FALSE(directory.complete());
  EXPECT_THAT(TextsOf(directory), ElementsAre(Pair("a", "one"), Pair("b", "two")));
  // Another server is as far as it was.
  directory.OnConnected();
  EXPECT_FALSE(directory.stale());
  EXPECT_EQ(directory.stale_rounds(), 1u);
  directory.TakeWanted();
  directory.OnListed({"a", "b"}, 10, kCreated);
  directory.OnRead("a", {.text = "one", .zxid = 5});
  directory.OnRead("b", {.text = "two", .zxid = 9});
  EXPECT_TRUE(directory.complete());
  EXPECT_EQ(directory.stale_rounds(), 0u);
}

TEST(Directory, AnswersThatAreNotStaleDoNotHideThoseThatAre) {
  Directory directory = WithTwo();
  for (uint32_t round = 1; round <= 12; ++round) {
    directory.OnConnected();
    directory.TakeWanted();
    // The ensemble was restored: "a" is as it was, and "b" is older.
    directory.OnListed({"a", "b"}, 10, kCreated);
    directory.OnRead("b", {.text = "old", .zxid = 8});
    directory.OnRead("a", {.text = "one", .zxid = 5});
    EXPECT_EQ(directory.stale_rounds(), round - 1);
    EXPECT_TRUE(directory.stale());
  }
}

TEST(Directory, ForgetsWhatItKnewOfAnEnsembleThatWasRestored) {
  Directory directory = WithTwo();
  directory.Forget();
  directory.TakeWanted();
  directory.OnListed({"a"}, 3, kCreated);
  directory.OnRead("a", {.text = "restored", .zxid = 2});
  EXPECT_TRUE(directory.complete());
  EXPECT_THAT(TextsOf(directory), ElementsAre(Pair("a", "restored")));
}

TEST(Directory, SaysThatItIsMissing) {
  Directory directory = WithTwo();
  directory.OnConnected();
  directory.TakeWanted();
  directory.OnMissing();
  EXPECT_TRUE(directory.missing());
  EXPECT_THAT(directory.nodes(), IsEmpty());
  directory.OnListChanged();
  directory.TakeWanted();
  directory.OnListed({"a"}, 20, kCreated);
  EXPECT_FALSE(directory.missing());
}

TEST(Directory, StartsFromWhatWasKnown) {
  Directory directory;
  directory.Remember({{"a", {.text = "one", .zxid = 5}}}, 10, kCreated);
  EXPECT_FALSE(directory.complete());
  directory.OnConnected();
  EXPECT_THAT(directory.TakeWanted().nodes, ElementsAre("a"));
  directory.OnListed({"a"}, 8, kCreated);
  EXPECT_TRUE(directory.stale());
}

TEST(Directory, ADeletedNodeThatIsThereAgainIsRead) {
  Directory directory = WithTwo();
  directory.OnNodeChanged("a");
  directory.OnListChanged();
  const Directory::Wanted wanted = directory.TakeWanted();
  EXPECT_TRUE(wanted.list);
  EXPECT_THAT(wanted.nodes, ElementsAre("a"));
  directory.OnListed({"a", "b"}, 12, kCreated);
  EXPECT_FALSE(directory.complete());
  directory.OnRead("a", {.text = "again", .zxid = 12});
  EXPECT_TRUE(directory.complete());
  EXPECT_EQ(directory.nodes().at("a").text, "again");
}

TEST(Directory, ADeletionThatTheListHasToldOfCostsNoSecondList) {
  Directory directory = WithTwo();
  directory.OnNodeChanged("a");
  directory.TakeWanted();
  directory.OnListed({"b"}, 12, kCreated);
  directory.OnGone("a");
  EXPECT_TRUE(directory.complete());
  EXPECT_FALSE(directory.TakeWanted().list);
}

TEST(Directory, AComparisonWantsWhatWasMissed) {
  Directory directory = WithTwo();
  EXPECT_FALSE(directory.OnListCompared(10));
  EXPECT_FALSE(directory.OnNodeCompared("a", 5));
  EXPECT_TRUE(directory.complete());
  EXPECT_TRUE(directory.OnNodeCompared("a", 11));
  EXPECT_TRUE(directory.OnListCompared(12));
  const Directory::Wanted wanted = directory.TakeWanted();
  EXPECT_TRUE(wanted.list);
  EXPECT_THAT(wanted.nodes, ElementsAre("a"));
}

TEST(Directory, AComparisonMissesNothingThatIsOnItsWayOrOld) {
  Directory directory = WithTwo();
  EXPECT_FALSE(directory.OnNodeCompared("a", 4)) << "of a server that lags behind";
  EXPECT_FALSE(directory.OnListCompared(9));
  EXPECT_FALSE(directory.OnNodeCompared("c", 20)) << "the list will tell";
  directory.OnNodeChanged("a");
  EXPECT_FALSE(directory.OnNodeCompared("a", 11));
  directory.TakeWanted();
  EXPECT_FALSE(directory.OnNodeCompared("a", 11));
  directory.OnListChanged();
  EXPECT_FALSE(directory.OnListCompared(12));
  EXPECT_FALSE(directory.OnNodeCompared("b", 0)) << "the list is about to be read";
  directory.TakeWanted();
  EXPECT_FALSE(directory.OnListCompared(12));
}

TEST(Directory, AComparisonFindsWhatIsGone) {
  Directory directory = WithTwo();
  EXPECT_TRUE(directory.OnNodeCompared("a", 0));
  EXPECT_THAT(directory.TakeWanted().nodes, ElementsAre("a"));
  directory.OnGone("a");
  EXPECT_TRUE(directory.TakeWanted().list);
  directory.OnListed({"b"}, 12, kCreated);
  EXPECT_TRUE(directory.complete());
  EXPECT_TRUE(directory.OnListCompared(0)) << "the directory itself";
  directory.TakeWanted();
  directory.OnMissing();
  EXPECT_FALSE(directory.OnListCompared(0));
  EXPECT_TRUE(directory.OnListCompared(20)) << "it was made again";
}

TEST(Directory, IgnoresWatchesOfNodesThatItDoesNotKnow) {
  Directory directory = WithTwo();
  directory.OnNodeChanged("x");
  EXPECT_TRUE(directory.complete());
  EXPECT_THAT(directory.TakeWanted().nodes, IsEmpty());
}

}  // namespace directory_test
}  // namespace headgate::watch::zookeeper

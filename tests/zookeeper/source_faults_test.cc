// Changes that fire no watch, lost connections and expired sessions, with real servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <optional>
#include <set>

#include "tests/zookeeper/node_owner.h"
#include "tests/zookeeper/source_fixture.h"

namespace headgate::zookeeper_test {
namespace source_faults_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using watch::zookeeper::SourceOptions;

// The sockets of this process that are connected to this port.
std::set<int> ConnectionsTo(uint16_t port) {
  std::set<int> connections;
  for (int fd = 0; fd < 1'024; ++fd) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0 &&
        peer.sin_family == AF_INET && ntohs(peer.sin_port) == port)
      connections.insert(fd);
  }
  return connections;
}

class SourceFaultsTest : public SourceFixture {};

TEST_F(SourceFaultsTest, AChangeBehindAClosedAccessListIsFoundByTheComparison) {
  Make("/r/config/a", "1");
  SourceOptions options = Options();
  options.compare_pause = 300ms;
  Follow(options);
  ASSERT_TRUE(Holds({{"/r/config/a", "1"}}));
  // The server fires no watch for a client that may not read, and drops the watch all the same.
  NodeOwner owner(server_.server());
  owner.Close("/r/config/a");
  owner.Set("/r/config/a", "2");
  ASSERT_TRUE(Until([&] { return !problems_.empty(); }));
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("/r/config/a: cannot be read")));
  owner.Open("/r/config/a");
  ASSERT_TRUE(Holds({{"/r/config/a", "2"}}));
  EXPECT_THAT(problems_, IsEmpty());
  Set("/r/config/a", "3");
  EXPECT_TRUE(Holds({{"/r/config/a", "3"}})) << "it is watched again";
  EXPECT_EQ(source_->figures().missed, 1u);
  EXPECT_THAT(missed_, ElementsAre("no watch told of a change of /r/config/a"));
}

TEST_F(SourceFaultsTest, ChangesThatWereMissedWhileAListWasClosedAreFoundByTheComparison) {
  Make("/r/config/a", "1");
  Make("/r/config/b", "1");
  SourceOptions options = Options();
  options.compare_pause = 300ms;
  Follow(options);
  ASSERT_TRUE(Until([&] { return texts_.size() == 2; }));
  NodeOwner owner(server_.server());
  for (const std::string closed : {"/r/config", "/r/config/b"}) owner.Close(closed);
  owner.Make("/r/config/c", "3");
  owner.Delete("/r/config/b");
  for (const std::string open : {"/r/config", "/r/config/c"}) owner.Open(open);
  EXPECT_TRUE(Holds({{"/r/config/a", "1"}, {"/r/config/c", "3"}}));
  EXPECT_GE(source_->figures().missed, 1u);
  Make("/r/config/d", "4");
  EXPECT_TRUE(Holds({{"/r/config/a", "1"}, {"/r/config/c", "3"}, {"/r/config/d", "4"}}));
}

TEST_F(SourceFaultsTest, TheComparisonFindsNothingInAStormOfChanges) {
  for (int i = 0; i < 150; ++i) Make(fmt::format("/r/config/k{}", i), "0");
  SourceOptions options = Options();
  options.compare_pause = 1ms;
  options.watched_bytes_max = 700;  // three sessions
  Follow(options);
  ASSERT_TRUE(Until([&] { return texts_.size() == 150; }));
  uint32_t done = 0;
  const auto count = [&](const absl::StatusOr<client::zookeeper::NodeStat>& stat) {
    done += stat.ok() ? 1u : 0u;
  };
  for (int i = 1; i <= 2'000; ++i)
    editor_->Set(fmt::format("/r/config/k{}", i % 150), std::to_string(i), -1, count);
  ASSERT_TRUE(Until([&] { return done == 2'000; }));
  for (int i = 0; i < 150; i += 2) Replace(fmt::format("/r/config/k{}", i), "again");
  EXPECT_TRUE(Until([&] { return texts_["/r/config/k148"] == "again"; }));
  EXPECT_EQ(source_->figures().missed, 0u);
  EXPECT_THAT(missed_, IsEmpty());
}

TEST_F(SourceFaultsTest, AfterAnOutageItReadsWhatChangedMeanwhile) {
  Make("/r/config/a", "1");
  Make("/r/config/b", "1");
  Follow();
  ASSERT_TRUE(Holds({{"/r/config/a", "1"}, {"/r/config/b", "1"}}));
  EXPECT_EQ(source_->figures().age, 0s);
  server_.Kill();
  ASSERT_TRUE(Until([&] { return source_->figures().age > 1s; }));
  EXPECT_EQ(texts_.size(), 2u) << "the last ones stay";
  source_.reset();
  server_.Start();
  ASSERT_TRUE(Until([&] { return editor_->connected(); }));
  // A source that was away while these changed.
  Follow();
  EXPECT_TRUE(Holds({{"/r/config/a", "1"}, {"/r/config/b", "1"}})) << "from the copy";
  Set("/r/config/a", "2");
  Delete("/r/config/b");
  Make("/r/config/c", "3");
  EXPECT_TRUE(Holds({{"/r/config/a", "2"}, {"/r/config/c", "3"}}));
  EXPECT_TRUE(Until([&] { return source_->figures().age == 0s; }));
}

TEST_F(SourceFaultsTest, ASessionThatExpiredReadsEverythingAgain) {
  Make("/r/config/a", "1");
  Follow();
  ASSERT_TRUE(Holds({{"/r/config/a", "1"}}));
  server_.Freeze();
  ASSERT_TRUE(Until([&] { return source_->figures().age > 1s; }));
  server_.Thaw();
  ASSERT_TRUE(Until([&] { return source_->figures().age == 0s; }));
  ASSERT_TRUE(Until([&] { return editor_->connected(); }));
  Set("/r/config/a", "2");
  EXPECT_TRUE(Holds({{"/r/config/a", "2"}}));
}

TEST_F(SourceFaultsTest, TheAgeCountsFromTheLastAnswer) {
  Make("/r/config/a", "1");
  SourceOptions options = Options();
  options.session_timeout = 4s;
  Follow(options);
  ASSERT_TRUE(Holds({{"/r/config/a", "1"}}));
  std::optional<net::Timer> turns;  // so that the age is checked often
  turns.emplace(loop_, [&] { turns->SetAfter(10ms); });
  turns->SetAfter(10ms);
  server_.Freeze();
  const base::BootTime silent_since = clock_.BootNow();
  ASSERT_TRUE(Until([&] { return source_->figures().age > 0s; }));
  EXPECT_EQ(lost_, 0u) << "the session does not know it yet";
  EXPECT_GE(source_->figures().age, clock_.BootNow() - silent_since - 100ms);
  ASSERT_TRUE(Until([&] { return lost_ > 0; }));
  EXPECT_GE(source_->figures().age, clock_.BootNow() - silent_since - 100ms)
      << "nothing is lacking";
  server_.Thaw();
  EXPECT_TRUE(Until([&] { return source_->figures().age == 0s; }));
}

TEST_F(SourceFaultsTest, TheLossOfAFurtherSessionIsToldAndEndsWhenItsNodesHaveBeenRead) {
  const std::string last = fmt::format("/r/config/{}", std::string(100, 'x'));
  Make("/r/config/a", "1");
  SourceOptions options = Options();
  options.watched_bytes_max = last.size();
  Follow(options);
  ASSERT_TRUE(Holds({{"/r/config/a", "1"}}));
  ASSERT_TRUE(Until([&] { return followed_ == 1; }));
  const std::set<int> before = ConnectionsTo(server_.port());
  Make(last, "1");
  ASSERT_TRUE(Holds({{"/r/config/a", "1"}, {last, "1"}}));
  for (const int connection : ConnectionsTo(server_.port()))
    if (!before.contains(connection)) ::shutdown(connection, SHUT_RDWR);
  ASSERT_TRUE(Until([&] { return lost_ == 1; }));
  EXPECT_GT(source_->figures().age, 0s);
  Set(last, "2");
  ASSERT_TRUE(Until([&] { return followed_ == 2; }));
  EXPECT_TRUE(Holds({{"/r/config/a", "1"}, {last, "2"}}));
  EXPECT_EQ(source_->figures().age, 0s);
}

}  // namespace source_faults_test
}  // namespace headgate::zookeeper_test

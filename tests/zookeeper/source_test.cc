// ZooKeeper as a source of rules, with real servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "tests/zookeeper/source_fixture.h"

namespace headgate::zookeeper_test {
namespace source_test {

using client::zookeeper::Client;
using client::zookeeper::CreateMode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using watch::zookeeper::SourceOptions;
using watch::zookeeper::ZooKeeperSource;

class SourceTest : public SourceFixture {};

TEST_F(SourceTest, MakesItsDirectoriesAndAwaitsTheFirstDocument) {
  Follow();
  ASSERT_TRUE(Until([&] { return awaited_; }));
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("holds no rules and no limits yet")));
  Make("/r/config/test-key", "{\"Limit\": 10}");
  ASSERT_TRUE(Holds({{"/r/config/test-key", "{\"Limit\": 10}"}}));
  EXPECT_THAT(problems_, IsEmpty());
  EXPECT_EQ(last_.documents[0].limit_of, "test-key");
}

TEST_F(SourceTest, FollowsChangesOfBothDirectories) {
  Make("/r/config/a%2Fb", "1");
  Make("/r/rules/edge", "domain: edge");
  Follow();
  ASSERT_TRUE(Holds({{"/r/config/a%2Fb", "1"}, {"/r/rules/edge", "domain: edge"}}));
  EXPECT_EQ(last_.documents[0].limit_of, std::nullopt) << "rules come first";
  EXPECT_EQ(last_.documents[1].limit_of, "a/b");
  Set("/r/config/a%2Fb", "2");
  ASSERT_TRUE(Holds({{"/r/config/a%2Fb", "2"}, {"/r/rules/edge", "domain: edge"}}));
  Delete("/r/rules/edge");
  ASSERT_TRUE(Holds({{"/r/config/a%2Fb", "2"}}));
  Delete("/r/config/a%2Fb");
  ASSERT_TRUE(Holds({}));
  EXPECT_THAT(problems_, IsEmpty()) << "all may go, once there were some";
}

TEST_F(SourceTest, ADocumentThatIsDeletedAndMadeAgainAtOnceIsFollowed) {
  Make("/r/config/a", "1");
  Make("/r/rules/b", "domain: b");
  Follow();
  ASSERT_TRUE(Holds({{"/r/config/a", "1"}, {"/r/rules/b", "domain: b"}}));
  for (int i = 0; i < 10; ++i) {
    Replace("/r/config/a", fmt::format("again {}", i));
    Replace("/r/rules/b", fmt::format("domain: again {}", i));
    ASSERT_TRUE(Holds({{"/r/config/a", fmt::format("again {}", i)},
                       {"/r/rules/b", fmt::format("domain: again {}", i)}}));
  }
  Set("/r/config/a", "2");
  EXPECT_TRUE(Holds({{"/r/config/a", "2"}, {"/r/rules/b", "domain: again 9"}}));
  EXPECT_EQ(source_->figures().missed, 0u);
}

TEST_F(SourceTest, CatchesUpWithWhatAnybodyHasJustWritten) {
  Make("/r/config/a", "1");
  Follow();
  ASSERT_TRUE(Holds({{"/r/config/a", "1"}}));
  std::optional<Texts> known;
  const auto catch_up = [&] {
    known.reset();
    source_->CatchUp([&] { known = texts_; });
    return Until([&] { return known.has_value(); });
  };
  Make("/r/rules/b", "domain: b");
  ASSERT_TRUE(catch_up());
  EXPECT_EQ(*known, (Texts{{"/r/config/a", "1"}, {"/r/rules/b", "domain: b"}}));
  Set("/r/config/a", "2");
  Delete("/r/rules/b");
  ASSERT_TRUE(catch_up());
  EXPECT_EQ(*known, (Texts{{"/r/config/a", "2"}}));
  server_.Kill();
  EXPECT_TRUE(catch_up()) << "nobody answers";
}

TEST_F(SourceTest, OneChangeCostsOneRead) {
  for (int i = 0; i < 100; ++i) Make(fmt::format("/r/config/k{}", i), "1");
  Follow();
  ASSERT_TRUE(Until([&] { return texts_.size() == 100; }));
  const uint64_t before = source_->figures().reads;
  Set("/r/config/k7", "2");
  ASSERT_TRUE(Until([&] { return texts_["/r/config/k7"] == "2"; }));
  EXPECT_EQ(source_->figures().reads, before + 1);
}

TEST_F(SourceTest, AStormOfChangesIsPublishedSeldomAndTheLastTextWins) {
  Make("/r/config/k", "0");
  Follow();
  ASSERT_TRUE(Holds({{"/r/config/k", "0"}}));
  const uint64_t before = published_;
  uint32_t done = 0;
  int last_seen = 0;
  for (int i = 1; i <= 1'000; ++i) {
    editor_->Set("/r/config/k", std::to_string(i), -1,
                 [&](const absl::StatusOr<client::zookeeper::NodeStat>& stat) {
                   done += stat.ok() ? 1u : 0u;
                 });
  }
  ASSERT_TRUE(Until([&] {
    const int seen = std::stoi(texts_["/r/config/k"]);
    EXPECT_GE(seen, last_seen) << "never backwards";
    last_seen = seen;
    return done == 1'000;
  }));
  EXPECT_TRUE(Until([&] { return texts_["/r/config/k"] == "1000"; }, 1s));
  EXPECT_LT(published_ - before, 500u);
}

TEST_F(SourceTest, DoesNotCountInstancesIfItHasNoName) {
  Make("/r/config/a", "1");
  Follow();
  ASSERT_TRUE(Holds({{"/r/config/a", "1"}}));
  source_->Show({.generation = 1, .fingerprint = "f"});
  EXPECT_EQ(source_->instances(), 0u);
  EXPECT_THAT(Instances(), IsEmpty());
}

TEST_F(SourceTest, ShowsItsInstanceWithTheRulesInForce) {
  Follow(OptionsOf("one"));
  source_->Show({.generation = 3, .fingerprint = "5e0c"});
  source_->Show({.generation = 4, .fingerprint = "b72d"});
  EXPECT_TRUE(Until([&] {
    return DataOf("/r/instances/one")
        .ends_with("\"rules_generation\": 4, \"rules_fingerprint\": \"b72d\"}");
  }));
  EXPECT_THAT(DataOf("/r/instances/one"), HasSubstr("\"version\": \"1.2\""));
  EXPECT_EQ(source_->instances(), 1u);
  source_.reset();
  EXPECT_TRUE(Until([&] { return Instances().empty(); }));
}

TEST_F(SourceTest, CountsInstancesThroughTheEndOfTheirSessions) {
  Follow(OptionsOf("one"));
  std::optional<ZooKeeperSource> other(std::in_place, OptionsOf("two"), loop_);
  ASSERT_TRUE(Until([&] { return source_->instances() == 2 && other->instances() == 2; }));
  source_->Show({.generation = 7, .fingerprint = "f"});
  server_.Freeze();
  ASSERT_TRUE(Until([&] { return source_->figures().age > 1s; }));
  EXPECT_EQ(source_->instances(), 2u) << "the last known number";
  server_.Thaw();
  ASSERT_TRUE(Until([&] { return editor_->connected(); }));
  ASSERT_TRUE(Until([&] { return source_->figures().age == 0s; }));
  // Each of the two instances has one node, which it has created again.
  EXPECT_TRUE(Until([&] {
    EXPECT_LE(Instances().size(), 2u);
    EXPECT_EQ(source_->instances(), 2u);
    return Instances().size() == 2 &&
           DataOf("/r/instances/one").find("\"rules_generation\": 7") != std::string::npos;
  }));
  other.reset();
  EXPECT_TRUE(Until([&] { return source_->instances() == 1; }));
  EXPECT_EQ(source_->instances_error(), "");
}

TEST_F(SourceTest, SaysThatItMayNotShowItsInstance) {
  std::optional<ZooKeeperSource> owner(
      std::in_place, SourceOptions{.place = Options("gate:secret@").place, .instance = "owner"},
      loop_);
  bool exists = false;
  ASSERT_TRUE(Until([&] {
    editor_->Exists("/r/instances/owner", client::zookeeper::Watch::kNo,
                    [&](const absl::StatusOr<client::zookeeper::NodeStat>& stat) {
                      exists = exists || stat.ok();
                    });
    return exists;
  }));
  Follow(OptionsOf("one"));
  EXPECT_TRUE(Until([&] { return !source_->instances_error().empty(); }));
}

TEST_F(SourceTest, StartsFromTheCopyWhileTheEnsembleIsAway) {
  Make("/r/config/a", "1");
  Follow();
  ASSERT_TRUE(Holds({{"/r/config/a", "1"}}));
  source_.reset();
  server_.Kill();
  texts_.clear();
  Follow();
  EXPECT_TRUE(Holds({{"/r/config/a", "1"}}));
  EXPECT_THAT(problems_, IsEmpty());
}

TEST_F(SourceTest, WithoutACopyItSaysThatItIsNotRead) {
  server_.Kill();
  Follow();
  ASSERT_TRUE(Until([&] { return awaited_; }));
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("not read yet")));
  server_.Start();
  ASSERT_TRUE(Until([&] { return editor_->connected(); }));
  Make("/r/config/a", "1");
  EXPECT_TRUE(Holds({{"/r/config/a", "1"}}));
}

TEST_F(SourceTest, SaysThatACopyCannotBeWrittenAndThatItIsWrittenAgain) {
  using Kind = rule::Source::News::Kind;
  std::vector<rule::Source::News> told;
  const std::string copy = temp_ / "copy";
  std::filesystem::create_directory(copy);
  Make("/r/config/a", "1");
  source_.emplace(Options(), loop_);
  source_->Tell([&](const rule::Source::News& news) {
    if (news.kind == Kind::kCopyNotWritten || news.kind == Kind::kCopyWritten) told.push_back(news);
  });
  source_->Subscribe([this](const rule::DocumentSet& set) {
    texts_.clear();
    for (const rule::SourceDocument& document : set.documents)
      texts_[document.name] = document.text;
  });
  ASSERT_TRUE(Until([&] { return !told.empty(); }));
  EXPECT_EQ(told[0].kind, Kind::kCopyNotWritten);
  EXPECT_EQ(told[0].copy, copy);
  EXPECT_THAT(told[0].reason, HasSubstr(copy + " is a directory"));
  Set("/r/config/a", "2");
  ASSERT_TRUE(Holds({{"/r/config/a", "2"}}));
  EXPECT_EQ(told.size(), 1u) << "once for each reason";
  std::filesystem::remove(copy);
  Set("/r/config/a", "3");
  ASSERT_TRUE(Until([&] { return told.size() > 1; }));
  EXPECT_EQ(told[1].kind, Kind::kCopyWritten);
  EXPECT_TRUE(std::filesystem::is_regular_file(copy));
}

TEST_F(SourceTest, ADamagedCopyIsNotTaken) {
  temp_.Write("copy", "headgate-rules 1 00000000\n{}\n");
  server_.Kill();
  Follow();
  ASSERT_TRUE(Until([&] { return awaited_; }));
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("its checksum does not match")));
}

TEST_F(SourceTest, ANodeThatMayNotBeReadIsNamedAndTheOthersCount) {
  Make("/r/config/a", "1");
  Client owner(client::zookeeper::ClientOptions{.servers = Options().place.servers,
                                                .digest = "other:secret"},
               loop_, {});
  ASSERT_TRUE(Until([&] { return owner.connected(); }));
  bool made = false;
  owner.Create(
      "/r/config/b", "1", CreateMode::kPersistent,
      [&](const absl::StatusOr<client::zookeeper::Created>& created) { made = created.ok(); });
  ASSERT_TRUE(Until([&] { return made; }));
  Follow();
  ASSERT_TRUE(Until([&] { return !problems_.empty() && texts_.size() == 1; }));
  EXPECT_THAT(problems_, ElementsAre(HasSubstr("/r/config/b: cannot be read")));
  EXPECT_FALSE(awaited_);
}

TEST_F(SourceTest, WritesADocumentOnlyOverTheVersionThatWasRead) {
  Make("/r/config/a", "1");
  Follow();
  ASSERT_TRUE(Holds({{"/r/config/a", "1"}}));
  const auto read = Read("/r/config/a");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->text, "1");
  EXPECT_EQ(read->version, last_.documents[0].version);
  const auto written =
      Write({.name = "/r/config/a", .text = "2", .expected_version = read->version});
  ASSERT_TRUE(written.ok()) << written.status();
  EXPECT_TRUE(Holds({{"/r/config/a", "2"}}));
  EXPECT_EQ(last_.documents[0].version, *written);
  EXPECT_TRUE(absl::IsAborted(
      Write({.name = "/r/config/a", .text = "3", .expected_version = read->version}).status()));
  // Deleted and made again: the number of the version begins again, but it is another node.
  Delete("/r/config/a");
  Make("/r/config/a", "1");
  EXPECT_TRUE(absl::IsAborted(
      Write({.name = "/r/config/a", .text = "3", .expected_version = read->version}).status()));
}

TEST_F(SourceTest, MakesAndRemovesDocuments) {
  Follow();
  ASSERT_TRUE(Until([&] { return awaited_; }));
  const auto made = Write({.name = "/r/rules/edge", .text = "x", .expected_version = ""});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_TRUE(absl::IsAborted(
      Write({.name = "/r/rules/edge", .text = "y", .expected_version = ""}).status()));
  EXPECT_TRUE(Holds({{"/r/rules/edge", "x"}}));
  EXPECT_EQ(*Write({.name = "/r/rules/edge", .text = std::nullopt, .expected_version = *made}), "");
  EXPECT_TRUE(Holds({}));
  EXPECT_TRUE(absl::IsNotFound(Read("/r/rules/edge").status()));
  for (const std::string name : {"/r/state/x", "/r/config", "/r/config/a/b", "/other"}) {
    EXPECT_TRUE(absl::IsPermissionDenied(
        Write({.name = name, .text = "x", .expected_version = ""}).status()))
        << name;
  }
}

TEST_F(SourceTest, ManyLongNamesTakeSeveralSessionsAndSurviveAReconnect) {
  constexpr int kNodes = 10'000;
  const std::string padding(80, 'x');
  uint32_t made = 0;
  editor_->CreateAll("/r/config", [&](const absl::Status&) {
    for (int i = 0; i < kNodes; ++i) {
      editor_->Create(fmt::format("/r/config/{}-{}", padding, i), "1", CreateMode::kPersistent,
                      [&](const absl::StatusOr<client::zookeeper::Created>& created) {
                        made += created.ok() ? 1u : 0u;
                      });
    }
  });
  ASSERT_TRUE(Until([&] { return made == kNodes; }, 60s));
  const base::BootTime begin = clock_.BootNow();
  Follow();
  ASSERT_TRUE(Until([&] { return texts_.size() == kNodes; }, 60s));
  RecordProperty("first_load_ms", static_cast<int>((clock_.BootNow() - begin) / 1ms));
  const std::string last = fmt::format("/r/config/{}-{}", padding, kNodes - 1);
  for (int round = 2; round < 4; ++round) {
    server_.Kill();
    ASSERT_TRUE(Until([&] { return source_->figures().age > 0s; }));
    server_.Start();
    ASSERT_TRUE(Until([&] { return source_->figures().age == 0s; }, 60s));
    ASSERT_TRUE(Until([&] { return editor_->connected(); }));
    Set(last, std::to_string(round));
    EXPECT_TRUE(Until([&] { return texts_[last] == std::to_string(round); }));
  }
}

}  // namespace source_test
}  // namespace headgate::zookeeper_test

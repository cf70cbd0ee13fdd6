#include "headgate/watch/open_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/watch/file/temp_directory.h"

namespace headgate::watch {
namespace open_sources_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(OpenSources, AllPathsAreOneSource) {
  const base::SystemClock clock;
  net::EventLoop loop(clock);
  const file::TempDirectory temp;
  temp.Write("a.yaml", "one");
  temp.Write("b.yaml", "two");
  const auto sources =
      OpenSources(std::vector<std::string>{temp / "a.yaml", temp / "b.yaml"}, {}, loop);
  ASSERT_TRUE(sources.ok());
  ASSERT_EQ(sources->size(), 1u);
  std::vector<std::string> texts;
  sources->front()->Subscribe([&](const rule::DocumentSet& set) {
    for (const rule::SourceDocument& document : set.documents) texts.push_back(document.text);
  });
  EXPECT_THAT(texts, ElementsAre("one", "two"));
}

TEST(OpenSources, NoPlaceIsNoSource) {
  const base::SystemClock clock;
  net::EventLoop loop(clock);
  EXPECT_TRUE(OpenSources({}, {}, loop)->empty());
}

TEST(OpenSources, AnUnknownSchemeIsAnErrorThatNamesIt) {
  const base::SystemClock clock;
  net::EventLoop loop(clock);
  const auto sources =
      OpenSources(std::vector<std::string>{"rules.yaml", "etcd://127.0.0.1:2379/rules"}, {}, loop);
  EXPECT_EQ(sources.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(sources.status().message(), HasSubstr("etcd://"));
}

TEST(OpenSources, AnInstanceIsShownOnceInEachPlace) {
  base::SystemClock clock;
  net::EventLoop loop(clock);
  const auto shown = [&](const std::vector<std::string>& places, std::string store) {
    const auto sources = OpenSources(places, {.instance = "one", .store = std::move(store)}, loop);
    std::vector<uint32_t> counts;
    for (const auto& source : *sources) counts.push_back(source->instances());
    return counts;
  };
  EXPECT_EQ(shown({"zk://127.0.0.1:1/a", "zk://127.0.0.1:1/b"}, ""), (std::vector<uint32_t>{1, 1}));
  EXPECT_EQ(shown({"zk://127.0.0.1:1/a"}, "redis://127.0.0.1:1/0"), std::vector<uint32_t>{1});
  EXPECT_EQ(shown({"zk://127.0.0.1:1/a"}, "zk://user@127.0.0.1:1/a"), std::vector<uint32_t>{0});
  EXPECT_EQ(shown({"zk://127.0.0.1:1"}, "zk://127.0.0.1:1"), std::vector<uint32_t>{0});
}

// Their documents would have the same names.
TEST(OpenSources, TwoSourcesHaveDifferentPaths) {
  const base::SystemClock clock;
  net::EventLoop loop(clock);
  const auto sources =
      OpenSources(std::vector<std::string>{"zk://127.0.0.1:1/a", "zk://127.0.0.1:2/a"}, {}, loop);
  EXPECT_EQ(sources.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(sources.status().message(), HasSubstr("two sources of rules have the path /a"));
}

TEST(OpenSources, APasswordIsForTheUserOfEachZooKeeper) {
  const base::SystemClock clock;
  net::EventLoop loop(clock);
  const auto opened = [&](const std::vector<std::string>& places) {
    return OpenSources(places, {.password = "secret"}, loop).status();
  };
  EXPECT_TRUE(opened({"zk://ann@127.0.0.1:1/a", "zk://bob:old@127.0.0.1:1/b"}).ok());
  EXPECT_TRUE(opened({"rules.yaml", "zk://ann@127.0.0.1:1/a"}).ok());
  EXPECT_FALSE(opened({"zk://ann@127.0.0.1:1/a", "zk://127.0.0.1:1/b"}).ok());
}

TEST(OpenSources, AZooKeeperUrlIsASource) {
  EXPECT_TRUE(CheckPlace("zk://127.0.0.1:2181,127.0.0.1:2182/limits").ok());
  EXPECT_TRUE(CheckPlace("rules.yaml").ok());
  EXPECT_TRUE(CheckPlace("zk://ann@127.0.0.1:2181/limits", "secret").ok());
  EXPECT_THAT(CheckPlace("zk://127.0.0.1:2181/limits", "secret").message(),
              ::testing::AllOf(HasSubstr("a password needs a user: zk://USER@HOST"),
                               ::testing::Not(HasSubstr("secret"))));
  EXPECT_THAT(
      CheckPlace("zk://user:secret@127.0.0.1:0/x").message(),
      ::testing::AllOf(HasSubstr("'0' is not a port"), ::testing::Not(HasSubstr("secret"))));
}

}  // namespace open_sources_test
}  // namespace headgate::watch

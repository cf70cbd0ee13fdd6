#include "headgate/watch/zookeeper/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>

namespace headgate::watch::zookeeper {
namespace comparison_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

class ComparisonTest : public ::testing::Test {
 protected:
  using Answer = std::function<void(const Comparison::Stat& stat)>;

  // The paths are "0", "1", … `missed_` has the paths whose changes were missed.
  void Compare(size_t paths) {
    comparison_.emplace(
        loop_, 1ms,
        Comparison::Callbacks{
            .paths =
                [this, paths] {
                  ++rounds_;
                  std::vector<std::string> all;
                  for (size_t i = 0; i < paths; ++i) all.push_back(std::to_string(i));
                  return all;
                },
            .look = [this](const std::string&, Answer done) { asked_.push_back(std::move(done)); },
            .compare = [this](
                           const std::string& path,
                           const Comparison::Stat& stat) { return stat.ok() && path == missed_; },
            .on_missed = [this](const std::vector<std::string>& missed) { told_ = missed; }});
  }
  bool Until(const std::function<bool()>& done) { return loop_.RunUntil(done, 20s); }
  void AnswerAll() {
    for (const Answer& answer : std::exchange(asked_, {})) answer(client::zookeeper::NodeStat{});
  }

  base::SystemClock clock_;
  net::EventLoop loop_{clock_};
  std::string missed_;
  std::vector<Answer> asked_;
  std::vector<std::string> told_;
  int rounds_ = 0;
  std::optional<Comparison> comparison_;
};

TEST_F(ComparisonTest, AsksForAtMostAThousandPathsASecond) {
  Compare(250);
  ASSERT_TRUE(Until([&] { return !asked_.empty(); }));
  const base::BootTime begin = clock_.BootNow();
  EXPECT_EQ(asked_.size(), 100u);
  ASSERT_TRUE(Until([&] { return asked_.size() == 250; }));
  EXPECT_GE(clock_.BootNow() - begin, 190ms);
}

TEST_F(ComparisonTest, ARoundEndsWhenAllAreAnswered) {
  missed_ = "1";
  Compare(3);
  ASSERT_TRUE(Until([&] { return asked_.size() == 3; }));
  const Answer last = std::move(asked_.back());
  asked_.pop_back();
  AnswerAll();
  EXPECT_FALSE(loop_.RunUntil([&] { return rounds_ > 1; }, 20ms));
  EXPECT_TRUE(told_.empty());
  last(absl::UnavailableError("no connection"));
  EXPECT_THAT(told_, ElementsAre("1"));
  EXPECT_TRUE(Until([&] { return rounds_ > 1; }));
}

TEST_F(ComparisonTest, ARoundWithoutDocumentsIsFollowedByAnother) {
  Compare(0);
  EXPECT_TRUE(Until([&] { return rounds_ > 2; }));
}

}  // namespace comparison_test
}  // namespace headgate::watch::zookeeper

#include "headgate/watch/fitting_changes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace headgate::watch {
namespace fitting_changes_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<rule::Problem> Contradiction() { return {rule::WholeFileProblem("a", "twice")}; }

std::vector<size_t> NumbersOf(const std::vector<FittingChanges::Refused>& refused) {
  std::vector<size_t> numbers;
  for (const auto& one : refused) numbers.push_back(one.change);
  return numbers;
}

TEST(FittingChanges, AllAreMadeIfTheyFit) {
  int attempts = 0;
  FittingChanges changes(1000, [&](const auto&) {
    ++attempts;
    return std::vector<rule::Problem>();
  });
  EXPECT_THAT(changes.Find(), IsEmpty());
  EXPECT_EQ(changes.made(), std::vector<bool>(1000, true));
  EXPECT_EQ(attempts, 1);
}

TEST(FittingChanges, OnlyThoseThatDoNotFitAreRefused) {
  const std::set<size_t> bad = {3, 700};
  int attempts = 0;
  FittingChanges changes(1000, [&](const std::vector<bool>& made) {
    ++attempts;
    for (const size_t one : bad)
      if (made[one]) return Contradiction();
    return std::vector<rule::Problem>();
  });
  const auto refused = changes.Find();
  EXPECT_THAT(NumbersOf(refused), ElementsAre(3, 700));
  EXPECT_EQ(refused[0].problems, Contradiction());
  for (size_t i = 0; i < 1000; ++i) EXPECT_EQ(changes.made()[i], !bad.contains(i)) << i;
  EXPECT_LE(attempts, 45);  // two bad ones in ten halvings, and each once more
}

// A rule moves from document 1 to document 0, and document 2 is bad.
TEST(FittingChanges, OneMayFitOnlyAfterALaterOne) {
  FittingChanges changes(3, [&](const std::vector<bool>& made) {
    return made[2] || (made[0] && !made[1]) ? Contradiction() : std::vector<rule::Problem>();
  });
  EXPECT_THAT(NumbersOf(changes.Find()), ElementsAre(2));
  EXPECT_THAT(changes.made(), ElementsAre(true, true, false));
}

TEST(FittingChanges, TheNumberOfAttemptsIsBounded) {
  size_t attempts = 0;
  FittingChanges changes(10'000, [&](const std::vector<bool>& made) {
    ++attempts;
    for (const bool one : made)
      if (one) return Contradiction();
    return std::vector<rule::Problem>();
  });
  EXPECT_EQ(changes.Find().size(), 10'000u);
  EXPECT_EQ(attempts, FittingChanges::kAttemptsMax);
}

TEST(FittingChanges, OfNothingAreNone) {
  FittingChanges changes(0, [](const auto&) { return Contradiction(); });
  EXPECT_THAT(changes.Find(), IsEmpty());
}

}  // namespace fitting_changes_test
}  // namespace headgate::watch

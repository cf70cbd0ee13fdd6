#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "headgate/library/headgate.h"

namespace {

using ::testing::HasSubstr;

struct CLimiter : ::testing::Test {
  ~CLimiter() override { headgate_free(limiter); }
  std::array<char, 400> error{};
  headgate_limiter* limiter =
      headgate_new("api_key: 2/hour\n\nqueue: 1/s queue\n", error.data(), error.size());
  headgate_entry ann{"api_key", "ann"};
  headgate_verdict verdict{};
};

TEST_F(CLimiter, ChecksPeeksRefundsAndResets) {
  ASSERT_NE(limiter, nullptr) << error.data();
  EXPECT_EQ(headgate_check(limiter, &ann, 1, 2, &verdict), HEADGATE_OK);
  EXPECT_EQ(verdict.allowed, 1);
  EXPECT_EQ(verdict.limited, 1);
  EXPECT_EQ(verdict.limit, 2u);
  EXPECT_EQ(headgate_check(limiter, &ann, 1, 1, &verdict), HEADGATE_OK);
  EXPECT_EQ(verdict.allowed, 0);
  EXPECT_GT(verdict.retry_after, 0);
  EXPECT_EQ(headgate_check(limiter, &ann, 1, 3, &verdict), HEADGATE_OK);
  EXPECT_EQ(verdict.retry_after, INT64_MAX);
  EXPECT_EQ(headgate_refund(limiter, "default", &ann, 1, 2), HEADGATE_OK);
  EXPECT_EQ(headgate_peek(limiter, "default", &ann, 1, 2, &verdict), HEADGATE_OK);
  EXPECT_EQ(verdict.allowed, 1);
  EXPECT_EQ(headgate_check_in(limiter, "default", &ann, 1, 2, &verdict), HEADGATE_OK);
  EXPECT_EQ(headgate_reset(limiter, "default", &ann, 1), HEADGATE_OK);
  EXPECT_EQ(headgate_check(limiter, &ann, 1, 2, &verdict), HEADGATE_OK);
  EXPECT_EQ(verdict.allowed, 1);
  headgate_maintain(limiter);
}

TEST_F(CLimiter, SaysWhyItDoesNothing) {
  const headgate_entry other{"color", "red"};
  EXPECT_EQ(headgate_refund(limiter, "default", &other, 1, 1), HEADGATE_NOT_FOUND);
  const headgate_entry queue{"queue", "q"};
  EXPECT_EQ(headgate_check(limiter, &queue, 1, 1, &verdict), HEADGATE_OK);
  EXPECT_EQ(headgate_refund(limiter, "default", &queue, 1, 1), HEADGATE_NOT_POSSIBLE);
}

TEST_F(CLimiter, RefusesWrongArguments) {
  const headgate_entry broken{"api_key", nullptr};
  const std::vector<headgate_entry> many(33, ann);
  EXPECT_EQ(headgate_check(nullptr, &ann, 1, 1, &verdict), HEADGATE_INVALID);
  EXPECT_EQ(headgate_check(limiter, nullptr, 1, 1, &verdict), HEADGATE_INVALID);
  EXPECT_EQ(headgate_check(limiter, &ann, 0, 1, &verdict), HEADGATE_INVALID);
  EXPECT_EQ(headgate_check(limiter, &broken, 1, 1, &verdict), HEADGATE_INVALID);
  EXPECT_EQ(headgate_check(limiter, &ann, 1, 1, nullptr), HEADGATE_INVALID);
  EXPECT_EQ(headgate_check(limiter, many.data(), many.size(), 1, &verdict), HEADGATE_INVALID);
  EXPECT_EQ(headgate_check_in(limiter, "", &ann, 1, 1, &verdict), HEADGATE_INVALID);
  EXPECT_EQ(headgate_refund(limiter, nullptr, &ann, 1, 1), HEADGATE_INVALID);
  EXPECT_EQ(headgate_reset(nullptr, "default", &ann, 1), HEADGATE_INVALID);
  EXPECT_EQ(headgate_set_rules(nullptr, "", nullptr, nullptr, 0), HEADGATE_INVALID);
  headgate_free(nullptr);
  headgate_maintain(nullptr);
}

TEST_F(CLimiter, ReportsProblemsOfRulesAsFarAsThereIsRoom) {
  EXPECT_EQ(headgate_new("a: 1/fortnight", error.data(), error.size()), nullptr);
  EXPECT_THAT(std::string(error.data()), HasSubstr("fortnight"));
  std::array<char, 8> little{};
  EXPECT_EQ(headgate_new("a: 1/fortnight", little.data(), little.size()), nullptr);
  EXPECT_EQ(std::string(little.data()).size(), 7u);
  EXPECT_EQ(headgate_new("a: 1/fortnight", nullptr, 0), nullptr);
  EXPECT_EQ(headgate_set_rules(limiter, nullptr, "domain: [", error.data(), error.size()),
            HEADGATE_INVALID);
  EXPECT_THAT(std::string(error.data()), HasSubstr("rule_file"));
  const char* const file =
      "domain: edge\ndescriptors:\n- key: k\n  rate_limit: {unit: day, requests_per_unit: 1}\n";
  EXPECT_EQ(headgate_set_rules(limiter, nullptr, file, nullptr, 0), HEADGATE_OK);
  const headgate_entry k{"k", "v"};
  EXPECT_EQ(headgate_check_in(limiter, "edge", &k, 1, 1, &verdict), HEADGATE_OK);
  EXPECT_EQ(verdict.limited, 1);
}

TEST_F(CLimiter, ASnapshotGivesTheBucketsToALaterLimiter) {
  ASSERT_EQ(headgate_check(limiter, &ann, 1, 2, &verdict), HEADGATE_OK);
  size_t size = 0;
  EXPECT_EQ(headgate_snapshot(limiter, nullptr, 0, &size), HEADGATE_TOO_SMALL);
  std::vector<char> bytes(size);
  ASSERT_EQ(headgate_snapshot(limiter, bytes.data(), bytes.size(), &size), HEADGATE_OK);
  headgate_limiter* const later = headgate_new_from("api_key: 2/hour", nullptr, 1000, bytes.data(),
                                                    bytes.size(), error.data(), error.size());
  ASSERT_NE(later, nullptr) << error.data();
  EXPECT_EQ(headgate_check(later, &ann, 1, 1, &verdict), HEADGATE_OK);
  EXPECT_EQ(verdict.allowed, 0);
  headgate_free(later);
}

}  // namespace

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>
#include <vector>

#include "headgate/library/headgate.h"

namespace c_interface_test {

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

constexpr int64_t kStart = 1'790'000'000'000'000'000;
constexpr int64_t kSecond = 1'000'000'000;

TEST_F(CLimiter, ChecksSeveralDescriptorsAllOrNothing) {
  const char* const file = R"(domain: edge
all_or_nothing: true
descriptors:
- key: user
  rate_limit: {unit: hour, requests_per_unit: 5}
- key: address
  rate_limit: {unit: hour, requests_per_unit: 1}
)";
  ASSERT_EQ(headgate_set_rules(limiter, nullptr, file, nullptr, 0), HEADGATE_OK);
  const headgate_entry user{"user", "ann"};
  const headgate_entry address{"address", "::1"};
  const headgate_descriptor both[] = {{&user, 1, 2}, {&address, 1, 1}};
  std::array<headgate_verdict, 2> verdicts{};
  ASSERT_EQ(headgate_check_all(limiter, "edge", both, 2, verdicts.data()), HEADGATE_OK);
  EXPECT_EQ(verdicts[0].allowed, 1);
  EXPECT_EQ(verdicts[0].remaining, 3u);
  EXPECT_EQ(verdicts[1].allowed, 1);
  ASSERT_EQ(headgate_check_all(limiter, "edge", both, 2, verdicts.data()), HEADGATE_OK);
  EXPECT_EQ(verdicts[1].allowed, 0);
  EXPECT_EQ(headgate_peek(limiter, "edge", &user, 1, 0, &verdict), HEADGATE_OK);
  EXPECT_EQ(verdict.remaining, 3u) << "the user has lost nothing";
}

TEST_F(CLimiter, RefusesWrongDescriptors) {
  headgate_verdict verdicts[65];
  const headgate_entry broken{nullptr, "ann"};
  const headgate_descriptor good{&ann, 1, 1};
  const std::vector<headgate_descriptor> many(65, good);
  const headgate_descriptor second_is_wrong[] = {good, {&broken, 1, 1}};
  const headgate_descriptor none{&ann, 0, 1};
  const auto check = [&](headgate_limiter* of, const char* domain, const headgate_descriptor* all,
                         size_t count) {
    return headgate_check_all(of, domain, all, count, verdicts);
  };
  EXPECT_EQ(check(nullptr, "default", &good, 1), HEADGATE_INVALID);
  EXPECT_EQ(check(limiter, nullptr, &good, 1), HEADGATE_INVALID);
  EXPECT_EQ(check(limiter, "", &good, 1), HEADGATE_INVALID);
  EXPECT_EQ(check(limiter, "default", nullptr, 1), HEADGATE_INVALID);
  EXPECT_EQ(check(limiter, "default", &good, 0), HEADGATE_INVALID);
  EXPECT_EQ(check(limiter, "default", many.data(), 65), HEADGATE_INVALID);
  EXPECT_EQ(check(limiter, "default", second_is_wrong, 2), HEADGATE_INVALID);
  EXPECT_EQ(check(limiter, "default", &none, 1), HEADGATE_INVALID);
  EXPECT_EQ(headgate_check_all(limiter, "default", &good, 1, nullptr), HEADGATE_INVALID);
  EXPECT_EQ(check(limiter, "default", many.data(), 64), HEADGATE_OK);
  EXPECT_EQ(verdicts[1].allowed, 1);
  EXPECT_EQ(verdicts[2].allowed, 0);
}

TEST_F(CLimiter, AnswersInTheTimeThatATestGives) {
  headgate_limiter* const timed = headgate_new_at(kStart, "api_key: 2/minute", nullptr, 0, nullptr,
                                                  0, error.data(), error.size());
  ASSERT_NE(timed, nullptr) << error.data();
  EXPECT_EQ(headgate_check(timed, &ann, 1, 2, &verdict), HEADGATE_OK);
  EXPECT_EQ(verdict.allowed, 1);
  EXPECT_EQ(headgate_check(timed, &ann, 1, 1, &verdict), HEADGATE_OK);
  EXPECT_EQ(verdict.retry_after, 30 * kSecond);
  EXPECT_EQ(headgate_advance(timed, 30 * kSecond - 1), HEADGATE_OK);
  EXPECT_EQ(headgate_check(timed, &ann, 1, 1, &verdict), HEADGATE_OK);
  EXPECT_EQ(verdict.retry_after, 1);
  EXPECT_EQ(headgate_advance(timed, 1), HEADGATE_OK);
  EXPECT_EQ(headgate_check(timed, &ann, 1, 1, &verdict), HEADGATE_OK);
  EXPECT_EQ(verdict.allowed, 1);
  EXPECT_EQ(headgate_advance(timed, -1), HEADGATE_INVALID);
  EXPECT_EQ(headgate_advance(timed, HEADGATE_TIME_MAX - kStart), HEADGATE_INVALID);
  EXPECT_EQ(headgate_advance(timed, HEADGATE_TIME_MAX - kStart - 30 * kSecond), HEADGATE_OK);
  EXPECT_EQ(headgate_check(timed, &ann, 1, 2, &verdict), HEADGATE_OK);
  EXPECT_EQ(verdict.allowed, 1);
  headgate_free(timed);
  EXPECT_EQ(headgate_advance(limiter, 1), HEADGATE_NOT_POSSIBLE);
  EXPECT_EQ(headgate_advance(nullptr, 1), HEADGATE_INVALID);
  for (const int64_t wrong : {int64_t{-1}, HEADGATE_TIME_MAX + 1}) {
    EXPECT_EQ(headgate_new_at(wrong, "", nullptr, 0, nullptr, 0, error.data(), error.size()),
              nullptr);
    EXPECT_THAT(std::string(error.data()), HasSubstr("HEADGATE_TIME_MAX"));
  }
  EXPECT_EQ(
      headgate_new_at(0, "a: 1/fortnight", nullptr, 0, nullptr, 0, error.data(), error.size()),
      nullptr);
  EXPECT_THAT(std::string(error.data()), HasSubstr("fortnight"));
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

TEST_F(CLimiter, RefusesAnEmptyKey) {
  const headgate_entry unnamed{"", "ann"};
  const headgate_descriptor second_is_wrong[] = {{&ann, 1, 1}, {&unnamed, 1, 1}};
  headgate_verdict verdicts[2];
  EXPECT_EQ(headgate_check(limiter, &unnamed, 1, 1, &verdict), HEADGATE_INVALID);
  EXPECT_EQ(headgate_peek(limiter, "default", &unnamed, 1, 1, &verdict), HEADGATE_INVALID);
  EXPECT_EQ(headgate_refund(limiter, "default", &unnamed, 1, 1), HEADGATE_INVALID);
  EXPECT_EQ(headgate_reset(limiter, "default", &unnamed, 1), HEADGATE_INVALID);
  EXPECT_EQ(headgate_check_all(limiter, "default", second_is_wrong, 2, verdicts), HEADGATE_INVALID);
  const headgate_entry no_value{"api_key", ""};
  EXPECT_EQ(headgate_check(limiter, &no_value, 1, 1, &verdict), HEADGATE_OK);
  EXPECT_EQ(verdict.limited, 1);
}

TEST_F(CLimiter, RulesMayEndLikeTheLinesOfWindows) {
  headgate_limiter* const made =
      headgate_new("a: 1/hour\r\n\r\nb: 2/hour\r\n", error.data(), error.size());
  ASSERT_NE(made, nullptr) << error.data();
  const headgate_entry b{"b", "v"};
  EXPECT_EQ(headgate_check(made, &b, 1, 1, &verdict), HEADGATE_OK);
  EXPECT_EQ(verdict.limit, 2u);
  headgate_free(made);
}

uint64_t AddressBytes() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// While it lives, the process may map this much more. Sanitizers map a lot themselves.
struct AddressLimit {
  explicit AddressLimit(uint64_t more) {
    EXPECT_EQ(getrlimit(RLIMIT_AS, &before), 0);
    const rlimit little{.rlim_cur = AddressBytes() + more, .rlim_max = before.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_AS, &little), 0);
  }
  ~AddressLimit() { EXPECT_EQ(setrlimit(RLIMIT_AS, &before), 0); }
  rlimit before{};
};

TEST_F(CLimiter, SaysThatThereIsNoMemory) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  const uint64_t before = AddressBytes();
  // The table of 2^34 buckets has 607 GiB, which fit, and then the next array does not.
  for (const uint64_t buckets : {uint64_t{1} << 34, uint64_t{1} << 36}) {
    const AddressLimit limit(700 * kGiB);
    EXPECT_EQ(headgate_new_from("api_key: 2/hour", nullptr, buckets, nullptr, 0, error.data(),
                                error.size()),
              nullptr);
    EXPECT_THAT(std::string(error.data()),
                HasSubstr("no memory for max_buckets " + std::to_string(buckets)));
  }
  EXPECT_LT(AddressBytes(), before + kGiB) << "the pages are given back";
  for (const uint64_t buckets : {(uint64_t{1} << 36) + 1, UINT64_MAX}) {
    EXPECT_EQ(headgate_new_from("api_key: 2/hour", nullptr, buckets, nullptr, 0, error.data(),
                                error.size()),
              nullptr);
    EXPECT_THAT(std::string(error.data()), HasSubstr("from 1 to 68719476736"));
  }
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

}  // namespace c_interface_test

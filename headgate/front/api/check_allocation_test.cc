// A check over HTTP allocates nothing in steady state, from the bytes of the request to the bytes
// of the response.
#include <gtest/gtest.h>

#include <string>

#include "headgate/front/api/check_rig.h"
#include "headgate/testing/count_allocations.h"

namespace headgate::front::api {
namespace check_allocation_test {

TEST(Check, AllocatesNothingWithADomainThatHasNoRules) {
  const base::Instant now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  CheckRig rig({.requests = 10, .period = std::chrono::seconds(20)}, now);
  const std::string input =
      CheckRig::Post(R"({"descriptors":[{"entries":[{"key":"api_key","value":"k1"}]}]})");
  std::string output;
  uint64_t before = 0;
  for (int round = 0; round < 100; ++round) {
    if (round == 20) before = testing::allocation_count;
    output.clear();
    rig.session.OnBytes(input, output, now);
  }
  EXPECT_EQ(testing::allocation_count, before);
  EXPECT_NE(output.find("\"hint\":\"no rule has the domain"), output.npos) << output;
}

TEST(Check, AllocatesNothingInSteadyState) {
  base::Instant now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  CheckRig rig({.requests = 10, .period = std::chrono::seconds(20)}, now);

  // The second request arrives in two reads and has an escape in its value.
  std::string input;
  for (const std::string value : {R"(k1)", R"(k\n2)"}) {
    const std::string body =
        R"({"domain":"edge","descriptors":[{"entries":[{"key":"api_key","value":")" + value +
        R"("}]},{"entries":[{"key":"other","value":"x"}]}]})";
    input += CheckRig::Post(body);
  }
  const std::string_view first = std::string_view(input).substr(0, input.size() - 9);
  std::string output;
  uint64_t before = 0;
  bool allowed = false, denied = false;
  for (int round = 0; round < 100; ++round) {
    if (round == 20) before = testing::allocation_count;
    output.clear();
    const auto progress = rig.session.OnBytes(first, output, now);
    rig.session.OnBytes(std::string_view(input).substr(progress.consumed), output, now);
    allowed = allowed || output.starts_with("HTTP/1.1 200 ");
    denied = denied || output.starts_with("HTTP/1.1 429 ");
    now += std::chrono::milliseconds(500);
  }
  EXPECT_EQ(testing::allocation_count, before);
  EXPECT_TRUE(allowed);
  EXPECT_TRUE(denied);
}

}  // namespace check_allocation_test
}  // namespace headgate::front::api

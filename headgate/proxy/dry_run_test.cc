// A rule that refuses nothing, because it is in shadow or because of mode passthrough, takes from
// its buckets what it would take if it refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/base/random.h"
#include "headgate/proxy/size_rig.h"

namespace headgate::proxy {
namespace dry_run_test {

using namespace std::chrono_literals;

// One unit comes back each second.
constexpr std::string_view kTen =
    "period: 10s, requests_per_unit: 10, cost: {of: response_bytes, per: 1KiB, reserve: 2KiB}";
constexpr std::string_view kTenInWindows =
    "period: 10s, requests_per_unit: 10, algorithm: fixed_window,"
    " cost: {of: response_bytes, per: 1KiB, reserve: 2KiB}";

struct DryRig : SizeRig {
  using SizeRig::SizeRig;

  // One request, whose answer has this size. Returns whether it was let through.
  bool TryGet(uint64_t bytes) {
    const auto exchange = Begin(Sized(0), "GET");
    if (upstream.receiver == nullptr) return false;
    exchange->receiver->OnEnd({}, now);
    SendHead(kUnsized);
    if (bytes > 0) SendBody(bytes);
    End();
    return true;
  }
};

struct Case {
  std::string_view limit;
  Store store;
};
class DryRun : public ::testing::TestWithParam<Case> {
 protected:
  // The same random requests to both. A dry run lets all of them through. Whatever it lets through
  // beyond the limit costs nothing, so the buckets stay the same.
  void Compare() {
    for (DryRig* const rig : {&real, &dry}) rig->upstream.takes = true;
    base::Random random(7);
    int denied = 0;
    for (int i = 0; i < 200; ++i) {
      const auto wait = std::chrono::milliseconds(random.Below(3000));
      const uint64_t bytes = random.Below(8 * kKiB);
      for (DryRig* const rig : {&real, &dry}) {
        rig->Pass(wait);
        rig->Settle();
      }
      denied += real.TryGet(bytes) ? 0 : 1;
      ASSERT_TRUE(dry.TryGet(bytes)) << i;
      ASSERT_EQ(dry.Peek(), real.Peek()) << i;
    }
    EXPECT_GT(denied, 20);
    EXPECT_LT(denied, 180);
    EXPECT_EQ(dry.settled.taken.value(), real.settled.taken.value());
    EXPECT_EQ(dry.settled.returned.value(), real.settled.returned.value());
  }

  DryRig real{GetParam().limit, GetParam().store};
  DryRig dry{GetParam().limit, GetParam().store};
};
INSTANTIATE_TEST_SUITE_P(Limits, DryRun,
                         ::testing::Values(Case{kTen, Store::kMemory}, Case{kTen, Store::kShared},
                                           Case{kTenInWindows, Store::kMemory},
                                           Case{kTenInWindows, Store::kShared}));

TEST_P(DryRun, PassthroughChargesSizesAsEnforcementDoes) {
  dry.admission.refusing = false;
  Compare();
  EXPECT_EQ(dry.rule_counters.let_through.value(), real.Count(gate::RequestOutcome::kDenied));
}

TEST_P(DryRun, RuleInShadowChargesSizesAsIfItWereNot) {
  dry.SetShadowLimit(GetParam().limit);
  Compare();
}

// Two rules apply to each request. The second one denies, so in earnest the first one would give
// its reserve back.
TEST_P(DryRun, RequestThatAnotherRuleDeniesCostsNothing) {
  for (DryRig* const rig : {&real, &dry}) {
    rig->SetRuleFile(
        fmt::format("domain: default\ndescriptors:\n- key: client\n  rate_limit: {{{}}}\n"
                    "- key: tenant\n  rate_limit: {{period: 1h, requests_per_unit: 1}}\n",
                    GetParam().limit));
    rig->Map(
        "mappings:\n- descriptors:\n  - entries: [{key: client, header: X-Client-Id}]\n"
        "  - entries: [{key: tenant, header: X-Client-Id}]\n");
  }
  dry.admission.refusing = false;
  EXPECT_TRUE(real.TryGet(3 * kKiB));
  EXPECT_TRUE(dry.TryGet(3 * kKiB));
  EXPECT_EQ(dry.Taken(), 3u);
  EXPECT_FALSE(real.TryGet(100 * kKiB));
  EXPECT_TRUE(dry.TryGet(100 * kKiB));
  EXPECT_EQ(real.Taken(), 3u);
  EXPECT_EQ(dry.Taken(), 3u);
}

// The peek at the pool saw room, but another loop has taken it.
TEST_P(DryRun, RequestThatThePoolWouldRefuseCostsNothing) {
  real.admission.verdict = {.admitted = false, .reason = "used up"};
  dry.admission.refusing = false;
  dry.admission.verdict = {.admitted = true, .counted_only = true};
  EXPECT_FALSE(real.TryGet(100 * kKiB));
  EXPECT_TRUE(dry.TryGet(100 * kKiB));
  EXPECT_EQ(real.Taken(), 0u);
  EXPECT_EQ(dry.Taken(), 0u);
}

}  // namespace dry_run_test
}  // namespace headgate::proxy

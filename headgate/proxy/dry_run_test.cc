// A rule that refuses nothing, because it is in shadow or because of mode passthrough, takes from
// its buckets what it would take if it refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/base/random.h"
#include "headgate/proxy/size_rig.h"

namespace headgate::proxy {
namespace dry_run_test {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::StartsWith;

// One unit comes back each second.
constexpr std::string_view kTen =
    "period: 10s, requests_per_unit: 10, cost: {of: response_bytes, per: 1KiB, reserve: 2KiB}";
constexpr std::string_view kTenInWindows =
    "period: 10s, requests_per_unit: 10, algorithm: fixed_window,"
    " cost: {of: response_bytes, per: 1KiB, reserve: 2KiB}";

struct DryRig : SizeRig {
  using SizeRig::SizeRig;

  // A whole request with an answer of this size, if it is let through. Whether it was.
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
  // beyond the limit costs nothing, so the buckets and the debts stay the same.
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
      ASSERT_EQ(dry.Taken(), real.Taken()) << i;
      ASSERT_EQ(dry.Owed(), real.Owed()) << i;
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
  EXPECT_EQ(dry.rule_counters.let_through.value(), real.Count(front::auth::Outcome::kDenied));
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
  EXPECT_EQ(dry.Owed(), 0u);
}

// The look at the pool saw room, but another loop has taken it.
TEST_P(DryRun, RequestThatThePoolWouldRefuseCostsNothing) {
  real.admission.verdict = {.admitted = false, .reason = "used up"};
  dry.admission.refusing = false;
  dry.admission.verdict = {.admitted = true, .counted_only = true};
  EXPECT_FALSE(real.TryGet(100 * kKiB));
  EXPECT_TRUE(dry.TryGet(100 * kKiB));
  EXPECT_EQ(real.Taken(), 0u);
  EXPECT_EQ(dry.Taken(), 0u);
  EXPECT_EQ(dry.Owed(), 0u);
}

// A debt can begin or end while a request waits for the store. The answer of the store is about
// what was asked before.
TEST(DryRunInShadow, DebtThatBeginsWhileTheStoreIsAskedComesTooLate) {
  DryRig rig(kTen, Store::kShared);
  rig.SetShadowLimit(kTen);
  const auto exchange = rig.Ask({{"x-client-id", "ann"}});
  const base::Hash128 key = rig.KeyOfAnn();
  rig.limiter.size_debts().Add(key, 5);
  rig.limiter.size_debts().Deny(key, rig.now + 5s);
  rig.Settle();
  EXPECT_THAT(rig.upstream.got, ElementsAre(StartsWith("POST /x")));
  EXPECT_EQ(rig.Taken(), 2u) << "the reserve";
  exchange->receiver->OnAbort(rig.now);
  rig.Settle();
  EXPECT_EQ(rig.Taken() + rig.OwedByAnn(), 5u) << "it is settled: the refund pays the debt first";
}

TEST(DryRunInShadow, DebtThatEndsWhileTheStoreIsAskedStillSparesTheBucket) {
  DryRig rig(kTen, Store::kShared);
  rig.SetShadowLimit(kTen);
  const base::Hash128 key = rig.KeyOfAnn();
  rig.limiter.size_debts().Add(key, 5);
  rig.limiter.size_debts().Deny(key, rig.now + 5s);
  const auto exchange = rig.Ask({{"x-client-id", "ann"}});
  EXPECT_EQ(rig.limiter.size_debts().Forget(key), 5u);
  rig.Settle();
  EXPECT_THAT(rig.upstream.got, ElementsAre(StartsWith("POST /x")));
  exchange->receiver->OnAbort(rig.now);
  rig.Settle();
  EXPECT_EQ(rig.Taken(), 0u);
  EXPECT_EQ(rig.settled.returned.value(), 0u) << "nothing was taken";
}

}  // namespace dry_run_test
}  // namespace headgate::proxy

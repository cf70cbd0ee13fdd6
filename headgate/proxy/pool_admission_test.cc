#include "headgate/proxy/pool_admission.h"

#include <gtest/gtest.h>

namespace headgate::proxy {
namespace pool_admission_test {

using std::chrono::seconds;

constexpr base::Instant kStart = base::Instant::FromNanos(1'000'000'000'000);

std::unique_ptr<share::SharePool> MakePool(share::ShareOptions options) {
  options.pool.cycle = seconds(10);
  auto pool = share::SharePool::Make(options);
  EXPECT_TRUE(pool.ok()) << pool.status();
  return *std::move(pool);
}

TEST(PoolAdmission, ClientGetsItsShareAndThenHearsWhenTheCycleEnds) {
  const auto pool = MakePool({.pool = {.capacity = 2}});
  PoolAdmission admission(*pool);
  const AdmissionVerdict first = admission.Admit("ann", kStart);
  EXPECT_TRUE(first.admitted);
  EXPECT_TRUE(first.has_limit);
  EXPECT_EQ(first.quota, 2u);
  EXPECT_EQ(first.remaining, 1u);
  EXPECT_TRUE(admission.Admit("ann", kStart + seconds(1)).admitted);
  const AdmissionVerdict refused = admission.Admit("ann", kStart + seconds(4));
  EXPECT_FALSE(refused.admitted);
  EXPECT_EQ(refused.retry_after, seconds(6));
  EXPECT_EQ(refused.reason, "the client has used its share of this cycle");
  EXPECT_TRUE(admission.Admit("ann", kStart + seconds(10)).admitted);
}

TEST(PoolAdmission, RequestWithoutAClientIsNotToldToComeBack) {
  const auto pool = MakePool({.pool = {.capacity = 2}});
  PoolAdmission admission(*pool);
  const AdmissionVerdict verdict = admission.Admit("", kStart);
  EXPECT_FALSE(verdict.admitted);
  EXPECT_EQ(verdict.retry_after, std::nullopt);
}

TEST(PoolAdmission, PassthroughAdmitsEverybody) {
  const auto pool = MakePool({.pool = {.capacity = 1}, .mode = share::Mode::kPassthrough});
  PoolAdmission admission(*pool);
  for (int i = 0; i < 3; ++i) {
    const AdmissionVerdict verdict = admission.Admit("ann", kStart);
    EXPECT_TRUE(verdict.admitted);
    EXPECT_EQ(verdict.counted_only, i > 0) << i;
  }
}

TEST(PoolAdmission, LookTakesNothing) {
  const auto pool = MakePool({.pool = {.capacity = 1}});
  PoolAdmission admission(*pool);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(admission.SeesRoom("ann", kStart));
  EXPECT_TRUE(admission.Admit("ann", kStart).admitted);
  EXPECT_FALSE(admission.SeesRoom("ann", kStart));
  EXPECT_FALSE(admission.SeesRoom("", kStart));
  EXPECT_TRUE(admission.SeesRoom("ann", kStart + seconds(10)));
  share::PoolSnapshot snapshot;
  pool->TakeSnapshot(kStart + seconds(10), snapshot);
  EXPECT_EQ(snapshot.counts.allowed, 1u);
  EXPECT_EQ(snapshot.counts.rejected, 0u);
}

TEST(PoolAdmission, RefusesUnlessInPassthrough) {
  const auto pool = MakePool({.pool = {.capacity = 1}});
  PoolAdmission admission(*pool);
  EXPECT_TRUE(admission.refuses());
  pool->SetMode(share::Mode::kPassthrough);
  EXPECT_FALSE(admission.refuses());
}

TEST(PoolAdmission, SeesRoomAlsoInFlight) {
  const auto pool =
      MakePool({.find_capacity = capacity::CapacityOptions{.limit_max = 2, .limit_first = 2}});
  PoolAdmission admission(*pool);
  EXPECT_TRUE(admission.Admit("ann", kStart).admitted);
  EXPECT_TRUE(admission.SeesRoom("bob", kStart));
  EXPECT_TRUE(admission.Admit("bob", kStart).admitted);
  EXPECT_FALSE(admission.SeesRoom("cid", kStart));
}

// With `capacity: auto` each admitted request is in flight until it has left.
TEST(PoolAdmission, RequestsInFlightAreLimited) {
  const auto pool =
      MakePool({.find_capacity = capacity::CapacityOptions{.limit_max = 2, .limit_first = 2}});
  PoolAdmission admission(*pool);
  const uint64_t number = admission.Admit("ann", kStart).number;
  EXPECT_TRUE(admission.Admit("bob", kStart).admitted);
  const AdmissionVerdict full = admission.Admit("cid", kStart);
  EXPECT_FALSE(full.admitted);
  EXPECT_EQ(full.retry_after, seconds(1));
  admission.OnLeft({.number = number, .how = Left::kAnswered, .sent_at = kStart},
                   kStart + std::chrono::milliseconds(10));
  EXPECT_TRUE(admission.Admit("cid", kStart + std::chrono::milliseconds(10)).admitted);
}

}  // namespace pool_admission_test
}  // namespace headgate::proxy

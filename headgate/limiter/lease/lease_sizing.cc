#include "headgate/limiter/lease/lease_sizing.h"

#include <algorithm>

#include "headgate/limiter/lease/ask_budget.h"
#include "headgate/limiter/lease/lease_limit.h"

namespace headgate::limiter::lease {

using algorithm::kLeaseRequestsMax;
using algorithm::Limit;
using base::BootTime;
using base::Duration;

namespace {

// A bucket that gains no more than this many requests in a pause is asked for each of them.
constexpr uint64_t kEachPause = 2;
constexpr uint64_t kRequestsLeast = 2;
constexpr uint64_t kCapacityLeast = 8;
constexpr Duration kFillLeast = std::chrono::milliseconds(100);
// A bucket that fills quickly would be full before the end of a longer pause.
constexpr int64_t kAsksWhileFilling = 16;

// The size of a tiny lease: enough for another request like the last one.
uint64_t TinyOf(const LeaseRecord& record) {
  return std::clamp<uint64_t>(record.demand.brief(), 1, kLeaseRequestsMax);
}

// Another part of `whole` for each number.
Duration PartOf(Duration whole, uint64_t number) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // Knuth, TAOCP 3, 6.4: multiplicative hashing
  return whole / 256 * static_cast<int64_t>(number * kGolden >> 56);
}

}  // namespace

bool LeaseSizing::IsExact(const Limit& limit) const {
  if (IsCalendar(limit) || FillOf(limit) > options_.ttl) return false;
  const auto pause = static_cast<uint64_t>(options_.pause_least.count());
  return limit.spec().requests <=
         static_cast<uint64_t>(limit.spec().period.count()) * kEachPause / pause;
}

bool LeaseSizing::IsLargeEnough(const Limit& limit) {
  return limit.capacity() >= kCapacityLeast && FillOf(limit) >= kFillLeast;
}

bool LeaseSizing::IsWorthLease(const LeaseRecord& record) const {
  return record.leasable && record.demand.RequestsIn(options_.ttl) >= kRequestsLeast;
}

// A second request so soon says that a third is likely. A key without one would cost two calls for
// each request: one asks, and one returns the lease.
bool LeaseSizing::IsWorthTiny(const LeaseRecord& record, BootTime now) const {
  const bool was_asked = record.asked_at.ns != 0 && now - record.asked_at < options_.tiny_ttl;
  return record.leasable && was_asked && record.reset_at.ns != 0 &&
         IsTinyShare(record, TinyOf(record));
}

LeaseWish LeaseSizing::WishOf(const LeaseRecord& record, bool tiny, BootTime now) const {
  LeaseWish wish = NoWish(record, now);
  if (IsWorthLease(record)) {
    wish.want = WantOf(record);
    wish.brief = BriefOf(record, now);
  } else if (tiny && IsWorthTiny(record, now)) {
    wish.want = TinyOf(record);
    wish.ttl = options_.tiny_ttl;
  }
  return wish;
}

uint64_t LeaseSizing::WantOf(const LeaseRecord& record) const {
  return std::clamp<uint64_t>(record.demand.CostIn(options_.ttl), 1,
                              std::min(record.limit->limit.capacity(), kLeaseRequestsMax));
}

// If it asks too often, more than the pause, so that the budget of an overloaded key stays
// overspent. Each time another part: windows end at whole numbers of pauses, and the same instance
// would be the first in each.
void LeaseSizing::SpendBudget(LeaseRecord& record, BootTime now) const {
  int64_t& even_at = record.budget_even_at;
  even_at = AskBudget::Spend(even_at, now.ns, record.pause.count());
  if (even_at <= now.ns) return;
  const Duration more = PartOf(record.pause * 3 / 2, static_cast<uint64_t>(now.ns) ^ options_.node);
  even_at =
      std::min(even_at + more.count(), now.ns + AskBudget::kOverspentMost * record.pause.count());
}

bool LeaseSizing::MayTakeAll(const LeaseRecord& record, BootTime now) const {
  const bool is_last = record.shared_rest <
                       std::max(algorithm::kFewLeft, record.limit->limit.capacity() / kLastPart);
  return is_last && IsOverloaded(record, now) && !IsWindowOver(record, now);
}

uint64_t LeaseSizing::BriefOf(const LeaseRecord& record, BootTime now) const {
  const uint64_t brief = record.demand.brief();
  return MayTakeAll(record, now) ? (brief + 3) / 4 : brief;
}

uint32_t LeaseSizing::PartsOf(const LeaseRecord& record, BootTime now) const {
  if (MayTakeAll(record, now)) return 1;
  return 2 * instances();
}

Duration LeaseSizing::PauseOf(const Limit& limit) const {
  const auto requests = static_cast<int64_t>(std::max<uint64_t>(1, limit.spec().requests));
  const Duration each = (IsWindow(limit) ? FillOf(limit) : limit.spec().period) / requests;
  return std::min(std::clamp(each, options_.pause_least, options_.pause_most),
                  FillOf(limit) / kAsksWhileFilling);
}

Duration LeaseSizing::SpreadOf(const LeaseRecord& record, BootTime now) const {
  return PartOf(SpreadMost(record), static_cast<uint64_t>(now.ns) ^ options_.node);
}

Duration LeaseSizing::SpreadMost(const LeaseRecord& record) const {
  return std::min(record.pause, options_.pause_least);
}

Duration LeaseSizing::Life(Duration ttl) const {
  return ttl - Duration((ttl.count() * options_.margin_percent + 99) / 100);
}

}  // namespace headgate::limiter::lease

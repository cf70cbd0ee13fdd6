#include "tests/simulation/instance.h"

#include <algorithm>

#include "headgate/limiter/shared/local_shares.h"

namespace headgate::simulation {

using base::BootTime;
using base::Duration;
using base::Instant;

namespace {

// The gate's limit: a request that costs two is always denied.
constexpr algorithm::LimitSpec kGate{.algorithm = algorithm::Algorithm::kTokenBucket,
                                     .requests = 1,
                                     .period = std::chrono::hours(1),
                                     .burst = 1};

// One for each key, and one more that stays empty.
constexpr uint32_t kParts = 4;

limiter::lease::LeaseBookOptions LeasesOf(const Plan& plan, uint64_t id) {
  return {.node = id,
          .keys_max = 8 * kParts,
          .ttl = plan.ttl,
          .tiny_ttl = plan.tiny_ttl,
          .tiny_share = plan.tiny_share,
          .instances = [instances = plan.instances] { return instances; }};
}

// The requests that an instance may admit by itself.
algorithm::Limit ShareOf(const algorithm::Limit& whole, const Plan& plan) {
  return *algorithm::Limit::Make(limiter::shared::PartOf(whole.spec(), {1, plan.instances}));
}

}  // namespace

Instance::Instance(const Plan& plan, uint64_t id, const std::vector<store::LimitHandle>& limits,
                   Coverage& coverage, const Ledger::Wrong& wrong)
    : plan_(plan), id_(id), memory_({.max_buckets = 64}), leases_(LeasesOf(plan, id), kParts) {
  const auto add = [&](const algorithm::Limit& limit) {
    keys_.push_back({.limit = *memory_.limits().Intern(limit),
                     .ledger = Ledger(plan_, coverage, wrong),
                     .share = Bound(ShareOf(limit, plan_)),
                     .share_at = plan_.start});
  };
  for (const store::LimitHandle& limit : limits) add(limit->limit);
  add(*algorithm::Limit::Make(kGate));
}

void Instance::OnLimit(size_t index, const algorithm::Limit& limit) {
  Key& key = keys_[index];
  const store::LimitHandle changed = *memory_.limits().Intern(limit);
  if (changed.get() == key.limit.get()) return;  // another loop was told first
  key.limit = changed;
  key.share.Widen(ShareOf(limit, plan_), key.share_at - plan_.start, key.share_at);
}

bool Instance::AdmitLocally(size_t index, uint64_t cost, Duration reset_after) {
  Key& key = keys_[index];
  if (key.limit->limit.spec().align == algorithm::Align::kFirstHit) {
    key.share.OnWindow(key.share_at + reset_after, key.share_at);
  }
  return key.share.Admit(cost, key.share_at - plan_.start, key.share_at);
}

void Instance::UndoLocally(size_t index, uint64_t cost, base::Instant taken_at) {
  Key& key = keys_[index];
  key.share.Undo(cost, {.at = taken_at - plan_.start, .wall = taken_at}, key.share_at - plan_.start,
                 key.share_at);
}

}  // namespace headgate::simulation

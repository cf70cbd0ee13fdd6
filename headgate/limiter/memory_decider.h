// Decides at once, with buckets of this process alone.
#pragma once

#include "headgate/limiter/decider.h"
#include "headgate/permit/permit_table.h"

namespace headgate::limiter {

class MemoryDecider final : public Decider {
 public:
  // Both must outlive the decider.
  MemoryDecider(store::Store& store, permit::PermitTable& permits)
      : store_(store), permits_(permits) {
    permit_source()->decider = this;
  }

  bool may_wait() const override { return false; }

  // `pending` may be null, because nothing waits. Buckets have no names here.
  bool Decide(std::span<BatchEntry> batch, Namer, Pending*, base::Instant now) override {
    if (batch.empty()) return true;
    if (batch.size() == 1) {
      store_.TakeOne(batch.front().request, batch.front().settled.decision, now);
      return true;
    }
    store_.Take(base::Strided<const store::TakeRequest>::Of(batch, &BatchEntry::request),
                {&batch.front().settled.decision, batch.size(), sizeof(BatchEntry)}, now);
    return true;
  }

  bool Increment(const CountRequest& request, PendingCounts& counts, base::Instant now) override {
    counts.Add(store_.Increment(request.key, request.change, now));
    return true;
  }

  bool AskPermits(std::span<PermitEntry> batch, Namer, Pending*, base::Instant now) override;

 private:
  void GiveBack(HeldPermit& held, const permit::Id& id, base::Instant now) override;
  void Renew(HeldPermit& held, base::Instant now) override;

  store::Store& store_;
  permit::PermitTable& permits_;
};

}  // namespace headgate::limiter

// Decisions without the shared store, while it cannot be asked, and what becomes of their
// admissions.
//
//   an admission of this instance's share ──▶ a debt ──the store answers again──▶ charged there
#pragma once

#include <cstdint>
#include <string_view>

#include "headgate/algorithm/decision.h"
#include "headgate/base/hash.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/limiter/lease/lease_books.h"
#include "headgate/limiter/shared/debts.h"
#include "headgate/limiter/shared/instants.h"
#include "headgate/limiter/shared/local_shares.h"
#include "headgate/limiter/shared/member.h"
#include "headgate/limiter/shared/outage.h"
#include "headgate/limiter/shared/settle_pace.h"
#include "headgate/store/shared_store.h"
#include "headgate/store/store.h"

namespace headgate::limiter::shared {

// Whether admissions of a local share must be taken from the shared bucket later. Not if the store
// may have counted them already.
enum class Owed : bool { kNo, kYes };
Owed OwedAfter(const absl::Status& why);
NoAnswer NoAnswerOf(const absl::Status& why);

// For one thread.
class LocalDecisions {
 public:
  // `leases` may be null: then there are none. All must outlive it.
  LocalDecisions(store::SharedStore& shared, store::Store& local, SharedRests& rests,
                 lease::LeaseBooks* leases, const Instants& instants, base::Duration timeout);

  // The rule's policy decides. `name`: of the shared bucket.
  Settled Decide(const Member& member, std::string_view name, const absl::Status& why, Owed owed);
  // This instance's share of the limit decides. It begins with the last known rest of the shared
  // bucket.
  algorithm::Decision DecideByShare(const Member& member, std::string_view name,
                                    Owed owed = Owed::kYes);

  // The store has answered about a key, which has `remaining` requests and is full after
  // `full_after`.
  void OnAnswer(const base::Hash128& key, uint64_t remaining, base::Duration full_after,
                base::Instant at);

  // Periodic work: charges debts to the shared buckets, as fast as the store's answers allow.
  void SettleDebts();
  // When SettleDebts has something to do.
  base::BootTime next_settlement() const;
  const Debts& debts() const { return debts_; }

 private:
  void UseUp(store::TakeRequest request, uint64_t left, base::Instant now, base::Instant full_at);
  store::LimitHandle ShareOf(const Member& member);
  void NoteRest(const base::Hash128& key, uint64_t remaining, base::Duration full_after,
                base::Instant at);
  void Charge(Debts::Debt debt, algorithm::Cost cost);

  store::SharedStore& shared_;
  store::Store& local_;
  SharedRests& rests_;
  lease::LeaseBooks* const leases_;
  const Instants& instants_;
  const base::Duration timeout_;
  Debts debts_;
  SettlePace settle_pace_;
  LocalShares shares_;
};

}  // namespace headgate::limiter::shared

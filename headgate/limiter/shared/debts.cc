#include "headgate/limiter/shared/debts.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/no_hits.h"
#include "headgate/base/check.h"
#include "headgate/base/wide.h"

namespace headgate::limiter::shared {

using algorithm::Algorithm;
using algorithm::BucketState;
using algorithm::Cost;
using algorithm::Limit;
using base::Instant;
using lease::KeptHistory;

namespace {

// The number of oldest debts to look at when a new one finds no place.
constexpr size_t kLooksForRoom = 8;

constexpr uint64_t kWindowMost = std::numeric_limits<uint32_t>::max();

// The rate or the windows of the share, with room for whatever is charged. A log would need its
// hits. A window of the same length that begins with the first hit admits the same number.
Limit TermsOf(const Limit& share) {
  if (share.denies_all()) return share;
  const algorithm::LimitSpec& from = share.spec();
  algorithm::LimitSpec spec{.algorithm = from.algorithm,
                            .requests = kWindowMost,
                            .period = from.period,
                            .align = from.align,
                            .zone = from.zone};
  if (algorithm::IsBucket(from.algorithm)) {
    const base::uint128 room =
        base::WideMul(static_cast<uint64_t>(base::kDurationMax.count()), share.requests()) /
        share.period();
    spec.requests = from.requests;
    spec.burst =
        static_cast<uint64_t>(std::min<base::uint128>(room, std::numeric_limits<int64_t>::max()));
  } else if (KeepsHits(from.algorithm)) {
    spec.algorithm = Algorithm::kFixedWindow;
    spec.align = algorithm::Align::kFirstHit;
  }
  return *Limit::Make(spec);
}

void Owe(Debts::Debt& debt, Cost cost, Instant now) {
  algorithm::NoHits no_hits;  // the terms never keep hits
  algorithm::Charge(debt.terms, debt.state, no_hits, cost, now);
}

}  // namespace

Cost Debts::AmountOf(const Debt& debt, Instant now) {
  algorithm::NoHits no_hits;
  BucketState state = debt.state;
  const algorithm::Decision decision = algorithm::Decide(debt.terms, state, no_hits, 0, now);
  return decision.limit - std::min(decision.limit, decision.remaining);
}

void Debts::Add(const base::Hash128& key, std::string_view name, const store::LimitHandle& limit,
                std::span<const store::LimitChange> history, const Limit& share, Cost cost,
                Instant now) {
  if (!TakesRefunds(share.algorithm()) || cost == 0) return;
  const auto found = by_key_.find(key);
  if (found == by_key_.end() && !MakeRoom(now)) return counters_.forgotten.Add(cost);
  counters_.owed.Add(cost);
  const Limit terms = TermsOf(share);
  if (found == by_key_.end()) {
    debts_.push_back({.key = key,
                      .name = std::string(name),
                      .limit = limit,
                      .terms = terms,
                      .state = {},
                      .history = KeptHistory::Of(history)});
    by_key_[key] = std::prev(debts_.end());
    counters_.keys.Add();
    return Owe(debts_.back(), cost, now);
  }
  Debt& debt = *found->second;
  if (debt.limit.get() != limit.get()) {
    debt.history = KeptHistory::Of(history);
    debt.limit = limit;
  }
  if (debt.terms.spec() != terms.spec()) {
    // The limit or the number of instances has changed.
    const Cost owed = AmountOf(debt, now);
    debt.terms = terms;
    debt.state = {};
    Owe(debt, owed, now);
  }
  Owe(debt, cost, now);
}

void Debts::Undo(const base::Hash128& key, Cost cost, Instant taken_at, Instant now) {
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return;
  algorithm::NoHits no_hits;
  Debt& debt = *found->second;
  // Only a queue refuses to undo.
  HEADGATE_CHECK(algorithm::Undo(debt.terms, debt.state, no_hits, cost, taken_at, now).ok());
}

std::optional<Debts::Debt> Debts::Take(Instant now) {
  while (!debts_.empty() && AmountOf(debts_.front(), now) == 0) Erase(debts_.begin());
  if (debts_.empty()) return std::nullopt;
  Debt debt = std::move(debts_.front());
  by_key_.erase(debt.key);
  debts_.pop_front();
  counters_.keys.Subtract();
  return debt;
}

void Debts::PutBack(Debt debt, Instant now) {
  const auto found = by_key_.find(debt.key);
  if (found != by_key_.end()) return Owe(*found->second, AmountOf(debt, now), now);
  const base::Hash128 key = debt.key;
  if (!MakeRoom(now)) return counters_.forgotten.Add(AmountOf(debt, now));
  debts_.push_back(std::move(debt));
  by_key_[key] = std::prev(debts_.end());
  counters_.keys.Add();
}

void Debts::DropPaid(size_t count, Instant now) {
  for (count = std::min(count, debts_.size()); count > 0; --count) {
    const auto debt = debts_.begin();
    if (AmountOf(*debt, now) == 0) {
      Erase(debt);
    } else {
      debts_.splice(debts_.end(), debts_, debt);
    }
  }
}

bool Debts::MakeRoom(Instant now) {
  if (debts_.size() >= keys_max_) DropPaid(kLooksForRoom, now);
  return debts_.size() < keys_max_;
}

void Debts::Erase(List::iterator debt) {
  by_key_.erase(debt->key);
  debts_.erase(debt);
  counters_.keys.Subtract();
}

}  // namespace headgate::limiter::shared

#include "headgate/algorithm/fair_share.h"

#include <algorithm>
#include <numeric>

#include "headgate/base/check.h"
#include "headgate/base/wide.h"

namespace headgate::algorithm {
namespace {

using base::uint128;

// A share during the division: whole + (rest + rest_part/parts)/unit. `even`, `want` and `rest` are
// in units of 1/unit.
struct Share {
  uint64_t even = 0;  // D
  uint64_t want = 0;
  uint64_t whole = 0;     // the share, rounded down to a whole number
  uint64_t rest = 0;      // the fraction that is cut off, rounded down
  uint128 rest_part = 0;  // the rest of the fraction, in units of 1/parts
  uint128 parts = 1;      // the same for all shares whose rest_part is not 0

  bool gives() const { return want < even; }
  uint64_t gap() const { return gives() ? even - want : want - even; }
};

struct Balance {
  uint128 surplus = 0;
  uint128 deficit = 0;
};

// Sets the share to base + factor·gap/total, where factor ≤ total: the whole part and the
// remainder.
void Settle(Share& share, uint64_t base, uint128 factor, uint128 total, uint64_t unit) {
  // factor ≤ total, and gap is a part of one of the two sums that factor and total are. So
  // factor·gap is at most surplus·gap, below 2^64·2^64 (the surplus is at most capacity·unit).
  const uint128 product = factor * share.gap();
  const uint128 moved = total == 0 ? 0 : product / total;
  share.rest_part = total == 0 ? 0 : product % total;
  share.parts = total == 0 ? 1 : total;
  const uint128 sum = base + moved;
  share.whole = static_cast<uint64_t>(sum / unit);
  share.rest = static_cast<uint64_t>(sum % unit);
}

std::vector<Share> Wants(uint64_t capacity, Ratio reservation,
                         std::span<const ClientDemand> clients, uint64_t unit) {
  std::vector<Share> shares(clients.size());
  for (size_t i = 0; i < clients.size(); ++i) {
    const uint64_t weighted = capacity * clients[i].weight;
    shares[i].even = weighted * reservation.denominator;
    const uint64_t reserved = weighted * reservation.numerator;
    shares[i].want =
        std::max(reserved, clients[i].demand ? std::min(*clients[i].demand, capacity) * unit
                                             : shares[i].even);
  }
  return shares;
}

Balance Weigh(std::span<const Share> shares) {
  Balance balance;
  for (const Share& share : shares)
    (share.gives() ? balance.surplus : balance.deficit) += share.gap();
  return balance;
}

// Lends the surplus, which is smaller than the sum of all gaps, in equal parts: each client gets
// λ·weight, but at most its gap. The clients with the smallest gap for their weight come first; the
// surplus that they do not need raises λ for the others.
void LendEqually(uint128 surplus, std::span<const ClientDemand> clients, uint64_t unit,
                 std::span<Share> shares) {
  std::vector<size_t> takers;
  uint64_t weights = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    if (shares[i].gives()) continue;
    takers.push_back(i);
    weights += clients[i].weight;
  }
  std::sort(takers.begin(), takers.end(), [&](size_t a, size_t b) {
    return uint128{shares[a].gap()} * clients[b].weight <
           uint128{shares[b].gap()} * clients[a].weight;
  });
  size_t next = 0;
  for (; next < takers.size(); ++next) {
    Share& share = shares[takers[next]];
    const uint32_t weight = clients[takers[next]].weight;
    if (uint128{share.gap()} * weights > surplus * weight) break;
    Settle(share, share.want, 0, 0, unit);
    surplus -= share.gap();
    weights -= weight;
  }
  for (; next < takers.size(); ++next) {
    Share& share = shares[takers[next]];
    const uint128 product = surplus * clients[takers[next]].weight;  // below 2^64·2^10
    const uint128 sum = share.even + product / weights;
    share.whole = static_cast<uint64_t>(sum / unit);
    share.rest = static_cast<uint64_t>(sum % unit);
    share.rest_part = product % weights;
    share.parts = weights;
  }
}

// The fraction of the share that rounding down has cut off, in units of 1/kFairCreditUnit. `parts`
// is below 2^76, so nothing overflows.
FairCredit FractionOf(const Share& share, uint64_t unit) {
  const auto scale = static_cast<uint128>(kFairCreditUnit);
  const uint128 scaled = share.rest * scale + share.rest_part * scale / share.parts;
  return static_cast<FairCredit>(scaled / unit);
}

// A credit is a sum of truncated fractions, so credits that should be equal may differ in their
// last bits. Differences below this step are ignored.
constexpr FairCredit kCreditStep = FairCredit{1} << 20;

// Gives the remaining whole units to the clients that lost most by rounding down; among equals, to
// the name that sorts first. If there are more clients than units, the losses of earlier divisions
// count too.
void GiveOutTheRest(uint64_t capacity, std::span<const ClientDemand> clients, uint64_t unit,
                    std::span<Share> shares, std::vector<FairCredit>* credits) {
  uint64_t left = capacity;
  for (const Share& share : shares) left -= share.whole;
  const bool carries = clients.size() > capacity;
  if (credits != nullptr) credits->assign(clients.size(), 0);
  if (left == 0 && !carries) return;
  std::vector<FairCredit> lost(carries ? clients.size() : 0);
  for (size_t i = 0; i < lost.size(); ++i)
    lost[i] = FractionOf(shares[i], unit) + clients[i].credit;
  const auto rounded = [&](size_t i) { return (lost[i] + kCreditStep / 2) / kCreditStep; };
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (carries) {
      if (rounded(a) != rounded(b)) return rounded(a) > rounded(b);
    } else {
      if (shares[a].rest != shares[b].rest) return shares[a].rest > shares[b].rest;
      if (shares[a].rest_part != shares[b].rest_part)
        return shares[a].rest_part > shares[b].rest_part;
    }
    return clients[a].name < clients[b].name;
  });
  HEADGATE_CHECK(left < shares.size());
  for (size_t i = 0; i < left; ++i) ++shares[order[i]].whole;
  if (credits == nullptr || !carries) return;
  for (size_t i = 0; i < left; ++i) lost[order[i]] -= kFairCreditUnit;
  for (size_t i = 0; i < lost.size(); ++i)
    (*credits)[i] = std::clamp(lost[i], -kFairCreditUnit, kFairCreditUnit);
}

}  // namespace

std::vector<uint64_t> Divide(uint64_t capacity, Ratio reservation,
                             std::span<const ClientDemand> clients, Lending lending,
                             std::vector<FairCredit>* credits) {
  if (credits != nullptr) credits->clear();
  HEADGATE_CHECK(capacity <= kFairCapacityMax && clients.size() <= kFairClientsMax);
  HEADGATE_CHECK(reservation.denominator >= 1 &&
                 reservation.denominator <= kFairRatioDenominatorMax);
  HEADGATE_CHECK(reservation.numerator <= reservation.denominator);
  if (clients.empty()) return {};
  uint64_t weights = 0;
  for (const ClientDemand& client : clients) {
    HEADGATE_CHECK(client.weight >= 1 && client.weight <= kFairWeightMax);
    HEADGATE_CHECK(client.demand.value_or(0) <= kFairCapacityMax);
    HEADGATE_CHECK(client.credit >= -kFairCreditUnit && client.credit <= kFairCreditUnit);
    weights += client.weight;
  }
  const uint64_t unit = weights * reservation.denominator;
  std::vector<Share> shares = Wants(capacity, reservation, clients, unit);
  const auto [surplus, deficit] = Weigh(shares);

  // One of the two sums is used up, so all fractions of 1/unit have the same denominator and can be
  // compared.
  const bool enough = surplus >= deficit;
  for (Share& share : shares) {
    if (share.gives()) {
      Settle(share, share.want, enough ? surplus - deficit : 0, surplus, unit);
    } else if (enough) {
      Settle(share, share.want, 0, deficit, unit);
    } else {
      Settle(share, share.even, surplus, deficit, unit);
    }
  }
  if (!enough && lending == Lending::kMaxMin) LendEqually(surplus, clients, unit, shares);
  GiveOutTheRest(capacity, clients, unit, shares, credits);

  std::vector<uint64_t> capacities;
  capacities.reserve(shares.size());
  for (const Share& share : shares) capacities.push_back(share.whole);
  return capacities;
}

}  // namespace headgate::algorithm

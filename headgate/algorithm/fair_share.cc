#include "headgate/algorithm/fair_share.h"

#include <algorithm>
#include <numeric>

#include "headgate/base/check.h"
#include "headgate/base/wide.h"

namespace headgate::algorithm {
namespace {

using base::uint128;

// A share during the division. All fields except `whole` and `fraction` are in units of 1/unit.
struct Share {
  uint64_t even = 0;  // D
  uint64_t want = 0;
  uint64_t whole = 0;     // the share, rounded down
  uint64_t rest = 0;      // lost by rounding down, in units of 1/unit …
  uint128 rest_part = 0;  // … plus a fraction of that unit; the denominator is `parts`

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
        std::max(reserved, clients[i].demand ? *clients[i].demand * unit : shares[i].even);
  }
  return shares;
}

Balance Weigh(std::span<const Share> shares) {
  Balance balance;
  for (const Share& share : shares)
    (share.gives() ? balance.surplus : balance.deficit) += share.gap();
  return balance;
}

// Gives the remaining whole units to the clients that lost most by rounding down; among equals, to
// the name that sorts first.
void GiveOutTheRest(uint64_t capacity, std::span<const ClientDemand> clients,
                    std::span<Share> shares) {
  uint64_t left = capacity;
  for (const Share& share : shares) left -= share.whole;
  if (left == 0) return;
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (shares[a].rest != shares[b].rest) return shares[a].rest > shares[b].rest;
    if (shares[a].rest_part != shares[b].rest_part)
      return shares[a].rest_part > shares[b].rest_part;
    return clients[a].name < clients[b].name;
  });
  HEADGATE_CHECK(left < shares.size());
  for (size_t i = 0; i < left; ++i) ++shares[order[i]].whole;
}

}  // namespace

std::vector<uint64_t> Divide(uint64_t capacity, Ratio reservation,
                             std::span<const ClientDemand> clients) {
  HEADGATE_CHECK(capacity <= kFairCapacityMax && clients.size() <= kFairClientsMax);
  HEADGATE_CHECK(reservation.denominator >= 1 &&
                 reservation.denominator <= kFairRatioDenominatorMax);
  HEADGATE_CHECK(reservation.numerator <= reservation.denominator);
  if (clients.empty()) return {};
  uint64_t weights = 0;
  for (const ClientDemand& client : clients) {
    HEADGATE_CHECK(client.weight >= 1 && client.weight <= kFairWeightMax);
    HEADGATE_CHECK(client.demand.value_or(0) <= kFairCapacityMax);
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
  GiveOutTheRest(capacity, clients, shares);

  std::vector<uint64_t> capacities;
  capacities.reserve(shares.size());
  for (const Share& share : shares) capacities.push_back(share.whole);
  return capacities;
}

}  // namespace headgate::algorithm

// Compares fair share with the formulas of its definition, in exact fractions.
#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "headgate/algorithm/fair_share.h"
#include "tests/model/rational.h"

namespace headgate::model {
namespace fair_share_test {

using algorithm::ClientDemand;
using algorithm::Lending;
using algorithm::Ratio;

// The loans that end at λ·weight, or at the amount that a client lacks: λ is raised until all is
// lent.
std::vector<Rational> EqualLoans(Rational amount, const std::vector<Rational>& lacks,
                                 const std::vector<ClientDemand>& clients) {
  std::vector<Rational> loans(lacks.size(), Rational(0));
  while (amount > 0) {
    Int weights = 0;
    for (size_t i = 0; i < lacks.size(); ++i)
      if (lacks[i] > loans[i]) weights += clients[i].weight;
    if (weights == 0) break;
    // The next step of λ fills a client, or lends all that is left.
    Rational step = amount / Rational(weights);
    for (size_t i = 0; i < lacks.size(); ++i)
      if (lacks[i] > loans[i])
        step = Min(step, (lacks[i] - loans[i]) / Rational(Int{clients[i].weight}));
    for (size_t i = 0; i < lacks.size(); ++i) {
      if (!(lacks[i] > loans[i])) continue;
      const Rational more = step * Rational(Int{clients[i].weight});
      loans[i] = loans[i] + more;
      amount = amount - more;
    }
  }
  return loans;
}

std::vector<uint64_t> DivideByDefinition(uint64_t capacity, Ratio reservation,
                                         const std::vector<ClientDemand>& clients,
                                         Lending lending) {
  Int weights = 0;
  for (const ClientDemand& client : clients) weights += client.weight;
  std::vector<Rational> even, want, gap, share;
  Rational deficit = 0, surplus = 0;
  for (const ClientDemand& client : clients) {
    const Rational d(Int{capacity} * client.weight, weights);
    const Rational demand = client.demand ? Rational(std::min(*client.demand, capacity)) : d;
    even.push_back(d);
    want.push_back(Max(demand, d * Rational(reservation.numerator, reservation.denominator)));
    gap.push_back(d - want.back());
    if (gap.back() < 0) deficit = deficit - gap.back();
    if (gap.back() > 0) surplus = surplus + gap.back();
  }
  const Rational left = Max(0, surplus - deficit);
  std::vector<Rational> lacks;
  for (const Rational& g : gap) lacks.push_back(Max(0, Rational(0) - g));
  const std::vector<Rational> loans = EqualLoans(Min(surplus, deficit), lacks, clients);
  for (size_t i = 0; i < clients.size(); ++i) {
    if (gap[i] <= 0 && lending == Lending::kMaxMin) {
      share.push_back(even[i] + loans[i]);
    } else if (gap[i] <= 0) {
      const Rational lack = lacks[i];
      share.push_back(even[i] + (deficit == 0 ? Rational(0) : Min(lack, lack / deficit * surplus)));
    } else {
      share.push_back(want[i] + gap[i] / surplus * left);
    }
  }

  std::vector<uint64_t> whole;
  for (const Rational& s : share) whole.push_back(static_cast<uint64_t>(s.Floor()));
  const uint64_t given = std::accumulate(whole.begin(), whole.end(), uint64_t{0});
  std::vector<size_t> order(clients.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const Rational rest_a = share[a] - Int{whole[a]}, rest_b = share[b] - Int{whole[b]};
    return rest_a == rest_b ? clients[a].name < clients[b].name : rest_a > rest_b;
  });
  for (uint64_t i = 0; i < capacity - given; ++i) ++whole[order[i]];
  return whole;
}

TEST(FairShareModel, SharesFollowTheDefinition) {
  static constexpr std::string_view kNames[] = {"ada", "bob", "cy", "dee", "eve", "fay", "gus"};
  for (uint64_t seed = 1; seed <= 100'000; ++seed) {
    std::mt19937_64 random(seed);
    const uint64_t capacity = random() % (random() % 2 ? 50 : 3000);
    const auto denominator = static_cast<uint32_t>(1 + random() % 12);
    const Ratio reservation{static_cast<uint32_t>(random() % (denominator + 1)), denominator};
    std::vector<ClientDemand> clients(1 + random() % std::size(kNames));
    for (size_t i = 0; i < clients.size(); ++i) {
      clients[i] = {.name = kNames[i],
                    .weight = static_cast<uint32_t>(1 + random() % (random() % 2 ? 1 : 6))};
      if (random() % 10 != 0)
        clients[i].demand = random() % (1 + 2 * capacity / (1 + random() % 8));
    }
    // More clients than units carry what rounding has kept: the first time nothing.
    const Lending lending = random() % 2 ? Lending::kMaxMin : Lending::kProportional;
    ASSERT_EQ(Divide(capacity, reservation, clients, lending),
              DivideByDefinition(capacity, reservation, clients, lending))
        << "seed " << seed;
  }
}

}  // namespace fair_share_test
}  // namespace headgate::model

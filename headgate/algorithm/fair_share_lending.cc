// The amount that a client may take at a moment of the cycle. One rule:
//
//   its own   up to its even share, while the pool has room
//   more      if the rest of the pool is enough for what the pool keeps for the others
//
// The pool keeps the likely demand of each client for the rest of the cycle: its demand in this
// part of earlier cycles, plus three times the root of that, because the number of requests at
// random times deviates by its root. This amount falls to 0 until the cycle ends. So capacity that
// nobody uses is lent to any client that asks. Two kinds of demand are kept apart:
//
//   at the beginning   in the first half of the cycle: kept up to the client's capacity as divided,
//                      so clients that all ask then get exactly that
//   late               in the second half: kept up to the client's part: its even share, or its
//                      claim. So a client that comes back finds its own, and a storm cannot take
//                      at the beginning what others will ask for later
//
// The sum of the late demands, at random times, deviates by twice its root. The clients share that
// margin. A client that was silent for a cycle may have gone, so its margin falls faster.
//
// A client that waits when it is told to does not show how much it wants. If it comes back when its
// wait is over, it counts as if it wanted the whole pool, until it waits for the next cycle.
//
// A claim is a client's capacity in this cycle if all clients got the same, but none got more than
// it is likely to want. Claims are computed again in each step. So capacity that becomes free late
// in the cycle is lent in equal parts, whether a client asks now and then or all the time.
//
// The pace is one rule for the pool and for each client: the rest of the capacity, or of the
// client's part, is spread over the rest of the cycle. An eighth may be used at once (or the amount
// for one second, at least 64), and then at most twice the even rate. A client passes if its own
// pace or that of the pool allows it. So a storm is slowed down, and does not slow down clients
// that have not used their part.
//
// Example: four clients share 40 in 10 s. Three of them usually ask for 4 each, at even times, and
// the fourth for more than it can get. At the beginning the pool keeps the 12 that the three are
// likely to ask for and a margin of 2·√12 + 2, which is 21 in all. So the fourth has 19 at once. In
// the middle of the cycle it keeps 6 + 2·√6 + 2, which is 13.
#include <algorithm>
#include <bit>

#include "headgate/algorithm/fair_share_pool.h"
#include "headgate/base/wide.h"

namespace headgate::algorithm {
namespace {

using base::Duration;
using base::Instant;

// A demand after this many steps is late.
constexpr uint32_t kStepsOfBeginning = FairSharePool::kSteps / 2;
constexpr uint32_t kStepsOfLatePart = 4;
// A client that waits a tenth of the cycle when it is told to asks at least once in the last steps.
constexpr uint32_t kStepsOfLastLook = FairSharePool::kSteps / 8;
constexpr uint64_t kUnit = FairSharePool::kSteps;  // amounts with fractions are in units of 1/kUnit
constexpr uint64_t kAll = kFairCapacityMax * kUnit;
constexpr uint64_t kOpen = kAll + 1;  // a claim that is not computed yet
constexpr int kClaimPasses = 16;      // more passes would change little
constexpr uint64_t kPaceLeast = 64;
constexpr uint64_t kPacePart = 8;

// The square root of a number below 2^62, rounded down. Amounts are below 2^52.
uint64_t Root(uint64_t square) {
  uint64_t root = 0;
  for (uint64_t bit = uint64_t{1} << ((std::bit_width(square) + 1) / 2); bit > 0; bit >>= 1) {
    const uint64_t next = root | bit;
    if (next * next <= square) root = next;
  }
  return root;
}

// An amount and three times its root, in units of 1/kUnit.
uint64_t WithRoots(uint64_t amount) { return amount + 3 * Root(amount * kUnit); }

// Small numbers deviate by up to two more than three times their root.
uint64_t SmallMargin(uint64_t amount) { return std::min(2 * kUnit, 3 * amount); }

// The deviation of a late demand.
uint64_t MarginOf(uint64_t amount) { return 2 * Root(amount * kUnit) + SmallMargin(amount); }

uint64_t Minus(uint64_t a, uint64_t b) { return a - std::min(a, b); }

// The part of `rest` for the next steps. It is spread over the steps that are left, at most at
// twice the rate of `whole`; the last steps leave nothing more to the next cycle.
uint64_t Spread(uint64_t rest, uint64_t whole, uint64_t steps, uint64_t left) {
  left = std::max<uint64_t>(1, left);
  const uint64_t times = steps < left ? 2 : 1;
  return std::min((rest * steps + left - 1) / left, (times * whole * steps + kUnit - 1) / kUnit);
}

}  // namespace

uint64_t FairSharePool::OwnOf(const Client& client) const {
  return std::max(client.even, std::min(client.capacity, client.even_up));
}

uint64_t FairSharePool::RoomOf(const Client& client) const {
  const uint64_t room = Room();
  const uint64_t own = std::min(room, Minus(OwnOf(client), client.used));
  const uint64_t amount = std::max(own, Minus(room * kUnit, kept_ - client.kept) / kUnit);
  if (!is_paced_) return amount;
  const int64_t paced = std::max(pace_, client.pace / static_cast<int64_t>(kUnit));
  return std::min(amount, static_cast<uint64_t>(std::max<int64_t>(paced, 0)));
}

uint64_t FairSharePool::PartOf(const Client& client) const {
  return std::max(OwnOf(client) * kUnit, client.claim);
}

// The amount for one second, or an eighth; at least kPaceLeast.
uint64_t FairSharePool::AtOnce(uint64_t amount) const {
  const auto second = static_cast<uint64_t>(Duration(std::chrono::seconds(1)).count());
  const auto cycle = static_cast<uint64_t>(options_.cycle.count());
  const auto in_a_second =
      static_cast<uint64_t>(base::WideMul(amount, std::min(second, cycle)) / cycle);
  return std::max({kPaceLeast, amount / kPacePart, in_a_second});
}

// The part of the client's usual late demand that is still to come, in units of 1/kUnit.
uint64_t FairSharePool::LateRest(const Client& client) const {
  return client.late * (kSteps - step_) / (kSteps - kStepsOfBeginning);
}

// Clients whose requests come at random times share one margin, because their sum deviates by its
// root. A client that wanted more than its part does not share it.
bool FairSharePool::SharesMargin(const Client& client) const {
  return !client.obeys && client.demand_last * kUnit < PartOf(client);
}

void FairSharePool::FindLateSum() {
  late_sum_ = 0;
  for (const Client& client : clients_) {
    if (SharesMargin(client)) late_sum_ += LateRest(client);
  }
}

// In units of 1/kUnit.
uint64_t FairSharePool::LateFor(const Client& client) const {
  if (client.obeys) return WithRoots(PartOf(client) * (kSteps - step_) / kSteps);
  const uint64_t rest = LateRest(client);
  uint64_t margin = MarginOf(rest);
  if (SharesMargin(client) && late_sum_ > 0)
    margin = static_cast<uint64_t>(base::WideMul(MarginOf(late_sum_), rest) / late_sum_);
  // A client that has been silent for a cycle may not come back.
  if (client.demand == 0 && client.idle > Duration(0)) margin = margin * (kSteps - step_) / kSteps;
  // The client may ask at the same time in each cycle.
  uint64_t same = 0;
  for (uint32_t part = 0; part < kLateParts; ++part) {
    if (step_ < kStepsOfBeginning + (part + 1) * kStepsOfLatePart) same += client.late_at[part];
  }
  return std::max(rest + margin, same);
}

// Whether the client waits for the next cycle.
bool FairSharePool::HasLeft(const Client& client) const {
  return client.obeys && client.told != Told::kNothing && client.told_until >= due_;
}

// In units of 1/kUnit. A client that waits when it is told to wants everything until it waits for
// the next cycle.
uint64_t FairSharePool::WantOf(const Client& client) const {
  const uint64_t used = client.used * kUnit;
  if (client.obeys) return HasLeft(client) ? used : kAll;
  const uint64_t capacity_left = Minus(client.capacity, client.used);
  const uint64_t likely =
      std::max({std::min(client.demand_last, options_.capacity) * (kSteps - step_),
                client.late_likely, std::min(client.early, capacity_left) * kUnit});
  return std::min(std::max(client.demand * kUnit, used + likely), kAll);
}

// Divides the amount that all clients have used and may still use into equal parts. A client that
// wants less than its part leaves more to the others, so each pass finds further clients that get
// all they want.
void FairSharePool::FindClaims() {
  uint64_t rest = Room() * kUnit;
  uint64_t weights = 0;
  for (Client& client : clients_) {
    Expect(client);
    client.want = WantOf(client);
    rest += client.used * kUnit;
    weights += client.weight;
  }
  for (Client& client : clients_) client.claim = kOpen;
  bool found = true;
  for (int pass = 0; pass < kClaimPasses && found && weights > 0; ++pass) {
    found = false;
    const uint64_t level = rest / weights;
    for (Client& client : clients_) {
      if (client.claim != kOpen || client.want > level * client.weight) continue;
      client.claim = client.want;
      rest -= std::min(rest, client.want);
      weights -= client.weight;
      found = true;
    }
  }
  for (Client& client : clients_) {
    if (client.claim != kOpen) continue;
    client.claim = std::min({rest * client.weight / weights, client.want, kAll});
  }
}

// Roots take time, so they are computed once in each step.
void FairSharePool::Expect(Client& client) {
  const uint64_t left = kSteps - step_;  // at least 1
  client.pace_max = static_cast<int64_t>(AtOnce(PartOf(client) / kUnit) * kUnit);
  // Rounded down, so that the pool keeps nothing at the end of the cycle.
  client.early = std::min(client.capacity, client.even * options_.reservation.numerator /
                                               options_.reservation.denominator);
  if (!client.asked_once) {
    uint64_t demand = std::min(client.demand_last, client.capacity);
    if (client.counts_at_least_even) demand = std::max(demand, OwnOf(client));
    client.early = std::max(client.early, WithRoots(demand * left) / kUnit);
  }
  client.late_likely = client.late > 0 || client.obeys ? LateFor(client) : 0;
}

// In units of 1/kUnit.
uint64_t FairSharePool::KeptFor(const Client& client) const {
  if (HasLeft(client)) return 0;
  const uint64_t early = std::min(client.early, Minus(client.capacity, client.used)) * kUnit;
  if (client.late == 0 && !client.obeys) return early;
  const uint64_t part = Minus(PartOf(client), client.used * kUnit);
  return std::min(part, std::max(early, client.late_likely));
}

void FairSharePool::Keep(Client& client) {
  kept_ -= client.kept;
  client.kept = KeptFor(client);
  kept_ += client.kept;
}

void FairSharePool::KeepAll() {
  FindPace();
  kept_ = 0;
  for (Client& client : clients_) {
    Expect(client);
    client.kept = KeptFor(client);
    kept_ += client.kept;
  }
}

void FairSharePool::ExpectAll() {
  FindLateSum();
  FindClaims();
  KeepAll();
}

void FairSharePool::Use(Client& client, uint64_t amount) {
  client.used += amount;
  used_ += amount;
  if (is_paced_) {
    const auto taken = static_cast<int64_t>(std::min<uint64_t>(amount, kFairCapacityMax));
    pace_ = std::max(pace_ - taken, -pace_max_);
    client.pace = std::max(client.pace - taken * static_cast<int64_t>(kUnit), -client.pace_max);
  }
  Keep(client);
}

// ---- Time

void FairSharePool::FollowTime(Instant now) {
  if (now < step_end_) return;
  const Instant begin = due_ - options_.cycle;
  const auto cycle = static_cast<uint64_t>(options_.cycle.count());
  const auto passed = static_cast<uint64_t>((now - begin).count());
  const auto step = static_cast<uint32_t>(
      std::min<base::uint128>(kSteps - 1, base::WideMul(passed, kSteps) / cycle));
  step_end_ =
      begin + Duration(static_cast<int64_t>(base::CeilDiv(base::WideMul(cycle, step + 1), kSteps)));
  if (step == step_) return;
  Refill(step - std::min(step, step_));
  step_ = step;
  needs_division_ ? Redivide() : ExpectAll();
}

// A pool whose whole capacity may be used at once has no pace.
void FairSharePool::FindPace() {
  const uint64_t most = AtOnce(options_.capacity);
  pace_max_ = static_cast<int64_t>(most);
  is_paced_ = options_.is_paced && options_.capacity > most;
}

// A client's part is spread over the cycle except its last kStepsOfLastLook steps. When these
// begin, a client that waits as it is told asks for the last time.
void FairSharePool::Refill(uint32_t steps) {
  if (!is_paced_) {
    pace_ = pace_max_;
    return;
  }
  const uint64_t left = kSteps - step_;
  for (Client& client : clients_) {
    const uint64_t part = PartOf(client);
    const uint64_t earned =
        Spread(Minus(part, client.used * kUnit), part, steps, Minus(left, kStepsOfLastLook));
    client.pace = std::min(client.pace + static_cast<int64_t>(earned), client.pace_max);
  }
  const uint64_t earned = Spread(Room(), options_.capacity, steps, left);
  pace_ = std::min(pace_ + static_cast<int64_t>(earned), pace_max_);
}

Duration FairSharePool::wait() const { return std::max(options_.cycle / 10, Duration(1)); }

Duration FairSharePool::WaitOf(Cost cost, Instant now) const {
  return cost > Room() ? Left(now) : std::min(Left(now), wait());
}

// ---- Knowledge of a client

void FairSharePool::CountLate(Client& client, Cost cost) {
  if (step_ >= kStepsOfBeginning) {
    uint64_t& late = client.late_now[(step_ - kStepsOfBeginning) / kStepsOfLatePart];
    late = FairSum(late, cost);
  }
  // It is there.
  if (cost > 0 && (client.asked_once || client.demand <= cost)) {
    client.asked_once = false;
    Expect(client);
    Keep(client);
  }
}

// Each cycle halves the weight of the earlier times of requests. A late demand counts up to the
// client's part, or up to half of the part if its time in the cycle does not matter (LearnLate).
void FairSharePool::EndLate(Client& client) {
  uint64_t left = PartOf(client);
  for (uint32_t part = 0; part < kLateParts; ++part) {
    const uint64_t late = std::min(client.late_now[part] * kUnit, left);
    left -= late;
    client.late_at[part] = (client.late_at[part] + late) / 2;
  }
  if (client.demand > 0) LearnLate(client);
  client.late_now = {};
  client.obeys = client.came_back && !client.insisted;
  client.came_back = client.insisted = false;
}

// Call it only for a cycle with requests: a cycle without a request says nothing about the next
// one.
void FairSharePool::LearnLate(Client& client) {
  const uint64_t part = PartOf(client);
  uint64_t late = 0;
  for (const uint64_t now : client.late_now) late = std::min(late + now * kUnit, part / 2);
  if (client.cycles == 0) client.asked_once = client.demand <= 1;
  if (client.asked_once) late = 0;
  client.cycles += client.cycles < kLateCycles;
  client.late = (client.late * (client.cycles - 1) + late) / client.cycles;
}

// A client learns its wait in whole seconds, so it may come back up to a second late.
void FairSharePool::HearFrom(Client& client, Instant now) {
  client.asked = now;
  if (client.told == Told::kNothing) return;
  const auto keep = [&] {
    client.told = Told::kNothing;
    Keep(client);
  };
  if (now < client.told_until) {
    // A client that was told that nothing remains (kNoneLeft) may ignore that; only asking again
    // after a denial is insisting.
    if (client.told == Told::kDenied) client.insisted = true;
    keep();
    return;
  }
  const Duration wait = client.told_until - client.told_at;
  const Duration late = now - client.told_until;
  // A client that asks at the beginning of each cycle would come back in the next cycle without
  // being told, so coming back then proves nothing. After kNoneLeft, coming back counts only if the
  // answer was given in this cycle, or if the client came soon after its wait.
  const bool is_for_wait =
      client.told == Told::kDenied || client.told_at >= due_ - options_.cycle || late <= wait / 8;
  if (is_for_wait && late <= wait + std::chrono::seconds(1)) client.came_back = true;
  keep();
}

// A client that has insisted does not obey in this cycle, whatever it does next.
void FairSharePool::Tell(Client& client, const Decision& decision, Instant now) {
  if (client.told == Told::kDenied || client.insisted || decision.never_fits()) return;
  if (decision.allowed && decision.remaining > 0) return;
  client.told = decision.allowed ? Told::kNoneLeft : Told::kDenied;
  client.told_at = now;
  client.told_until = now + (decision.allowed ? decision.reset_after : decision.retry_after);
  Keep(client);
}

}  // namespace headgate::algorithm

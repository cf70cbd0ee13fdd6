// The promises of the contract of leases, load by load, and the table of the measured results.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "headgate/algorithm/lease.h"
#include "headgate/limiter/lease/ask_budget.h"
#include "tests/simulation/contract.h"

namespace headgate::simulation {

using namespace std::chrono_literals;
using base::Duration;

namespace {

bool IsSlow(const Load& load) {
  return load.spec.requests * static_cast<uint64_t>(1s / 1ms) <
         20 * static_cast<uint64_t>(load.spec.period / 1ms);
}

// The calls of the instance that called most, without one for each of the last requests of a full
// bucket.
double CallsASecond(const Load& load, const Measured& m) {
  const auto fills = static_cast<uint64_t>(m.lasted / load.spec.period) + 1;
  const uint64_t last = fills * std::min<uint64_t>(algorithm::kFewLeft, load.spec.requests);
  // For the leases that empty a full bucket.
  const uint64_t at_once = 4 * limiter::lease::AskBudget::kAtOnce;
  return static_cast<double>(m.calls_most - std::min(m.calls_most, last + at_once)) /
         (static_cast<double>(m.lasted.count()) / 1e9);
}

}  // namespace

std::string Broken(const Load& load, const Measured& m) {
  if (!m.failure.empty()) return m.failure;
  const uint64_t more = m.refused - std::min(m.refused, m.single_refused);
  const uint64_t less = m.single_admitted - std::min(m.single_admitted, m.admitted);
  switch (load.kind) {
    case Load::Kind::kAlone:
      if (m.refused_early > 0) return fmt::format("{} refused early", m.refused_early);
      if (m.remaining_wrong > 0)
        return fmt::format("{} times remaining did not count down by one", m.remaining_wrong);
      return "";
    case Load::Kind::kMixed:
      return m.refused_early > 0 ? fmt::format("{} refused early", m.refused_early) : "";
    case Load::Kind::kWander:
      return m.lacked_most > 0 ? fmt::format("{} of the limit lacked", m.lacked_most) : "";
    case Load::Kind::kObedient:
      return m.refused_early > 0 ? fmt::format("{} waits in vain", m.refused_early) : "";
    case Load::Kind::kPlenty: {
      if (m.refused > 0) return fmt::format("{} refused", m.refused);
      const uint64_t percent = load.per_1000s >= 30'000 ? 97 : 90;
      return m.at_once * 100 < m.asked * percent
                 ? fmt::format("only {} of {} decided at once", m.at_once, m.asked)
                 : "";
    }
    case Load::Kind::kLargeCost:
      return more > 0 ? fmt::format("{} refused that one bucket lets through", more) : "";
    case Load::Kind::kKilled:
    case Load::Kind::kPaused:
    case Load::Kind::kStandstill:
      return m.lost > m.lost_most ? fmt::format("{} lost, {} at most", m.lost, m.lost_most) : "";
    case Load::Kind::kPaced:
      if (load.percent <= 90 && more > 0) return fmt::format("{} of {} refused", more, m.asked);
      break;
    case Load::Kind::kPoisson:
      // One of 1000, and three more by chance in a short run.
      if (load.percent <= 80 && more * 1000 > m.asked + 3000)
        return fmt::format("{} of {} refused", more, m.asked);
      break;
  }
  const double calls = CallsASecond(load, m);
  if (load.percent > 100 && calls > (IsSlow(load) ? 20 : 50) * (load.loops > 1 ? 4.0 / 3 : 1.0))
    return fmt::format("an instance calls the store {:.1f} times a second", calls);
  if (load.percent > 100 && less * 100 > m.single_admitted)
    return fmt::format("{} admitted, {} by one bucket", m.admitted, m.single_admitted);
  return "";
}

std::vector<Row> RowsOf(std::span<const std::pair<Load, Measured>> runs) {
  using Kind = Load::Kind;
  const auto more = [](const Measured& m) {
    return static_cast<double>(m.refused - std::min(m.refused, m.single_refused));
  };
  struct Sums {
    uint64_t runs = 0;
    double elsewhere = 0, calls = 0;
    double asked = 0, more = 0, at_once = 0, single = 0, lost = 0, early = 0, lacked = 0;
    double worst = 1;  // the least part of the requests that one bucket admits
  };
  const auto sum = [&](const std::function<bool(const Load&)>& takes) {
    Sums sums;
    for (const auto& [load, m] : runs) {
      if (!takes(load)) continue;
      ++sums.runs;
      sums.asked += static_cast<double>(m.asked);
      sums.more += more(m);
      sums.at_once += static_cast<double>(m.at_once);
      sums.early += static_cast<double>(m.refused_early + m.remaining_wrong);
      sums.calls = std::max(sums.calls, CallsASecond(load, m));
      sums.elsewhere += static_cast<double>(m.spent_elsewhere);
      sums.lacked = std::max(sums.lacked, static_cast<double>(m.lacked_most));
      sums.lost = std::max(sums.lost, static_cast<double>(m.lost));
      if (m.single_admitted > 0)
        sums.worst = std::min(
            sums.worst, static_cast<double>(m.admitted) / static_cast<double>(m.single_admitted));
    }
    return sums;
  };
  const auto of = [&](Kind kind) {
    return sum([&](const Load& load) { return load.kind == kind; });
  };
  std::vector<Row> rows;
  const auto add = [&](std::string load, std::string promise, const Sums& sums,
                       std::string measured) {
    rows.push_back({std::move(load), std::move(promise), sums.runs, std::move(measured)});
  };
  const Sums alone = of(Kind::kAlone);
  add("one instance of several is asked, bursts of 1.2 times the limit",
      "none refused before the limit is reached; `remaining` of a fixed window as of one bucket",
      alone, fmt::format("{:.0f} of {:.0f}", alone.early, alone.asked));
  const Sums mixed = of(Kind::kMixed);
  add("the same with costs of 1 to a fifth of the limit",
      "none refused that one bucket lets through", mixed,
      fmt::format("{:.0f} of {:.0f}", mixed.early, mixed.asked));
  const Sums wander = of(Kind::kWander);
  add("the same bursts, each request to the next instance",
      "none refused before the limit is reached", wander,
      fmt::format("{:.0f} of {:.0f}, at most {:.0f} in a burst", wander.early, wander.asked,
                  wander.lacked));
  const Sums paced = sum([](const Load& l) { return l.kind == Kind::kPaced && l.percent <= 90; });
  add("2 or 3 instances, fixed gaps, 30 to 90 % of the limit",
      "none refused that one bucket lets through", paced,
      fmt::format("{:.0f} of {:.0f}", paced.more, paced.asked));
  const Sums poisson = of(Kind::kPoisson);
  add("2 or 3 instances, at random, 30 to 80 % of the limit",
      "at most 0.1 % refused that one bucket lets through", poisson,
      fmt::format("{:.3f} %", 100 * poisson.more / std::max(1.0, poisson.asked)));
  const Sums over = sum([](const Load& l) { return l.kind == Kind::kPaced && l.percent > 100; });
  add("overload of 1.25 to 10 times the limit, at least 16 requests for each instance",
      "99 % of what one bucket lets through", over,
      fmt::format("at least {:.1f} %", 100 * over.worst));
  const Sums slow =
      sum([](const Load& l) { return l.kind == Kind::kPaced && l.percent > 100 && IsSlow(l); });
  add("the same of a limit below 20 a second",
      "an instance calls the store 20 times a second, and once for each of the last 64 requests",
      slow, fmt::format("at most {:.1f}", slow.calls));
  const Sums quick =
      sum([](const Load& l) { return l.kind == Kind::kPaced && l.percent > 100 && !IsSlow(l); });
  add("the same of a limit of 20 a second and more",
      "an instance calls the store 50 times a second, and once for each of the last 64 requests",
      quick, fmt::format("at most {:.1f}", quick.calls));
  const Sums obedient = of(Kind::kObedient);
  add("a client waits as long as it is told, and asks any instance",
      "never in vain, except once if another instance has spent what it held", obedient,
      fmt::format("{:.0f} of {:.0f}; once {:.0f}", obedient.early, obedient.asked,
                  obedient.elsewhere));
  const Sums large = of(Kind::kLargeCost);
  add("large costs beside small ones, below the rate", "none refused that one bucket lets through",
      large, fmt::format("{:.0f} of {:.0f}", large.more, large.asked));
  const Sums few =
      sum([](const Load& l) { return l.kind == Kind::kPlenty && l.per_1000s < 30'000; });
  add("a key with 5 requests a second over 3 instances, far below its limit",
      "90 % decided without waiting", few,
      fmt::format("{:.1f} %", 100 * few.at_once / std::max(1.0, few.asked)));
  const Sums hot =
      sum([](const Load& l) { return l.kind == Kind::kPlenty && l.per_1000s >= 30'000; });
  add("a key with 30 to 1,500 requests a second, far below its limit",
      "97 % decided without waiting", hot,
      fmt::format("{:.1f} %", 100 * hot.at_once / std::max(1.0, hot.asked)));
  const Sums killed = of(Kind::kKilled);
  add("one instance of several is killed", "1/32 of the rest, or 100 ms of its demand, is lost",
      killed, fmt::format("at most {:.0f} of 1,000", killed.lost));
  const Sums paused = of(Kind::kPaused);
  add("an instance pauses for 2.5 s", "nothing is lost", paused,
      fmt::format("{:.0f}", paused.lost));
  const Sums still = of(Kind::kStandstill);
  add("the store stands still for 3 s, `local`", "nothing is lost", still,
      fmt::format("{:.0f}", still.lost));
  return rows;
}

}  // namespace headgate::simulation

#include "tests/simulation/contract.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/no_hits.h"
#include "headgate/base/random.h"
#include "headgate/limiter/lease/ask_budget.h"
#include "tests/simulation/node.h"
#include "tests/simulation/server.h"

namespace headgate::simulation {

using algorithm::Algorithm;
using algorithm::Decision;
using algorithm::Limit;
using base::BootTime;
using base::Duration;
using base::Instant;
using store::redis::BucketCall;
using namespace std::chrono_literals;

namespace {

// One way of a message, at most and at least.
constexpr Duration kDelayLeast = 50us;
constexpr Duration kDelayMost = 500us;
constexpr Duration kBetween = 20us;  // two requests of a burst

class Fleet final : public NodeHost {
 public:
  Fleet(const Load& load, redis_host::ScriptHost& scripts, bool trace)
      : load_(load),
        trace_(trace),
        random_(load.seed),
        limit_(*Limit::Make(load.spec)),
        server_(scripts, std::nullopt, kStart) {
    plan_.instances = load.instances;
    plan_.loops = load.loops;
    plan_.ttl = store::kLeaseTtl;
    plan_.tiny_ttl = store::kTinyLeaseTtl;
    plan_.tiny_share = limiter::lease::LeaseBookOptions{}.tiny_share;
    plan_.timeout = 50ms;
    plan_.start = kStart;
    plan_.breaker_open_max = 500ms;
    plan_.keys.push_back({.spec = load.spec, .on_store_failure = rule::OnStoreFailure::kLocal});
    key_ = *limits_.Intern(limit_);
    for (uint32_t i = 0; i < load.instances; ++i) {
      machines_.emplace_back();
      Start(i);
    }
  }

  Measured Run() {
    switch (load_.kind) {
      case Load::Kind::kAlone:
      case Load::Kind::kMixed:
      case Load::Kind::kWander:
        Burst(0, 0);
        break;
      case Load::Kind::kObedient:
        Obey();
        break;
      default:
        for (uint32_t i = 0; i < plan_.nodes(); ++i) Stream(i, Duration(0));
    }
    if (load_.kind == Load::Kind::kLargeCost) Large(LargeGap());
    const Duration middle = load_.lasts / 2;
    if (load_.kind == Load::Kind::kKilled) Schedule(middle, [this] { Kill(); });
    if (load_.kind == Load::Kind::kPaused)
      Schedule(middle, [this] { machines_[0].paused_until = now_ + 2500ms; });
    if (load_.kind == Load::Kind::kStandstill)
      Schedule(middle, [this] { frozen_until_ = now_ + 3s; });
    while (!events_.empty() && measured_.failure.empty()) {
      std::pop_heap(events_.begin(), events_.end(), Later);
      Event event = std::move(events_.back());
      events_.pop_back();
      if (event.at > load_.lasts + 5s) break;
      now_ = event.at;
      event.happen();
    }
    measured_.lasted = load_.lasts;
    for (const Machine& machine : machines_)
      measured_.calls_most = std::max(measured_.calls_most, machine.calls);
    Settle();
    return measured_;
  }

  // ---- The services that a node needs

  void Send(Node& node, const Sent& sent, const BucketCall& content) override {
    Machine& machine = MachineOf(node.index());
    if (now_ < load_.lasts) ++machine.calls;
    std::vector<std::string> parts;
    for (size_t i = 0; i < content.part_count(); ++i) parts.emplace_back(content.Part(i));
    Schedule(std::max(now_ + Delay(), frozen_until_),
             [this, index = node.index(), call = sent.call, incarnation = machine.incarnation,
              script = content.script().text, parts = std::move(parts)] {
               const wire::RespValue reply = server_.Run(script, parts, now_);
               OnNode(index, incarnation, now_ + Delay(),
                      [this, call, reply](Node& asker) { asker.OnReply(call, reply, BootAt()); });
             });
  }
  void At(Node& node, Timer timer, uint64_t what, BootTime at) override {
    OnNode(node.index(), MachineOf(node.index()).incarnation, Duration(at.ns) - kBoot,
           [this, timer, what](Node& woken) {
             if (timer == Timer::kTimeout) return woken.OnTimeout(what, BootAt());
             if (timer == Timer::kWake) woken.OnWake(BootAt());
           });
  }
  void OnDebt(Node&, uint64_t) override {}
  void Admit(Node&, size_t, uint64_t, uint64_t) override {}
  void AdmitLocally(Node&, size_t, uint64_t, BootTime) override {}
  void Denied(Node&, size_t, uint64_t, BootTime) override {}
  void Allowed(Node&, size_t, uint64_t) override {}
  void TakeBack(Node&, size_t, uint64_t, uint64_t) override {}
  void Fail(const std::string& what) override { measured_.failure = what; }
  bool tracing() const override { return trace_; }
  void Say(Node& node, const std::string& what) override {
    fmt::print("{:>10.3f}ms node {}: {}\n", static_cast<double>(now_.count()) / 1e6, node.index(),
               what);
  }
  void Decided(Node&, size_t, uint64_t cost, const limiter::Settled& settled) override {
    const Decision& decision = settled.decision;
    if (decision.allowed) {
      measured_.admitted += cost;
    } else {
      ++measured_.refused;
    }
    if (asking_) ++measured_.at_once;
    if (const auto decided = std::exchange(decided_, nullptr)) decided(decision);
  }

 private:
  static constexpr Instant kStart = Instant::FromNanos(1'800'000'000'000'000'000);
  static constexpr Duration kBoot = 100s;

  struct Event {
    Duration at;
    uint64_t order;
    std::function<void()> happen;
  };
  static bool Later(const Event& a, const Event& b) {
    return a.at > b.at || (a.at == b.at && a.order > b.order);
  }
  struct Machine {
    std::unique_ptr<Instance> instance{};
    std::vector<std::unique_ptr<Node>> nodes{};
    uint64_t incarnation = 0;
    uint64_t calls = 0;
    Duration paused_until{0};
  };

  void Schedule(Duration at, std::function<void()> happen) {
    // The store's clock ticks in microseconds.
    at = Duration((std::max(at, now_).count() + 999) / 1000 * 1000);
    events_.push_back({.at = at, .order = ++last_order_, .happen = std::move(happen)});
    std::push_heap(events_.begin(), events_.end(), Later);
  }
  void OnNode(uint32_t index, uint64_t incarnation, Duration at,
              std::function<void(Node&)> happen) {
    Schedule(at, [this, index, incarnation, happen = std::move(happen)] {
      Machine& machine = MachineOf(index);
      if (machine.incarnation != incarnation || machine.nodes.empty()) return;
      if (now_ < machine.paused_until)
        return OnNode(index, incarnation, machine.paused_until, happen);
      happen(*machine.nodes[index % plan_.loops]);
    });
  }
  void Start(uint32_t index) {
    Machine& machine = machines_[index];
    ++machine.incarnation;
    machine.instance =
        std::make_unique<Instance>(plan_, random_.Next() | 1, std::vector{key_}, coverage_,
                                   [this](const std::string& what) { Fail(what); });
    for (uint32_t loop = 0; loop < plan_.loops; ++loop) {
      machine.nodes.push_back(std::make_unique<Node>(*this, plan_, std::nullopt, coverage_,
                                                     NodeStart{.index = index * plan_.loops + loop,
                                                               .server = server_.identity(now_),
                                                               .shard = server_.shard(),
                                                               .boot = BootTime{kBoot.count()}},
                                                     *machine.instance));
    }
  }
  Machine& MachineOf(uint32_t node) { return machines_[node / plan_.loops]; }
  BootTime BootAt() const { return BootTime{(kBoot + now_).count()}; }
  Duration Delay() {
    return kDelayLeast + Duration(static_cast<int64_t>(random_.Below(
                             static_cast<uint64_t>((kDelayMost - kDelayLeast).count()))));
  }

  // One single bucket is asked at the same time.
  Decision AskSingle(uint64_t cost) {
    algorithm::NoHits no_hits;
    const Decision decision = algorithm::Decide(limit_, single_, no_hits, cost, kStart + now_);
    if (decision.allowed) {
      measured_.single_admitted += cost;
    } else {
      ++measured_.single_refused;
    }
    return decision;
  }
  void Ask(uint32_t node, uint64_t cost) {
    OnNode(node, MachineOf(node).incarnation, now_, [this, cost](Node& asked) {
      ++measured_.asked;
      single_decision_ = AskSingle(cost);
      asked_at_ = now_;
      asking_ = true;
      asked.OnRequest(0, cost, BootAt());
      asking_ = false;
    });
  }

  Duration PeriodOf() const { return PaceOf(load_.spec); }

  // ---- One client at a time

  void Burst(uint64_t number, uint64_t sent) {
    if (sent == 0) {
      single_refuses_ = false;
      burst_admitted_ = 0;
      window_of_burst_ = limit_.spec().period.count() == 0 ? 0 : now_ / limit_.spec().period;
    }
    const uint64_t all = std::max<uint64_t>(limit_.capacity() + 1, limit_.capacity() * 12 / 10);
    if (now_ >= load_.lasts) return;
    if (sent >= all) {
      if (load_.kind == Load::Kind::kWander && burst_admitted_ < limit_.capacity())
        measured_.lacked_most =
            std::max(measured_.lacked_most, limit_.capacity() - burst_admitted_);
      // The next burst starts when the bucket is full again and the window is over.
      return Schedule(now_ + TimeToFull(limit_) + 30ms, [this, number] { Burst(number + 1, 0); });
    }
    const uint64_t cost = load_.kind == Load::Kind::kMixed
                              ? 1 + random_.Below(std::max<uint64_t>(1, limit_.capacity() / 5))
                              : 1;
    decided_ = [this, number, sent, cost](const Decision& decision) {
      const bool same = burst_admitted_ == single_admitted_in_burst_;
      if (single_decision_.allowed) single_admitted_in_burst_ += cost;
      single_refuses_ = single_refuses_ || !single_decision_.allowed;
      const bool early = load_.kind == Load::Kind::kMixed
                             ? same && single_decision_.allowed
                             : !single_refuses_ && burst_admitted_ < limit_.capacity();
      if (!decision.allowed && early) ++measured_.refused_early;
      if (decision.allowed) burst_admitted_ += cost;
      // A lease may end with its window before the grant arrives. Then `remaining` does not include
      // it.
      const bool same_window =
          asked_at_ / limit_.spec().period == (now_ + 2 * kDelayMost) / limit_.spec().period &&
          window_of_burst_ == now_ / limit_.spec().period;
      if (load_.kind == Load::Kind::kAlone && load_.spec.algorithm == Algorithm::kFixedWindow &&
          same_window && decision.allowed && decision.remaining != single_decision_.remaining)
        ++measured_.remaining_wrong;
      Schedule(now_ + kBetween, [this, number, sent, cost] { Burst(number, sent + cost); });
    };
    if (sent == 0) single_admitted_in_burst_ = 0;
    const uint32_t node = load_.kind == Load::Kind::kWander ? NextNode() : 0;
    Ask(node, cost);
  }

  // By the seed: the nodes in turn, or a random one.
  uint32_t NextNode() {
    if (load_.seed % 2 == 0) return static_cast<uint32_t>(random_.Below(plan_.nodes()));
    return static_cast<uint32_t>(asked_in_turn_++ % plan_.nodes());
  }

  // ---- A client that obeys Retry-After

  void Obey() {
    if (now_ >= load_.lasts) return;
    decided_ = [this](const Decision& decision) {
      // An instance reports what it has spent with its next message.
      const bool first = std::exchange(in_vain_, !decision.allowed && waited_) == false;
      if (in_vain_) ++(first ? measured_.spent_elsewhere : measured_.refused_early);
      waited_ = !decision.allowed;
      const Duration wait = decision.allowed ? 1ms : decision.retry_after;
      Schedule(now_ + wait, [this] { Obey(); });
    };
    Ask(static_cast<uint32_t>(random_.Below(plan_.nodes())), waited_ ? waited_cost_ : NextCost());
  }
  uint64_t NextCost() {
    const uint64_t most = load_.seed % 2 == 0 ? limit_.capacity() / 4 : 8;
    return waited_cost_ = 1 + random_.Below(std::clamp<uint64_t>(most, 1, limit_.capacity()));
  }

  // ---- Streams of requests

  Duration Gap() const {
    const auto nodes = static_cast<double>(plan_.nodes());
    if (load_.per_1000s != 0)
      return Duration(static_cast<int64_t>(1e12 * nodes / static_cast<double>(load_.per_1000s)));
    return Duration(static_cast<int64_t>(static_cast<double>(PeriodOf().count()) * 100 * nodes /
                                         static_cast<double>(load_.spec.requests * load_.percent)));
  }
  void Stream(uint32_t node, Duration) {
    const Duration gap = Gap();
    const Duration phase(static_cast<int64_t>(random_.Below(static_cast<uint64_t>(gap.count()))));
    Schedule(phase, [this, node] { Next(node); });
  }
  void Next(uint32_t node) {
    if (now_ >= load_.lasts) return;
    Ask(node, 1);
    Duration gap = Gap();
    if (load_.kind == Load::Kind::kPoisson || load_.kind == Load::Kind::kPlenty) {
      const double u = (static_cast<double>(random_.Below(1u << 30)) + 1) / (1u << 30);
      gap = Duration(static_cast<int64_t>(-std::log(u) * static_cast<double>(gap.count())));
    }
    Schedule(now_ + gap, [this, node] { Next(node); });
  }

  // ---- Large costs, at four fifths of the rest of the rate

  uint64_t LargeCost() const { return std::max<uint64_t>(1, limit_.capacity() * 2 / 5); }
  Duration LargeGap() const {
    const uint64_t left = (100 - load_.percent) * 8 / 10;
    return PeriodOf() * static_cast<int64_t>(100 * LargeCost()) /
           static_cast<int64_t>(load_.spec.requests * std::max<uint64_t>(1, left));
  }
  void Large(Duration gap) {
    Schedule(now_ + gap, [this, gap] {
      if (now_ >= load_.lasts) return;
      Ask(static_cast<uint32_t>(random_.Below(plan_.nodes())), LargeCost());
      Large(gap);
    });
  }

  // ---- Faults

  void Kill() {
    // The requests that the instance held, or had spent without reporting them.
    const uint64_t rest = server_.Rest(limit_, Node::NameOf(0), now_);
    const uint64_t per_100ms = static_cast<uint64_t>(100ms / Gap()) * plan_.loops;
    measured_.lost_most = std::max((rest + machines_[0].nodes[0]->held(0)) / 32, per_100ms) + 1;
    machines_[0].nodes.clear();
    machines_[0].instance.reset();
  }
  // The requests that the store has counted, although nobody was let through.
  void Settle() {
    if (load_.kind < Load::Kind::kKilled) return;
    const uint64_t rest = server_.Rest(limit_, Node::NameOf(0), now_);
    const uint64_t right = limit_.capacity() - std::min(limit_.capacity(), measured_.admitted);
    measured_.lost = right - std::min(right, rest);
  }

  const Load& load_;
  const bool trace_;
  base::Random random_;
  const Limit limit_;
  Plan plan_;
  Coverage coverage_;
  store::LimitTable limits_;
  store::LimitHandle key_;
  Server server_;
  std::vector<Machine> machines_;
  std::vector<Event> events_;
  uint64_t last_order_ = 0;
  Duration now_{0};
  Duration frozen_until_{0};
  algorithm::BucketState single_{};
  Decision single_decision_{};
  bool single_refuses_ = false;
  uint64_t burst_admitted_ = 0;
  uint64_t single_admitted_in_burst_ = 0;
  uint64_t asked_in_turn_ = 0;
  Duration asked_at_{0};
  int64_t window_of_burst_ = 0;
  bool asking_ = false;
  bool waited_ = false;
  bool in_vain_ = false;
  uint64_t waited_cost_ = 1;
  std::function<void(const Decision&)> decided_{};
  Measured measured_;
};

}  // namespace

Measured Run(const Load& load, redis_host::ScriptHost& scripts, bool trace) {
  return Fleet(load, scripts, trace).Run();
}

}  // namespace headgate::simulation

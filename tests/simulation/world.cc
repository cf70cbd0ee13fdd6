#include "tests/simulation/world.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

namespace headgate::simulation {

using base::BootTime;
using base::Duration;
using base::Instant;
using store::redis::BucketCall;
using wire::RespValue;
using namespace std::chrono_literals;

namespace {

constexpr char kDecided = 1;

bool Later(const auto& a, const auto& b) { return a.at > b.at || (a.at == b.at && a.order > b.order); }

// The store's clock ticks in microseconds: what happens there happens at one.
Duration ToTick(Duration at) { return Duration((at.count() + 999) / 1000 * 1000); }

}  // namespace

World::World(const Plan& plan, std::optional<Mutant> mutant, redis_host::LuaHost& lua, Coverage& coverage, bool trace)
    : plan_(plan),
      mutant_(mutant),
      coverage_(coverage),
      trace_(trace),
      random_(base::Random(~plan.seed).Next()),
      server_(lua, mutant, plan.start),
      machines_(plan.nodes) {
  for (const KeyPlan& key : plan_.keys) {
    Key state{.limit = *limits_.Intern(*algorithm::Limit::Make(key.spec)),
              .bound = Bound(*algorithm::Limit::Make(key.spec), plan_.calendar_edge)};
    if (key.changed) state.changed = *limits_.Intern(*algorithm::Limit::Make(*key.changed));
    keys_.push_back(std::move(state));
  }
}

Outcome World::Run() {
  for (uint32_t i = 0; i < plan_.nodes; ++i) {
    Machine& machine = machines_[i];
    if (plan_.drift_ppm_max > 0) {
      machine.drift_ppm =
          static_cast<int64_t>(random_.Below(2 * plan_.drift_ppm_max + 1)) - static_cast<int64_t>(plan_.drift_ppm_max);
    }
    machine.boot = 1s + Duration(static_cast<int64_t>(random_.Below(1'000'000'000'000)));
    machine.switched.resize(keys_.size());
    machine.demand.resize(keys_.size(), true);
    for (size_t key = 0; key < keys_.size(); ++key) machine.weight.push_back(random_.Below(4));
    machine.leased_at.resize(keys_.size());
    Start(i);
  }
  for (uint32_t i = 0; i < plan_.nodes; ++i) {
    for (size_t key = 0; key < keys_.size(); ++key) NextRequest(i, key);
  }
  for (size_t key = 0; key < keys_.size(); ++key) {
    for (uint32_t i = 0; i < plan_.nodes && plan_.keys[key].bursts; ++i) NextBurst(i, key);
    if (plan_.keys[key].changed) ScheduleChange(key);
    if (IsCalendar(plan_.keys[key].spec)) {
      Schedule(plan_.calendar_edge - plan_.start, [this] { coverage_.Mark("a month or a year ended"); });
    }
  }
  ScheduleFaults();
  Replicate();
  Schedule(plan_.measured_from, [this] {
    for (size_t key = 0; key < keys_.size(); ++key) ScheduleMeasurement(key);
  });
  Schedule(plan_.end, [this] { CheckReturned(); });
  while (!events_.empty() && outcome_.failure.empty()) {
    std::pop_heap(events_.begin(), events_.end(), [](const Event& a, const Event& b) { return Later(a, b); });
    const Event event = std::move(events_.back());
    events_.pop_back();
    if (event.at > plan_.end) break;
    now_ = event.at;
    Digest(static_cast<uint64_t>(now_.count()));
    event.happen();
  }
  return outcome_;
}

// ---- What happens

void World::Schedule(Duration at, std::function<void()> happen) {
  events_.push_back({.at = std::max(at, now_), .order = ++last_order_, .happen = std::move(happen)});
  std::push_heap(events_.begin(), events_.end(), [](const Event& a, const Event& b) { return Later(a, b); });
}

// Not while the machine is paused, and not when it has restarted since.
void World::OnMachine(uint32_t index, uint64_t incarnation, Duration at, std::function<void(Node&)> happen) {
  Schedule(at, [this, index, incarnation, happen = std::move(happen)] {
    Machine& machine = machines_[index];
    if (machine.incarnation != incarnation || machine.node == nullptr) return;
    if (now_ < machine.paused_until) return OnMachine(index, incarnation, machine.paused_until, happen);
    happen(*machine.node);
  });
}

void World::Start(uint32_t index) {
  Machine& machine = machines_[index];
  ++machine.incarnation;
  machine.aside = false;
  std::vector<store::LimitHandle> limits;
  for (size_t key = 0; key < keys_.size(); ++key) {
    limits.push_back(machine.switched[key] ? keys_[key].changed : keys_[key].limit);
  }
  machine.node = std::make_unique<Node>(
      *this, plan_, mutant_, coverage_,
      NodeStart{.index = index, .id = NewNode(), .boot = BootTime{machine.boot.count()}}, limits);
}

uint64_t World::NewNode() {
  const uint64_t random = random_.Next() | 1;
  return plan_.one_instance ? limiter::NodeOf(0, ++nodes_started_) : random;
}

void World::NextBurst(uint32_t index, size_t key) {
  Schedule(now_ + 100ms + Duration(static_cast<int64_t>(random_.Below(1'500'000'000))), [this, index, key] {
    std::vector<bool>& demand = machines_[index].demand;
    demand[key] = calm() || !demand[key];
    if (!calm()) NextBurst(index, key);
  });
}

void World::NextRequest(uint32_t index, size_t key) {
  const KeyPlan& plan = plan_.keys[key];
  Machine& machine = machines_[index];
  const algorithm::LimitSpec& spec = machine.switched[key] ? *plan.changed : plan.spec;
  uint64_t weights = 0;
  for (const Machine& each : machines_) weights += each.weight[key] + (calm() ? 1 : 0);
  const uint64_t weight = machine.weight[key] + (calm() ? 1 : 0);
  const uint64_t percent = calm() ? plan.demand_percent_calm : plan.demand_percent;
  if (weight == 0 || !machine.demand[key]) {
    return Schedule(now_ + 50ms, [this, index, key] { NextRequest(index, key); });
  }
  // A request costs half of what it may at most.
  const uint64_t per_period = spec.requests * percent * weight;
  const uint64_t gap = static_cast<uint64_t>(plan.pace.count()) * 100 * weights * (plan.cost_max + 1) / 2 / per_period;
  const auto until_next = Duration(static_cast<int64_t>(random_.Below(2 * gap + 1)));
  Schedule(now_ + until_next, [this, index, key] {
    if (now_ >= plan_.measured_to) return;
    const uint64_t cost = 1 + random_.Below(plan_.keys[key].cost_max);
    // Of what is undone most is so because another limit denies.
    const bool in_group = !calm() && random_.Below(100) < plan_.keys[key].refund_percent && random_.Below(3) > 0;
    if (now_ >= keys_[key].quiet_until) {
      OnMachine(index, machines_[index].incarnation, now_, [this, key, cost, in_group](Node& node) {
        if (!in_group) return Request(node, key, cost);
        node.OnGroup(key, cost, BootAt(machines_[node.index()], now_));
      });
    }
    NextRequest(index, key);
  });
}

void World::Request(Node& node, size_t key, uint64_t cost) {
  if (keys_[key].exact) keys_[key].exact->Ask(cost, server_.Wall(now_));
  node.OnRequest(key, cost, BootAt(machines_[node.index()], now_));
}

void World::At(Node& node, Timer timer, uint64_t what, BootTime at) {
  const uint32_t index = node.index();
  OnMachine(index, machines_[index].incarnation, TrueAt(machines_[index], at), [this, index, timer, what](Node& woken) {
    const BootTime now = BootAt(machines_[index], now_);
    switch (timer) {
      case Timer::kTimeout:
        return woken.OnTimeout(what, now);
      case Timer::kWake:
        return woken.OnWake(now);
      case Timer::kRequest:
        if (now_ < plan_.measured_to && now_ >= keys_[what].quiet_until) Request(woken, what, 1);
    }
  });
}

void World::Admit(Node& node, size_t index, uint64_t cost) {
  Key& key = keys_[index];
  Digest(index << 32 | cost);
  outcome_.admitted += cost;
  outcome_.leased += cost;
  if (now_ < machines_[node.index()].cut_until) coverage_.Mark("a node that was cut off spent its leases");
  if (key.exact) key.admitted += cost;
  if (!key.bound.Admit(cost, now_, server_.Wall(now_))) {
    Fail(fmt::format("node {} let {} of k{} through from a lease: beyond the bound", node.index(), cost, index));
  }
}

void World::Allowed(Node& node, size_t key, uint64_t cost) {
  if (calm() || random_.Below(300) >= plan_.keys[key].refund_percent) return;
  OnMachine(node.index(), machines_[node.index()].incarnation, now_ + Below(200ms),
            [this, key, cost](Node& giver) { giver.OnRefund(key, cost, BootAt(machines_[giver.index()], now_)); });
}

void World::TakeBack(Node& node, size_t key, uint64_t cost) {
  Digest(node.index() << 16 | cost);
  keys_[key].bound.Refund(cost, now_, server_.Wall(now_));
}

// ---- The network and the store

Duration World::Delay() {
  const auto below = [&](Duration d) {
    return Duration(static_cast<int64_t>(random_.Below(static_cast<uint64_t>(d.count()) + 1)));
  };
  const bool slow = !calm() && random_.Below(1'000'000) < plan_.slow_ppm;
  return below(slow ? plan_.slow_max : plan_.delay_max);
}

void World::Send(Node& node, const Sent& sent, const BucketCall& content) {
  Message message{.machine = node.index(),
                  .incarnation = machines_[node.index()].incarnation,
                  .aside = machines_[node.index()].aside,
                  .generation = machines_[node.index()].aside ? partitions_ : generation_,
                  .sent = sent,
                  .script = content.script().text,
                  .parts = {}};
  for (size_t i = 0; i < content.part_count(); ++i) message.parts.emplace_back(content.Part(i));
  if (now_ < machines_[node.index()].cut_until) return;
  if (!calm() && random_.Below(1'000'000) < plan_.lost_ppm) return;
  const int copies = !calm() && random_.Below(1'000'000) < plan_.doubled_ppm ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    Schedule(ToTick(now_ + Delay()), [this, message] { Arrive(message); });
  }
}

// Whether the connection that it travels on is no more.
bool World::IsGone(const Message& message) const {
  if (!message.aside) return message.generation != generation_;
  return !old_server_ || message.generation != partitions_;
}

void World::Arrive(const Message& message) {
  if (IsGone(message)) return;
  Server& server = message.aside ? *old_server_ : server_;
  const std::string& name = message.parts[0];
  if (IsGate(message.sent)) return Reply(message, server.Run(message.script, message.parts, now_));
  const std::vector<StoredLease> before = server.Leases(name, now_);
  ++outcome_.calls;
  const RespValue reply = server.Run(message.script, message.parts, now_);
  if (reply.kind != RespValue::Kind::kBulk) return Fail(fmt::format("the script answered {}", reply.ToString()));
  for (const StoredLease& lease : before) {
    if (lease.expires_at <= server.Wall(now_) && lease.reported < lease.granted) {
      coverage_.Mark("a lease expired at the store with something left");
    }
  }
  const bool decided = reply.text[0] == kDecided;
  if (!decided && !before.empty()) coverage_.Mark("a bucket was carried over with leases");
  if (decided) CountAtStore(message, server, reply.text[1] == 1);
  if (const std::string wrong = server.Inspect(name, now_); !wrong.empty()) {
    Fail(fmt::format("k{} at the store: {}", message.sent.key, wrong));
  }
  Digest(reply.text.size());
  for (const char byte : reply.text) Digest(static_cast<unsigned char>(byte));
  Reply(message, reply);
}

// Where the answer is lost it was let through nowhere; but it is consumed, which is what is bounded.
void World::CountAtStore(const Message& message, Server& server, bool allowed) {
  Key& key = keys_[message.sent.key];
  const Instant wall = server.Wall(now_);
  if (IsFirstHit(key) && !message.aside) {
    coverage_.Mark("a window began with its first hit");
    key.bound.OnWindow(Instant::FromNanos(static_cast<int64_t>(server.State(message.parts[0], now_).edge)), wall);
  }
  if (message.sent.gives > 0) {
    coverage_.Mark("a request was refunded at the store");
    key.bound.Refund(message.sent.gives, now_, wall);
  }
  if (message.sent.takes == 0 || !allowed) return;
  outcome_.admitted += message.sent.takes;
  if (message.aside) coverage_.Mark("a server that had been replaced let something through");
  if (key.exact) key.admitted += message.sent.takes;
  if (!key.bound.Admit(message.sent.takes, now_, wall)) {
    Fail(fmt::format("the store let {} of k{} through: beyond the bound", message.sent.takes, message.sent.key));
  }
}

void World::Reply(const Message& message, const RespValue& reply) {
  if (now_ < machines_[message.machine].cut_until) return;
  if (!calm() && random_.Below(1'000'000) < plan_.lost_ppm) return;
  const int copies = !calm() && random_.Below(1'000'000) < plan_.doubled_ppm ? 2 : 1;
  if (copies == 2) coverage_.Mark("an answer came twice");
  for (int i = 0; i < copies; ++i) {
    OnMachine(message.machine, message.incarnation, now_ + Delay(), [this, message, reply](Node& node) {
      if (IsGone(message)) return;
      node.OnReply(message.sent.call, reply, BootAt(machines_[message.machine], now_));
    });
  }
}

// ---- Time

Duration World::AnyTime() {
  return 200ms +
         Duration(static_cast<int64_t>(random_.Below(static_cast<uint64_t>((plan_.calm_from - 400ms).count()))));
}

Duration World::Below(Duration most) {
  return Duration(static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most.count()))));
}

BootTime World::BootAt(const Machine& machine, Duration at) const {
  const Duration counted = at - machine.paused_for;
  return BootTime{(machine.boot + counted + Duration(counted.count() / 1000 * machine.drift_ppm / 1000)).count()};
}

// The first moment at which the machine's clock says so.
Duration World::TrueAt(const Machine& machine, BootTime at) const {
  Duration guess = now_ + (at - BootAt(machine, now_)) * 1'000'000 / (1'000'000 + machine.drift_ppm);
  guess = std::max(guess, now_);
  while (BootAt(machine, guess) < at) guess += Duration(1);
  while (guess > now_ && BootAt(machine, guess - Duration(1)) >= at) guess -= Duration(1);
  return guess;
}

// ---- Words

void World::Digest(uint64_t value) { outcome_.digest = (outcome_.digest ^ value) * 0x100000001b3u; }

void World::Fail(const std::string& what) {
  if (!outcome_.failure.empty()) return;
  outcome_.failure = fmt::format("at {}ms: {}", static_cast<double>(now_.count()) / 1e6, what);
  if (trace_) fmt::print("{}\n", outcome_.failure);
}

void World::Note(const std::string& what) {
  if (trace_) fmt::print("{:>10.3f}ms         {}\n", static_cast<double>(now_.count()) / 1e6, what);
}

void World::Say(Node& node, const std::string& what) {
  fmt::print("{:>10.3f}ms node {}: {}\n", static_cast<double>(now_.count()) / 1e6, node.index(), what);
}

}  // namespace headgate::simulation

#include "tests/simulation/world.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>

#include "headgate/limiter/lease/ask_budget.h"

namespace headgate::simulation {

using base::BootTime;
using base::Duration;
using base::Instant;
using store::redis::BucketCall;
using wire::RespValue;
using namespace std::chrono_literals;

namespace {

constexpr char kDecided = 1;
// One call in each of these, and a burst: leases.md, a scarce key.
constexpr Duration kBudgetPause = 62500us;
// A key that was found scarce is not asked for during this time.
constexpr Duration kScarcePause = 75ms;

bool Later(const auto& a, const auto& b) {
  return a.at > b.at || (a.at == b.at && a.order > b.order);
}

// The store's clock ticks in microseconds, so its events happen on a tick.
Duration ToTick(Duration at) { return Duration((at.count() + 999) / 1000 * 1000); }

}  // namespace

World::World(const Plan& plan, std::optional<Mutant> mutant, redis_host::ScriptHost& scripts,
             Coverage& coverage, bool trace)
    : plan_(plan),
      mutant_(mutant),
      coverage_(coverage),
      trace_(trace),
      random_(base::Random(~plan.seed).Next()),
      server_(scripts, mutant, plan.start),
      machines_(plan.instances),
      demands_(plan.nodes()) {
  for (const KeyPlan& key : plan_.keys) {
    const algorithm::Limit limit = *algorithm::Limit::Make(key.spec);
    // A denial is remembered for one TTL of a clock that may be slow, and rests on an answer that
    // may have been late.
    const Duration remembered =
        plan_.ttl * 21 / 20 + plan_.timeout + plan_.delay_max + plan_.slow_max;
    Key state{.limit = *limits_.Intern(limit),
              .bound = Bound(limit),
              .total = Bound(limit),
              .lockout = Lockout(limit, remembered, KeptMax(key.spec, PaceOf(key.spec)))};
    if (key.changed) state.changed = *limits_.Intern(*algorithm::Limit::Make(*key.changed));
    keys_.push_back(std::move(state));
  }
}

Outcome World::Run() {
  for (Machine& machine : machines_) {
    if (plan_.drift_ppm_max > 0) {
      machine.drift_ppm = static_cast<int64_t>(random_.Below(2 * plan_.drift_ppm_max + 1)) -
                          static_cast<int64_t>(plan_.drift_ppm_max);
    }
    machine.boot = 1s + Duration(static_cast<int64_t>(random_.Below(1'000'000'000'000)));
    machine.switched.resize(keys_.size());
    machine.admitted.resize(keys_.size());
    machine.admitted_exactly.resize(keys_.size());
    machine.calls.resize(keys_.size());
    machine.budget_even_at.resize(keys_.size());
    Start(static_cast<uint32_t>(&machine - machines_.data()));
  }
  BeginDemand();
  for (size_t key = 0; key < keys_.size(); ++key) {
    if (plan_.keys[key].changed) ScheduleChange(key);
    if (IsCalendar(plan_.keys[key].spec) || IsCalendar(plan_.keys[key].last())) {
      Schedule(plan_.calendar_edge - plan_.start,
               [this] { coverage_.Mark("a month or a year ended"); });
    }
  }
  ScheduleFaults();
  Replicate();
  Schedule(plan_.measured_from, [this] {
    for (size_t key = 0; key < keys_.size(); ++key) ScheduleMeasurement(key);
  });
  Schedule(plan_.measured_to, [this] { ShutDownAll(); });
  Schedule(plan_.end, [this] { CheckReturned(); });
  while (!events_.empty() && outcome_.failure.empty()) {
    std::pop_heap(events_.begin(), events_.end(),
                  [](const Event& a, const Event& b) { return Later(a, b); });
    const Event event = std::move(events_.back());
    events_.pop_back();
    if (event.at > plan_.end) break;
    now_ = event.at;
    Digest(static_cast<uint64_t>(now_.count()));
    event.happen();
  }
  return outcome_;
}

// ---- Admissions and denials

void World::Schedule(Duration at, std::function<void()> happen) {
  events_.push_back(
      {.at = std::max(at, now_), .order = ++last_order_, .happen = std::move(happen)});
  std::push_heap(events_.begin(), events_.end(),
                 [](const Event& a, const Event& b) { return Later(a, b); });
}

void World::OnNode(uint32_t index, uint64_t incarnation, Duration at,
                   std::function<void(Node&)> happen) {
  Schedule(at, [this, index, incarnation, happen = std::move(happen)] {
    const Machine& machine = MachineOf(index);
    Node* const node = NodeAt(index);
    if (machine.incarnation != incarnation || node == nullptr) return;
    if (now_ < machine.paused_until)
      return OnNode(index, incarnation, machine.paused_until, happen);
    happen(*node);
  });
}

Node* World::NodeAt(uint32_t index) const {
  const Machine& machine = MachineOf(index);
  return machine.nodes.empty() ? nullptr : machine.nodes[index % plan_.loops].get();
}

void World::Start(uint32_t index) {
  Machine& machine = machines_[index];
  ++machine.incarnation;
  machine.aside = false;
  std::vector<store::LimitHandle> limits;
  for (size_t key = 0; key < keys_.size(); ++key) {
    limits.push_back(machine.switched[key] ? keys_[key].changed : keys_[key].limit);
  }
  const uint64_t id = random_.Next() | 1;
  machine.instance =
      std::make_unique<Instance>(plan_, id, limits, coverage_, [this](const std::string& what) {
        if (plan_.ledger) Fail(what);
      });
  for (Key& key : keys_) key.total.AllowShare(plan_.instances, now_);
  for (uint32_t loop = 0; loop < plan_.loops; ++loop) {
    machine.nodes.push_back(
        std::make_unique<Node>(*this, plan_, mutant_, coverage_,
                               NodeStart{.index = index * plan_.loops + loop,
                                         .server = server_.identity(now_),
                                         .shard = server_.shard(),
                                         .boot = BootTime{machine.boot.count()}},
                               *machine.instance));
  }
}

void World::At(Node& node, Timer timer, uint64_t what, BootTime at) {
  const uint32_t index = node.index();
  OnNode(index, TrueAt(MachineOf(index), at), [this, index, timer, what](Node& woken) {
    const BootTime now = BootAt(MachineOf(index), now_);
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

void World::Admit(Node& node, size_t index, uint64_t cost, uint64_t request) {
  if (request != 0) {
    taken_[{node.index(), MachineOf(node.index()).incarnation, request, index}].push_back(
        {.at = now_, .wall = server_.Wall(now_)});
  }
  Key& key = keys_[index];
  Digest(index << 32 | cost);
  outcome_.admitted += cost;
  outcome_.leased += cost;
  if (now_ < MachineOf(node.index()).cut_until)
    coverage_.Mark("a node that was cut off spent its leases");
  if (key.exact) key.admitted += cost;
  const Instant wall = server_.Wall(now_);
  MachineOf(node.index()).admitted[index] += cost;
  if (!IsMeter(key.limit->limit)) key.lockout.consumed().Admit(cost, now_, wall);
  if (!key.bound.Admit(cost, now_, wall)) {
    Fail(fmt::format("node {} let {} of k{} through from a lease: beyond the bound", node.index(),
                     cost, index));
  }
  if (!key.total.Admit(cost, now_, wall)) {
    Fail(
        fmt::format("node {} let {} of k{} through from a lease: beyond the bound with its outages",
                    node.index(), cost, index));
  }
}

// `unanswered_since`: the store has not answered the node since then.
void World::AdmitLocally(Node& node, size_t index, uint64_t cost, BootTime unanswered_since) {
  Digest(uint64_t{node.index()} << 48 | index << 32 | cost);
  outcome_.local += cost;
  const Duration since = BootAt(MachineOf(node.index()), now_) - unanswered_since;
  Bound& total = keys_[index].total;
  total.AllowOutage(now_ - since - since / 50, now_, plan_.instances);
  if (!total.Admit(cost, now_, server_.Wall(now_))) {
    Fail(fmt::format("node {} let {} of k{} through by itself: more than an outage adds",
                     node.index(), cost, index));
  }
}

void World::Denied(Node& node, size_t index, uint64_t cost, BootTime unanswered_since) {
  Key& key = keys_[index];
  ++outcome_.denied;
  // A node that the store does not answer is in an outage, and a request that waited through a
  // pause is old.
  const Machine& machine = MachineOf(node.index());
  if (BootAt(machine, now_) - unanswered_since > plan_.ttl / 2 || now_ == machine.paused_until)
    return;
  if (key.limit->limit.spec().count_denied || old_server_) return;
  if (!key.lockout.IsLockedOut(cost, now_, server_.Wall(now_)) || IsOverspent(machine, index))
    return;
  Fail(fmt::format("node {} denied {} of k{}, although there was room all the time", node.index(),
                   cost, index));
}

// An instance that has called more often than its budget allows does not ask for a key for a while,
// if less than half of the bucket is left.
bool World::IsOverspent(const Machine& machine, size_t index) {
  const algorithm::Limit& limit = keys_[index].limit->limit;
  return machine.budget_even_at[index] > (now_ - kScarcePause).count() &&
         2 * server_.Rest(limit, Node::NameOf(index), now_) < limit.capacity();
}

void World::OnDebt(Node& node, uint64_t call) {
  debts_.insert({node.index(), MachineOf(node.index()).incarnation, call});
}

void World::Allowed(Node& node, size_t key, uint64_t cost) {
  if (calm() || random_.Below(300) >= plan_.keys[key].refund_percent) return;
  OnNode(node.index(), now_ + Below(200ms), [this, key, cost](Node& giver) {
    giver.OnRefund(key, cost, BootAt(MachineOf(giver.index()), now_));
  });
}

// Leased requests do not refill, so all of them can go back.
void World::TakeBack(Node& node, size_t key, uint64_t cost, uint64_t request) {
  Digest(node.index() << 16 | cost);
  const Instant wall = server_.Wall(now_);
  const bool meter = keys_[key].bound.IsMeter();
  const auto taken =
      TakenBy({node.index(), MachineOf(node.index()).incarnation, request, key}, Instant{});
  const auto take_back = [&](Bound& bound) {
    taken && !meter ? bound.Undo(cost, *taken, now_, wall) : bound.Refund(cost, now_, wall);
  };
  for (Bound* bound : {&keys_[key].bound, &keys_[key].total}) take_back(*bound);
  if (!meter) take_back(keys_[key].lockout.consumed());
}

std::optional<Bound::Taken> World::TakenBy(const std::array<uint64_t, 4>& taker,
                                           Instant wall) const {
  const auto found = taken_.find(taker);
  if (found == taken_.end()) return std::nullopt;
  const auto named =
      std::find_if(found->second.begin(), found->second.end(), [&](const Bound::Taken& taken) {
        // The store's clock shows whole microseconds.
        return taken.wall >= wall && taken.wall - wall < 1us;
      });
  return named == found->second.end() ? found->second.back() : *named;
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
  const Machine& machine = MachineOf(node.index());
  Message message{.node = node.index(),
                  .node_id = node.id(),
                  .incarnation = machine.incarnation,
                  .aside = machine.aside,
                  .generation = machine.aside ? partitions_ : generation_,
                  .sent = sent,
                  .script = content.script().text,
                  .parts = {}};
  for (size_t i = 0; i < content.part_count(); ++i) message.parts.emplace_back(content.Part(i));
  if (!IsGate(sent)) {
    ++MachineOf(node.index()).calls[sent.key];
    int64_t& even_at = MachineOf(node.index()).budget_even_at[sent.key];
    even_at =
        limiter::lease::AskBudget::Spend(even_at, now_.count(), Duration(kBudgetPause).count());
  }
  if (now_ < machine.cut_until) return;
  if (!calm() && random_.Below(1'000'000) < plan_.lost_ppm) return;
  const int copies = !calm() && random_.Below(1'000'000) < plan_.doubled_ppm ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    Schedule(ToTick(now_ + Delay()), [this, message] { Arrive(message); });
  }
}

// Whether the connection that carries the message has been closed.
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
  const std::optional<algorithm::LimitSpec> limit_before = server.LimitOf(name, now_);
  ++outcome_.calls;
  const RespValue reply = server.Run(message.script, message.parts, now_);
  if (reply.kind != RespValue::Kind::kBulk)
    return Fail(fmt::format("the script answered {}", reply.ToString()));
  const bool decided = reply.text[0] == kDecided;
  if (!decided && !before.empty()) coverage_.Mark("a bucket was carried over with leases");
  // A repeated ask takes nothing again while its lease is known.
  const bool again = std::any_of(before.begin(), before.end(), [&](const StoredLease& lease) {
    return lease.node == message.node_id && lease.number == message.sent.number;
  });
  if (decided) CountAtStore(message, server, reply.text[1] == 1 && !again);
  if (decided && !before.empty() && IsAlwaysExact(LimitAfter(message.sent.key)->limit) &&
      server.Leases(name, now_).empty()) {
    coverage_.Mark("leases were owed to a bucket that became a queue or a log");
  }
  if (IsDebt(message) && limit_before && server.LimitOf(name, now_) != limit_before) {
    Fail(fmt::format("k{}: a debt has brought back an earlier limit", message.sent.key));
  }
  if (!message.aside) WatchLeases(message, before);
  if (const std::string wrong = server.Inspect(name, now_); !wrong.empty()) {
    Fail(fmt::format("k{} at the store: {}", message.sent.key, wrong));
  }
  Digest(reply.text.size());
  for (const char byte : reply.text) Digest(static_cast<unsigned char>(byte));
  Reply(message, reply);
}

// The requests of an expired lease count as spent. The room of a spent request begins to refill
// when the spending is reported: until then the store refills the bucket only as far as if the
// request were still in it.
void World::WatchLeases(const Message& message, const std::vector<StoredLease>& before) {
  Key& key = keys_[message.sent.key];
  const Instant wall = server_.Wall(now_);
  uint64_t leased = 0;
  std::set<uint64_t> holders;
  std::map<std::pair<uint64_t, uint64_t>, uint64_t> reported;
  for (const StoredLease& lease : server_.Leases(Node::NameOf(message.sent.key), now_)) {
    if (lease.expires_at <= wall) continue;
    leased += lease.granted - lease.reported;
    holders.insert(lease.node);
    reported[{lease.node, lease.number}] = lease.reported;
  }
  for (const store::LeaseReport& report : message.sent.reports) {
    if (report.returned) reported.try_emplace({message.node_id, report.number}, report.spent);
  }
  for (const StoredLease& lease : before) {
    if (lease.reported >= lease.granted) continue;
    uint64_t spent = lease.reported;
    if (lease.expires_at <= wall) {
      coverage_.Mark("a lease expired at the store with something left");
      spent = lease.granted;
    } else if (const auto found = reported.find({lease.node, lease.number});
               found != reported.end()) {
      if (!IsMeter(key.limit->limit)) continue;
      spent = std::clamp(found->second, lease.reported, lease.granted);
    }
    key.lockout.consumed().Admit(spent - lease.reported, now_, wall);
  }
  outcome_.holders_most = std::max(outcome_.holders_most, holders.size());
  key.lockout.OnAnswer(leased, holders.size(), now_, wall);
}

// If the answer is lost, no request was admitted, but its cost was consumed, and the bound limits
// consumption.
void World::CountAtStore(const Message& message, Server& server, bool allowed) {
  Key& key = keys_[message.sent.key];
  const Instant wall = server.Wall(now_);
  if (IsFirstHit((key.change_over ? key.changed : key.limit)->limit) && !message.aside) {
    coverage_.Mark("a window began with its first hit");
    const auto until =
        Instant::FromNanos(static_cast<int64_t>(server.State(message.parts[0], now_).edge));
    for (Bound* bound : {&key.bound, &key.total, &key.lockout.consumed()})
      bound->OnWindow(until, wall);
  }
  if (message.sent.resets) {
    coverage_.Mark("a bucket was reset");
    Allow(Fault::kReset, message.sent.key, {});
  }
  if (message.sent.gives > 0) {
    coverage_.Mark("a request was refunded at the store");
    const auto taken =
        TakenBy({message.node, message.incarnation, message.sent.request, message.sent.key},
                message.sent.taken_at);
    const auto give_back = [&](Bound& bound) {
      taken ? bound.Undo(message.sent.gives, *taken, now_, wall)
            : bound.Refund(message.sent.gives, now_, wall);
    };
    for (Bound* bound : {&key.bound, &key.total}) give_back(*bound);
    // Requests returned to the old server are missing for nodes that ask the new one.
    if (!message.aside) give_back(key.lockout.consumed());
  }
  if (message.sent.takes == 0 || !allowed) return;
  taken_[{message.node, message.incarnation, message.sent.request, message.sent.key}].push_back(
      {.at = now_, .wall = wall});
  outcome_.admitted += message.sent.takes;
  if (message.aside) coverage_.Mark("a server that had been replaced let something through");
  if (const algorithm::Limit& limit = (key.change_over ? key.changed : key.limit)->limit;
      IsAlwaysExact(limit)) {
    coverage_.Mark(IsMeter(limit) ? "a queue let something through"
                                  : "a log let something through");
  }
  if (key.exact) key.admitted += message.sent.takes;
  MachineOf(message.node).admitted[message.sent.key] += message.sent.takes;
  key.lockout.consumed().Admit(message.sent.takes, now_, wall);
  // Paid-back requests were counted when they were admitted.
  if (IsDebt(message)) return;
  if (!key.bound.Admit(message.sent.takes, now_, wall)) {
    Fail(fmt::format("the store let {} of k{} through: beyond the bound", message.sent.takes,
                     message.sent.key));
  }
  if (!key.total.Admit(message.sent.takes, now_, wall)) {
    Fail(fmt::format("the store let {} of k{} through: beyond the bound with its outages",
                     message.sent.takes, message.sent.key));
  }
}

void World::Reply(const Message& message, const RespValue& reply) {
  if (now_ < MachineOf(message.node).cut_until) return;
  if (!calm() && random_.Below(1'000'000) < plan_.lost_ppm) return;
  const int copies = !calm() && random_.Below(1'000'000) < plan_.doubled_ppm ? 2 : 1;
  if (copies == 2) coverage_.Mark("an answer came twice");
  for (int i = 0; i < copies; ++i) {
    OnNode(message.node, message.incarnation, now_ + Delay(), [this, message, reply](Node& node) {
      if (IsGone(message)) return;
      node.OnReply(message.sent.call, reply, BootAt(MachineOf(message.node), now_));
    });
  }
}

// ---- Time

Duration World::AnyTime() {
  return 200ms + Duration(static_cast<int64_t>(
                     random_.Below(static_cast<uint64_t>((plan_.calm_from - 400ms).count()))));
}

Duration World::Below(Duration most) {
  return Duration(static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most.count()))));
}

BootTime World::BootAt(const Machine& machine, Duration at) const {
  const Duration counted = at - machine.paused_for;
  return BootTime{
      (machine.boot + counted + Duration(counted.count() / 1000 * machine.drift_ppm / 1000))
          .count()};
}

// The first moment in true time at which the machine's clock shows this time.
Duration World::TrueAt(const Machine& machine, BootTime at) const {
  Duration guess =
      now_ + (at - BootAt(machine, now_)) * 1'000'000 / (1'000'000 + machine.drift_ppm);
  guess = std::max(guess, now_);
  while (BootAt(machine, guess) < at) guess += Duration(1);
  while (guess > now_ && BootAt(machine, guess - Duration(1)) >= at) guess -= Duration(1);
  return guess;
}

// ---- Failures and traces

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
  fmt::print("{:>10.3f}ms node {}: {}\n", static_cast<double>(now_.count()) / 1e6, node.index(),
             what);
}

}  // namespace headgate::simulation

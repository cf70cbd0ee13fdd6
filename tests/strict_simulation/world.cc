#include "tests/strict_simulation/world.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "headgate/store/cas/envelope.h"
#include "headgate/store/cas/removal.h"
#include "tests/strict_simulation/replay.h"

namespace headgate::strict_simulation {

using base::BootTime;
using base::Duration;
using store::cas::PutRequest;
using store::cas::Version;
using store::cas::Versioned;
using namespace std::chrono_literals;

namespace {

constexpr base::WallTime kStart = base::WallTime::FromNanos(1'790'000'000'000'000'000);
// How old the value of a stale read is, with the mutant.
constexpr Duration kStale = 50ms;

}  // namespace

World::World(const Plan& plan, std::optional<Mutant> mutant, simulation::Coverage& coverage)
    : plan_(plan),
      mutant_(mutant),
      coverage_(coverage),
      random_(base::Random(~plan.seed).Next()),
      clock_(kStart),
      machines_(plan.instances) {
  for (size_t key = 0; key < plan_.keys.size(); ++key)
    values_.emplace_back(plan_.random_versions, random_.Next(), mutant);
}

Outcome World::Run() {
  for (uint32_t index = 0; index < plan_.instances; ++index) {
    Start(index);
    NextDiscipline(index);
    for (size_t key = 0; key < plan_.keys.size(); ++key) NextRequest(index, key);
  }
  for (size_t key = 0; key < plan_.keys.size(); ++key) Sweep(key);
  ScheduleFaults();
  const Duration over = plan_.end + 2 * plan_.timeout;
  while (!events_.empty() && events_.begin()->first <= over) {
    const auto event = events_.extract(events_.begin());
    clock_.Advance(event.key() - now_);
    now_ = event.key();
    event.mapped()();
  }
  for (const Machine& machine : machines_) {
    if (machine.instance != nullptr) CountBranches(*machine.instance);
  }
  return Check();
}

// ---- Events

void World::Schedule(Duration at, std::function<void()> happen) {
  events_.emplace(std::max(at, now_), std::move(happen));
}

void World::OnInstance(const Caller& caller, Duration at, std::function<void(Instance&)> happen) {
  Schedule(at, [this, caller, happen = std::move(happen)] {
    Machine& machine = machines_[caller.index];
    if (machine.instance == nullptr || machine.incarnation != caller.incarnation) return;
    if (now_ < machine.paused_until) return OnInstance(caller, machine.paused_until, happen);
    happen(*machine.instance);
    const Duration wake = machine.instance->EndTurn() - BootTime{0};
    if (wake >= machine.wakes_at || wake == BootTime{INT64_MAX} - BootTime{0}) return;
    machine.wakes_at = wake;
    OnInstance(caller, wake, [&machine](Instance& instance) {
      machine.wakes_at = Duration::max();
      instance.OnTime();
    });
  });
}

void World::Start(uint32_t index) {
  Machine& machine = machines_[index];
  ++machine.incarnation;
  machine.wakes_at = Duration::max();
  Duration ahead = Below(plan_.skew);
  if (mutant_ == Mutant::kClocksApart && index % 2 == 1) ahead += 700ms;
  machine.instance =
      std::make_unique<Instance>(*this, plan_, mutant_, index, random_.Next() | 1, ahead);
}

void World::Crash(uint32_t index) {
  Machine& machine = machines_[index];
  if (machine.instance == nullptr) return;
  Mark("an instance died while requests waited", machine.instance->waits());
  CountBranches(*machine.instance);
  machine.instance.reset();
  machine.paused_until = Duration(0);
  Schedule(now_ + Below(500ms), [this, index] {
    if (machines_[index].instance == nullptr) Start(index);
  });
}

// ---- Demand

void World::NextRequest(uint32_t index, size_t key) {
  Duration at = now_ + Below(2 * plan_.keys[key].pause);
  if (at >= plan_.rest_from && at < plan_.rest_until) at = plan_.rest_until + Below(200ms);
  if (at >= plan_.end) return;
  Schedule(at, [this, index, key] {
    Request(index, key);
    // Sometimes all instances ask at the same time.
    if (random_.Below(30) == 0) {
      for (uint32_t other = 0; other < plan_.instances; ++other) Request(other, key);
    }
    NextRequest(index, key);
  });
}

void World::Request(uint32_t index, size_t key) {
  const KeyPlan& plan = plan_.keys[key];
  uint64_t kind = random_.Below(100);
  store::Operation operation = store::Operation::kTake;
  const auto is = [&](uint32_t percent) {
    const bool chosen = kind < percent;
    kind -= chosen ? 0 : percent;
    return chosen;
  };
  if (is(plan.peek_percent)) {
    operation = store::Operation::kPeek;
  } else if (is(plan.refund_percent)) {
    operation = store::Operation::kRefund;
  } else if (is(plan.reset_percent)) {
    operation = store::Operation::kReset;
  }
  const uint64_t cost = 1 + random_.Below(plan.cost_max);
  OnInstance(CallerOf(index), now_, [key, operation, cost](Instance& instance) {
    instance.Request(key, operation, cost);
  });
}

// ---- Calls to the service

template <typename Answer>
void World::Finish(const Caller& caller, Duration at, const std::shared_ptr<Call<Answer>>& call,
                   std::function<Answer(Instance&)> answer) {
  OnInstance(caller, at, [call, answer = std::move(answer)](Instance& instance) {
    if (!std::exchange(call->finished, true)) call->done(answer(instance));
  });
}

absl::Status World::Refusal(uint32_t index, bool& lost) {
  if (now_ < machines_[index].cut_until) {
    if (Half()) return absl::UnavailableError("cut off");
    lost = true;
  }
  if (Chance(plan_.faults.throttled)) return absl::ResourceExhaustedError("slow down");
  if (Chance(plan_.faults.unavailable)) return absl::UnavailableError("away");
  lost = lost || Chance(plan_.faults.lost);
  return absl::OkStatus();
}

void World::Get(Instance& instance, size_t key, BootTime deadline, Connection::GetDone done) {
  using Answer = absl::StatusOr<std::optional<Versioned>>;
  const Caller caller = CallerOf(instance.index());
  bool lost = false;
  const absl::Status refusal = Refusal(caller.index, lost);
  if (!refusal.ok() && Half()) return done(refusal);
  const auto call = std::make_shared<Call<Answer>>(Call<Answer>{.done = std::move(done)});
  Finish<Answer>(caller, deadline - BootTime{0}, call,
                 [](Instance&) { return absl::DeadlineExceededError("no answer"); });
  if (!refusal.ok())
    return Finish<Answer>(caller, now_ + Delay(), call, [refusal](Instance&) { return refusal; });
  if (lost) return;
  Schedule(now_ + Delay(), [this, caller, key, call] {
    const Value& value = values_[key];
    const size_t state =
        mutant_ == Mutant::kStaleReads ? value.StateAt(now_ - kStale) : value.latest();
    if (Chance(plan_.faults.lost_answer)) return;
    Finish<Answer>(caller, now_ + Delay(), call, [this, key, state](Instance& asker) -> Answer {
      asker.OnState(key, state);
      const Change& found = values_[key].states()[state];
      if (!found.bytes) return std::nullopt;
      return Versioned{.bytes = *found.bytes, .version = found.version};
    });
  });
}

void World::Put(Instance& instance, size_t key, uint64_t number, const PutRequest& request,
                Connection::PutDone done) {
  using Answer = absl::StatusOr<Version>;
  const Caller caller = CallerOf(instance.index());
  const auto expected = request.expected;
  bool lost = false;
  const absl::Status refusal = Refusal(caller.index, lost);
  if (!refusal.ok() && Half()) return done(refusal);
  const auto call = std::make_shared<Call<Answer>>(Call<Answer>{.done = std::move(done)});
  const auto unknown = [this, expected](absl::Status status) {
    return [this, expected, status](Instance&) -> Answer {
      if (mutant_ == Mutant::kLostAnswerCalledLost) return absl::AbortedError("lost");
      if (mutant_ == Mutant::kLostAnswerCalledDone)
        return Version{expected ? expected->number + 1 : uint64_t{1} << 32};
      return status;
    };
  };
  Finish<Answer>(caller, request.deadline - BootTime{0}, call,
                 unknown(absl::DeadlineExceededError("no answer")));
  const absl::Status told =
      refusal.ok() && Chance(plan_.faults.lost_race) ? absl::AbortedError("lost race") : refusal;
  if (!told.ok())
    return Finish<Answer>(caller, now_ + Delay(), call, [told](Instance&) { return told; });
  const std::optional<std::string> bytes(*request.bytes);
  const bool broken = Chance(plan_.faults.broken);
  const auto arrive = [this, caller, key, number, bytes, expected](const auto& answered) {
    return [this, caller, key, number, bytes, expected, answered] {
      Arrive(caller, key, number, bytes, expected, answered);
    };
  };
  const auto nobody = std::make_shared<Call<Answer>>(Call<Answer>{.done = {}, .finished = true});
  if (broken && mutant_ == Mutant::kSentAgainSilently) {
    Schedule(now_ + plan_.delay_max + Delay(), arrive(call));
  } else if (broken) {
    Finish<Answer>(caller, now_ + Delay(), call, unknown(absl::UnknownError("it broke")));
  }
  if (lost || (broken && Half())) return;
  const Duration at = now_ + Delay();
  Schedule(at, arrive(broken ? nobody : call));
  if (Chance(plan_.faults.doubled)) Schedule(at + Delay(), arrive(nobody));
}

// A write arrives at the service.
void World::Arrive(const Caller& caller, size_t key, uint64_t number,
                   const std::optional<std::string>& bytes, std::optional<Version> expected,
                   const std::shared_ptr<Call<absl::StatusOr<Version>>>& call) {
  using Answer = absl::StatusOr<Version>;
  Value& value = values_[key];
  const bool removed = value.latest() > 0 && !value.states().back().bytes;
  const Answer answer = value.Put(number, bytes, expected, now_);
  if (answer.ok()) {
    Mark("a value was made again after its removal", removed);
    Mark("the write of an instance that had died was applied",
         machines_[caller.index].instance == nullptr ||
             machines_[caller.index].incarnation != caller.incarnation);
  }
  if (call->finished || Chance(plan_.faults.lost_answer)) return;
  const size_t state = value.latest();
  Finish<Answer>(caller, now_ + Delay(), call, [key, state, answer](Instance& writer) {
    if (answer.ok()) writer.OnState(key, state);
    return answer;
  });
}

// ---- Faults

void World::ScheduleFaults() {
  const auto times = [&](uint32_t count, const std::function<void(uint32_t)>& happen) {
    for (uint32_t i = 0; i < count; ++i) {
      const auto index = static_cast<uint32_t>(random_.Below(plan_.instances));
      // Near the ends of a rest, most of which is dull.
      const Duration length = plan_.calm_from - (plan_.rest_until - plan_.rest_from) - 800ms;
      Duration at = Below(length);
      if (at >= plan_.rest_from) at += plan_.rest_until - plan_.rest_from;
      Schedule(at, [happen, index] { happen(index); });
    }
  };
  times(plan_.crashes, [this](uint32_t index) { Crash(index); });
  times(plan_.pauses, [this](uint32_t index) {
    machines_[index].paused_until = now_ + Below(Half() ? plan_.timeout : Duration(700ms));
  });
  times(plan_.cuts, [this](uint32_t index) { machines_[index].cut_until = now_ + Below(700ms); });
  times(plan_.steps, [this](uint32_t index) {
    if (machines_[index].instance == nullptr) return;
    machines_[index].instance->StepWall(Half() ? Below(1h) : -Below(1h));
    Mark("a wall clock was set");
  });
}

void World::NextDiscipline(uint32_t index) {
  if (now_ + 1s >= plan_.end) return;
  Schedule(now_ + 1s, [this, index] {
    if (machines_[index].instance != nullptr) machines_[index].instance->Discipline();
    NextDiscipline(index);
  });
}

// Removes the value if nobody needs it, as an adapter does.
void World::Sweep(size_t key) {
  const Change& found = values_[key].states().back();
  if (found.bytes) {
    const auto envelope = store::cas::ParseEnvelope(*found.bytes);
    const base::Instant wall = base::Instant::FromNanos((clock_.WallNow() + Below(plan_.skew)).ns);
    bool may = envelope && store::cas::MayRemove(*envelope, wall);
    if (mutant_ == Mutant::kRemovedEarly) may = wall >= envelope->expires_at;
    if (mutant_ == Mutant::kRemovedWhileUsed) may = random_.Below(10) == 0;
    if (may) {
      const uint64_t number = puts_.size();
      puts_.push_back({.key = key, .at = wall, .decided = now_});
      Schedule(now_ + Delay(), [this, key, number, version = found.version] {
        Mark("a value was removed", values_[key].Put(number, std::nullopt, version, now_).ok());
      });
    }
  }
  if (now_ < plan_.end) Schedule(now_ + 50ms + Below(500ms), [this, key] { Sweep(key); });
}

void World::CountBranches(const Instance& instance) {
  const store::cas::CasCounters& counters = instance.counters();
  Mark("a write lost against another instance", counters.conflicts.value());
  Mark("a write whose answer was lost had been applied", counters.ambiguous_applied.value());
  Mark("a write whose answer was lost was sent again", counters.ambiguous_repeated.value());
  Mark("the fate of a write stayed unknown", counters.ambiguous_forgotten.value());
  Mark("a request gave up after too many attempts", counters.exhausted.value());
  Mark("a request gave up because its time was over", counters.timed_out.value());
  Mark("requests travelled together", counters.combined.value());
  Mark("the service asked to slow down", counters.throttled.value());
  Mark("a writer used a remembered value", counters.writes.value() > counters.reads.value());
}

Outcome World::Check() {
  Outcome outcome;
  outcome.operations = operations_.size();
  const Evidence evidence{plan_, values_, operations_, puts_, told_};
  for (const Operation& operation : operations_) {
    const bool done = operation.returned.has_value();
    outcome.digest = (outcome.digest ^ static_cast<uint64_t>(operation.code) << 32 ^
                      operation.decision.remaining ^
                      static_cast<uint64_t>(done ? operation.returned->count() : 0)) *
                     0x100000001b3u;
    outcome.failed += operation.code != absl::StatusCode::kOk;
    if (WasCounted(evidence, operation) && operation.code != absl::StatusCode::kOk)
      Mark("a request that failed had been counted");
  }
  for (const Told& told : told_) {
    outcome.admitted += told.settled.decision.allowed;
    Mark("a request was answered from a lease", told.settled.mode == limiter::Mode::kLeased);
  }
  outcome.failure = FirstContradiction(evidence);
  return outcome;
}

}  // namespace headgate::strict_simulation

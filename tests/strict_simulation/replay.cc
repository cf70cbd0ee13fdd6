#include "tests/strict_simulation/replay.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "headgate/store/cas/envelope.h"
#include "tests/model/reference_model.h"
#include "tests/simulation/bound.h"

namespace headgate::strict_simulation {

using algorithm::Decision;
using base::Duration;
using base::Instant;
using namespace std::chrono_literals;

namespace {

// A wall clock that is set moves the time of decisions by at most 500 ppm of the run.
constexpr Duration kSlewMax = 12ms;

bool MayHaveBeenDone(const Operation& operation) {
  return operation.code == absl::StatusCode::kDeadlineExceeded ||
         operation.code == absl::StatusCode::kAborted || !operation.returned;
}

std::string Text(const Decision& d) {
  return fmt::format("{}, {} left, retry {}ns, reset {}ns, wait {}ns",
                     d.allowed ? "allowed" : "denied", d.remaining, d.retry_after.count(),
                     d.reset_after.count(), d.wait.count());
}

std::string Text(const Operation& operation) {
  constexpr std::array<std::string_view, 4> kNames{"take", "peek", "refund", "reset"};
  return fmt::format("k{} {} {} at {}ms", operation.key,
                     kNames[static_cast<size_t>(operation.operation)], operation.cost,
                     static_cast<double>(operation.called.count()) / 1e6);
}

// One bucket by the reference model. A fresh bucket has no latest time.
class Model {
 public:
  explicit Model(const algorithm::LimitSpec& spec) : spec_(spec), bucket_(spec) {}

  Decision Do(const Operation& operation, Instant at) {
    if (operation.operation == store::Operation::kPeek) return Peek(operation, at);
    seen_ = std::max(seen_, at.ns);
    const Decision decision = Do(operation, at, bucket_);
    if (IsFresh(at)) Forget();
    return decision;
  }
  // The answer that the request would get; the bucket stays as it is.
  Decision Peek(const Operation& operation, Instant at) const {
    model::ReferenceBucket copy = bucket_;
    return Do(operation, at, copy);
  }
  bool LeavesAsItIs(const Operation& operation, Instant at) const {
    if (operation.operation == store::Operation::kPeek) return true;
    model::ReferenceBucket before = bucket_;
    model::ReferenceBucket after = bucket_;
    Do(operation, at, after);
    return before.Decide(0, at.ns) == after.Decide(0, at.ns);
  }
  bool IsFresh(Instant at) const { return bucket_.AsIfNeverUsed(std::max(seen_, at.ns)); }
  void Forget() {
    bucket_ = model::ReferenceBucket(spec_);
    seen_ = 0;
  }

 private:
  Decision Do(const Operation& operation, Instant at, model::ReferenceBucket& bucket) const {
    switch (operation.operation) {
      case store::Operation::kRefund:
        return bucket.Refund(operation.cost, at.ns);
      case store::Operation::kReset:
        bucket = model::ReferenceBucket(spec_);
        return bucket.Decide(0, at.ns);
      default:
        return bucket.Decide(operation.cost, at.ns);
    }
  }

  algorithm::LimitSpec spec_;
  model::ReferenceBucket bucket_;
  int64_t seen_ = 0;
};

class KeyReplay {
 public:
  KeyReplay(const Evidence& evidence, size_t key)
      : evidence_(evidence),
        key_(key),
        states_(evidence.values[key].states()),
        model_(evidence.plan.keys[key].spec),
        reads_(states_.size()) {}

  std::string Run() {
    for (const Operation& operation : evidence_.operations) {
      if (operation.key != key_) continue;
      if (std::string wrong = Account(operation); !wrong.empty()) return wrong;
    }
    for (size_t state = 0; state < states_.size(); ++state) {
      if (state > 0) {
        if (std::string wrong = Write(state); !wrong.empty()) return wrong;
      }
      for (const Operation* read : reads_[state]) {
        if (!model_.LeavesAsItIs(*read, read->read_at))
          return Text(*read) + " changed the bucket without a write";
        if (std::string wrong = Compare(*read, model_.Peek(*read, read->read_at)); !wrong.empty())
          return wrong + ", from a read";
      }
    }
    return "";
  }

 private:
  std::vector<size_t> StatesOf(const Operation& operation) const {
    std::vector<size_t> states;
    for (size_t state = 1; state < states_.size(); ++state) {
      if (std::count(operation.puts.begin(), operation.puts.end(), states_[state].put) > 0)
        states.push_back(state);
    }
    return states;
  }

  std::string Account(const Operation& operation) {
    const std::vector<size_t> states =
        operation.puts.empty() ? std::vector<size_t>{} : StatesOf(operation);
    if (states.size() > 1) return Text(operation) + " was counted twice";
    if (operation.code != absl::StatusCode::kOk) {
      if (states.empty() || MayHaveBeenDone(operation)) return "";
      return fmt::format("{} was counted, though it failed with {}", Text(operation),
                         absl::StatusCodeToString(operation.code));
    }
    if (!states.empty()) {
      if (evidence_.puts[states_[states[0]].put].decided >= operation.called) return "";
      return Text(operation) + " was decided before it was called";
    }
    if (operation.read + 1 < states_.size() && states_[operation.read + 1].at < operation.called)
      return Text(operation) + " was answered from a state that was replaced before its call";
    reads_[operation.read].push_back(&operation);
    return "";
  }

  std::string Write(size_t state) {
    const Put& put = evidence_.puts[states_[state].put];
    if (!states_[state].bytes) {
      if (!model_.IsFresh(put.at)) return fmt::format("k{} was removed while in use", key_);
      model_.Forget();
      return "";
    }
    for (const size_t number : put.members) {
      const Operation& operation = evidence_.operations[number];
      const Decision decision = model_.Do(operation, put.at);
      if (operation.code != absl::StatusCode::kOk) continue;
      if (std::string wrong = Compare(operation, decision); !wrong.empty()) return wrong;
    }
    const auto envelope = store::cas::ParseEnvelope(*states_[state].bytes);
    if (!envelope) return fmt::format("k{} cannot be read", key_);
    if (envelope->bucket.empty() && !model_.IsFresh(put.at))
      return fmt::format("k{} was emptied while in use", key_);
    return "";
  }

  static std::string Compare(const Operation& operation, const Decision& expected) {
    if (operation.decision == expected) return "";
    return fmt::format("{} was {}; one bucket answers {}", Text(operation),
                       Text(operation.decision), Text(expected));
  }

  const Evidence& evidence_;
  const size_t key_;
  const std::vector<Change>& states_;
  Model model_;
  std::vector<std::vector<const Operation*>> reads_;  // by state
};

// The admissions of a key in true time.
std::string CheckBound(const Evidence& evidence, size_t key) {
  const KeyPlan& plan = evidence.plan.keys[key];
  const algorithm::Limit limit = *algorithm::Limit::Make(plan.spec);
  if (!IsTokenBucket(limit.algorithm()) || plan.refund_percent + plan.reset_percent > 0) return "";
  std::vector<std::pair<Duration, uint64_t>> admitted;
  for (const Told& told : evidence.told) {
    if (told.key != key || !told.settled.decision.allowed) continue;
    Duration at = told.told;
    for (const size_t number : told.operations) {
      const Operation& operation = evidence.operations[number];
      if (operation.code != absl::StatusCode::kOk || !operation.decision.allowed) continue;
      for (const uint64_t put : operation.puts) at = evidence.puts[put].decided;
    }
    admitted.emplace_back(at, told.cost);
  }
  std::sort(admitted.begin(), admitted.end());
  algorithm::LimitSpec spec = plan.spec;
  const Duration apart = evidence.plan.skew + kSlewMax;
  spec.burst =
      limit.capacity() + 1 +
      spec.requests * static_cast<uint64_t>(apart / 1us) / static_cast<uint64_t>(spec.period / 1us);
  simulation::Bound bound(*algorithm::Limit::Make(spec));
  for (const auto& [at, cost] : admitted) {
    if (!bound.Admit(cost, at, Instant{at.count()}))
      return fmt::format("k{}: more than the bound at {}ms", key,
                         static_cast<double>(at.count()) / 1e6);
  }
  return "";
}

std::string CheckTold(const Evidence& evidence, const Told& told) {
  const KeyPlan& key = evidence.plan.keys[told.key];
  const bool by_store =
      std::any_of(told.operations.begin(), told.operations.end(), [&](size_t number) {
        const Operation& operation = evidence.operations[number];
        return operation.code == absl::StatusCode::kOk && operation.decision.allowed;
      });
  if (told.settled.decision.allowed && IsDegraded(told.settled.mode))
    return fmt::format("k{}: allowed without the store", told.key);
  if (told.settled.decision.allowed && !by_store && !key.leased)
    return fmt::format("k{}: allowed, but not by the store", told.key);
  return "";
}

std::string CheckProgress(const Evidence& evidence) {
  uint64_t asked = 0, refused = 0;
  for (const Told& told : evidence.told) {
    if (told.called < evidence.plan.well_from) continue;
    ++asked;
    refused += IsDegraded(told.settled.mode);
  }
  // In a crowd, the time of some is over, because others are faster each time.
  const uint64_t percent = evidence.plan.instances > 4 ? 20 : 0;
  if (refused * 100 > asked * percent)
    return fmt::format("without faults, {} of {} requests were refused", refused, asked);
  return "";
}

}  // namespace

bool WasCounted(const Evidence& evidence, const Operation& operation) {
  const std::vector<Change>& states = evidence.values[operation.key].states();
  return std::any_of(states.begin() + 1, states.end(), [&](const Change& state) {
    return std::count(operation.puts.begin(), operation.puts.end(), state.put) > 0;
  });
}

std::string FirstContradiction(const Evidence& evidence) {
  for (const Told& told : evidence.told) {
    if (std::string wrong = CheckTold(evidence, told); !wrong.empty()) return wrong;
  }
  for (size_t key = 0; key < evidence.plan.keys.size(); ++key) {
    std::string wrong = CheckBound(evidence, key);
    if (wrong.empty() && !evidence.plan.keys[key].leased) wrong = KeyReplay(evidence, key).Run();
    if (!wrong.empty()) return wrong;
  }
  return CheckProgress(evidence);
}

}  // namespace headgate::strict_simulation

// A shared store without a network: a memory store that answers, or fails, when the test tells it
// to. For tests of the users of a SharedStore. Not thread-safe.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "headgate/algorithm/lease.h"
#include "headgate/base/check.h"
#include "headgate/permit/permit_set.h"
#include "headgate/store/memory.h"
#include "headgate/store/shared_store.h"

namespace headgate::testing {

class ManualSharedStore final : public store::SharedStore {
 public:
  struct Asked {
    std::string name;
    store::LimitHandle limit;
    algorithm::Cost cost = 0;
    store::Operation operation = store::Operation::kPeek;
    base::Instant taken_at{0};
    bool keeps_limit = false;
    bool locked = false;
    std::span<const store::LimitChange> history{};
    base::Instant now{0};
    std::optional<store::LeaseAsk> lease{};  // without its reports
    std::vector<store::LeaseReport> reports{};
    Done done{};
    std::function<void()>
        answer{};  // set for a counter or permits; of the other fields, only the name is set then
  };

  // Decides in `memory`, at the time in `now`.
  ManualSharedStore(store::Store& memory, const base::Instant& now) : memory_(memory), now_(now) {}

  // If not OK, the answer instead of a decision.
  absl::Status failure;
  // Whether to answer within the call, as a store that is known to be unreachable does.
  bool at_once = false;
  // Whether the next answer comes too late, although the store carries out the request.
  bool answer_is_late = false;
  uint32_t instance_count = 1;

  void Ask(const store::SharedRequest& request, Done done) override {
    Asked asked{.name = std::string(request.name),
                .limit = request.limit,
                .cost = request.cost,
                .operation = request.operation,
                .taken_at = request.taken_at,
                .keeps_limit = request.keeps_limit,
                .locked = request.locked,
                .history = request.history,
                .now = request.now,
                .lease = request.lease,
                .done = std::move(done)};
    names_.push_back(asked.name);
    if (asked.lease) {
      asked.reports.assign(asked.lease->reports.begin(), asked.lease->reports.end());
      asked.lease->reports = {};
    }
    if (at_once) return Answer(asked);
    asked_.push_back(std::move(asked));
  }
  void Increment(const store::SharedCount& request, CountDone done) override {
    const std::string name(request.name);
    names_.push_back(name);
    auto answer = [this, name, change = request.change, done = std::move(done)] {
      if (!failure.ok()) return done(failure);
      done(memory_.Increment(HashOf(name), change, now_));
    };
    if (at_once) return answer();
    asked_.push_back({.name = name, .limit = {}, .answer = std::move(answer)});
  }
  void AskPermits(const store::SharedPermits& request, PermitsDone done) override {
    const std::string name(request.name);
    names_.push_back(name);
    auto answer = [this, name, ask = request.ask, done = std::move(done)] {
      if (!failure.ok()) return done(failure);
      const permit::Answer found = permits_[name].Do(ask, now_);
      if (std::exchange(answer_is_late, false)) return done(absl::DeadlineExceededError("late"));
      done(found);
    };
    if (at_once) return answer();
    asked_.push_back({.name = name, .limit = {}, .answer = std::move(answer)});
  }
  // The permits of a name that have not ended.
  uint32_t PermitsIn(const std::string& name) { return permits_[name].CountAt(now_); }
  // Follows the time of decisions.
  base::BootTime Now() const override { return base::BootTime{now_.ns}; }
  uint32_t instances() const override { return instance_count; }
  store::LimitTable& limits() override { return memory_.limits(); }

  // The remaining requests of a bucket, without leases.
  uint64_t Remaining(const std::string& name, const store::LimitHandle& limit) {
    return Decide({.name = name, .limit = limit}, store::Operation::kPeek, 0).remaining;
  }

  size_t waiting() const { return asked_.size(); }
  // The request that will be answered next.
  const Asked& oldest() const { return asked_.front(); }
  // Every requested name, in order.
  const std::vector<std::string>& names() const { return names_; }

  // Answers the oldest request.
  void AnswerOne() {
    Asked asked = std::move(asked_.front());
    asked_.pop_front();
    Answer(asked);
  }
  // Answers a request that overtakes those before it.
  void AnswerAt(size_t index) {
    const auto at = asked_.begin() + static_cast<ptrdiff_t>(index);
    Asked asked = std::move(*at);
    asked_.erase(at);
    Answer(asked);
  }
  // Answers until no request waits, including new requests that the answers cause.
  void AnswerAll() {
    while (!asked_.empty()) AnswerOne();
  }

 private:
  using Lease = algorithm::Lease;

  base::Hash128 HashOf(std::string_view name) const {
    return base::HashBytes(memory_.hash_secret(), base::KeyKind::kRaw, name);
  }

  void Answer(Asked& asked) {
    if (asked.answer) return asked.answer();
    store::SharedAnswer answer;
    answer.status = failure;
    if (failure.ok() && asked.lease) {
      AskLease(asked, answer);
    } else if (failure.ok()) {
      answer.decision = Decide(asked, asked.operation, asked.cost);
    }
    if (failure.ok() && std::exchange(answer_is_late, false))
      answer.status = absl::DeadlineExceededError("late");
    asked.done(answer);
  }

  // As algorithm::AskLease, on a bucket that the memory store holds: leases never end by
  // themselves, and the bucket also refills requests that are out on lease.
  void AskLease(const Asked& asked, store::SharedAnswer& answer) {
    const store::LeaseAsk& ask = *asked.lease;
    std::vector<Lease>& leases = leases_[asked.name];
    for (const store::LeaseReport& report : asked.reports) TakeIn(asked, report, leases);
    answer.decision =
        Decide(asked, ask.cost > 0 ? store::Operation::kTake : store::Operation::kPeek, ask.cost);
    uint64_t mine = 0;
    for (const Lease& lease : leases) {
      (lease.id.node == ask.id.node ? mine : answer.grant.others) += lease.outstanding();
    }
    const uint64_t left = answer.decision.remaining;
    const bool few = left + mine < algorithm::kFewLeft && ask.parts > 1;
    if (answer.decision.allowed && ask.want > 0 && !few &&
        algorithm::CanLease(asked.limit->limit)) {
      const uint64_t holds = std::max(std::min(ask.want, (left + mine) / algorithm::kSmallShare),
                                      std::min(ask.brief, (left + mine) / std::max(1u, ask.parts)));
      answer.grant.granted = std::min(left, holds - std::min(holds, mine));
      answer.grant.ttl = ask.ttl;
    }
    if (answer.grant.granted > 0) {
      Decide(asked, store::Operation::kTake, answer.grant.granted);
      leases.push_back({.id = ask.id, .granted = static_cast<uint32_t>(answer.grant.granted)});
    }
    answer.grant.next_after =
        Decide(asked, store::Operation::kPeek, std::max<algorithm::Cost>(1, ask.cost)).retry_after;
    const algorithm::Decision after = Decide(asked, store::Operation::kPeek, 0);
    answer.decision.remaining = after.remaining;
    answer.decision.reset_after = after.reset_after;
  }

  void TakeIn(const Asked& asked, const store::LeaseReport& report, std::vector<Lease>& leases) {
    const store::LeaseId id{.node = asked.lease->id.node, .number = report.number};
    const auto lease = std::find_if(leases.begin(), leases.end(),
                                    [&](const Lease& held) { return held.id == id; });
    if (lease == leases.end()) return;
    lease->reported =
        std::clamp(static_cast<uint32_t>(report.spent), lease->reported, lease->granted);
    if (!report.returned) return;
    Decide(asked, store::Operation::kRefund, lease->outstanding());
    leases.erase(lease);
  }

  algorithm::Decision Decide(const Asked& asked, store::Operation operation, algorithm::Cost cost) {
    const store::TakeRequest request{.key = HashOf(asked.name),
                                     .limit = asked.limit.get(),
                                     .history = asked.history,
                                     .cost = cost,
                                     .operation = operation,
                                     .taken_at = asked.taken_at};
    algorithm::Decision decision;
    memory_.Take({&request, 1}, {&decision, 1}, now_);
    return decision;
  }

  store::Store& memory_;
  const base::Instant& now_;
  std::deque<Asked> asked_;
  std::vector<std::string> names_;
  std::map<std::string, std::vector<Lease>> leases_;  // by bucket
  std::map<std::string, permit::PermitSet> permits_;
};

}  // namespace headgate::testing

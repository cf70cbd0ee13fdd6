// A shared store without a network: a memory store that answers, or fails, when the test tells it
// to. For tests of the users of a SharedStore. Not thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

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
    bool keeps_limit = false;
    bool locked = false;
    std::span<const store::LimitChange> history{};
    base::Instant now{0};
    std::optional<store::LeaseAsk> lease{};  // without its reports, which have been applied already
    Done done{};
    std::function<void()> answer{};  // of a counter or permits; all else is empty but the name
  };

  // Decides in `memory`, at the time in `now`.
  ManualSharedStore(store::Store& memory, const base::Instant& now) : memory_(memory), now_(now) {}

  // If not OK, the answer instead of a decision.
  absl::Status failure;
  // Whether to answer within the call, as a store that is known to be unreachable does.
  bool at_once = false;
  // Whether the next answer about permits comes too late: the store does what it was asked for.
  bool answer_is_late = false;
  uint32_t instance_count = 1;

  void Ask(const store::SharedRequest& request, Done done) override {
    Asked asked{.name = std::string(request.name),
                .limit = request.limit,
                .cost = request.cost,
                .operation = request.operation,
                .keeps_limit = request.keeps_limit,
                .locked = request.locked,
                .history = request.history,
                .now = request.now,
                .lease = request.lease,
                .done = std::move(done)};
    names_.push_back(asked.name);
    if (request.lease) {
      for (const store::LeaseReport& report : request.lease->reports) TakeIn(asked, report);
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
  base::Hash128 HashOf(std::string_view name) const {
    return base::HashBytes(memory_.hash_secret(), base::KeyKind::kRaw, name);
  }

  void Answer(Asked& asked) {
    if (asked.answer) return asked.answer();
    store::SharedAnswer answer;
    answer.status = failure;
    if (failure.ok() && asked.lease) {
      answer.grant = Grant(asked);
    } else if (failure.ok()) {
      answer.decision = Decide(asked, asked.operation, asked.cost);
    }
    asked.done(answer);
  }

  // Takes a grant from the bucket, and refunds what is returned. Leases never expire.
  store::LeaseGrant Grant(const Asked& asked) {
    store::LeaseGrant grant{.holders = 1, .ttl = asked.lease->ttl};
    const uint64_t left = Decide(asked, store::Operation::kPeek, 0).remaining;
    if (asked.lease->want > 0 && left >= asked.lease->least) {
      grant.granted = std::min(
          {asked.lease->want, left, std::max({asked.lease->least, asked.lease->share, left / 2})});
      grants_[asked.lease->id.number] = grant.granted;
    }
    const bool refused = asked.lease->want > 0 && grant.granted == 0;
    const algorithm::Decision decision =
        Decide(asked, store::Operation::kTake, refused ? asked.lease->least : grant.granted);
    grant.remaining = decision.remaining;
    grant.retry_after = decision.retry_after;
    return grant;
  }

  void TakeIn(const Asked& asked, const store::LeaseReport& report) {
    if (!report.returned) return;
    const auto granted = grants_.find(report.number);
    if (granted == grants_.end()) return;
    Decide(asked, store::Operation::kRefund, granted->second - report.spent);
    grants_.erase(granted);
  }

  algorithm::Decision Decide(const Asked& asked, store::Operation operation, algorithm::Cost cost) {
    const store::TakeRequest request{.key = HashOf(asked.name),
                                     .limit = asked.limit.get(),
                                     .history = asked.history,
                                     .cost = cost,
                                     .operation = operation};
    algorithm::Decision decision;
    memory_.Take({&request, 1}, {&decision, 1}, now_);
    return decision;
  }

  store::Store& memory_;
  const base::Instant& now_;
  std::deque<Asked> asked_;
  std::vector<std::string> names_;
  std::map<uint64_t, uint64_t> grants_;  // by lease number
  std::map<std::string, permit::PermitSet> permits_;
};

}  // namespace headgate::testing

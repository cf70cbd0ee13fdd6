// The one question every front asks: may this request pass now?
//
//   descriptors ──match──> rules ──> a batch of requests ──> Decider ──> decisions
//                                                              one answer, observed <──┘
//
// A checker is one thread's way to ask. It keeps the rules it last saw and its scratch memory, so
// that a decision takes no lock but the bucket's and allocates nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "headgate/algorithm/decision.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/limiter/bucket_name.h"
#include "headgate/limiter/decider.h"
#include "headgate/limiter/limiter.h"
#include "headgate/limiter/memory_decider.h"
#include "headgate/limiter/mode.h"
#include "headgate/limiter/observer.h"
#include "headgate/limiter/pending.h"
#include "headgate/limiter/settled.h"
#include "headgate/rule/descriptor.h"
#include "headgate/rule/rule_set.h"
#include "headgate/store/store.h"

namespace headgate::limiter {

using store::Operation;

struct Request {
  std::string_view domain;
  std::span<const rule::Descriptor> descriptors;
  // kPeek: what kTake would answer, consuming nothing; a descriptor that names no cost is looked at
  // with cost 0. kRefund: gives the costs back, at most what is consumed; answers what is there
  // afterwards. kReset: makes the buckets as if never used.
  Operation operation = Operation::kTake;
};

// The answer for one descriptor.
struct DescriptorAnswer {
  const rule::Rule* rule =
      nullptr;  // null: none matched (or another rule replaced it); the descriptor passes
  Outcome outcome = Outcome::kNoRule;
  algorithm::Decision decision;  // of the rule's tightest limit; meaningless without one
  // The limit that `decision` is of; null without one. An override's is here too.
  const algorithm::Limit* limit = nullptr;
  // Among the limits that were asked, the one that can promise least.
  Mode mode = Mode::kMemory;

  // May it pass? Shadow rules let through what they deny.
  bool allowed() const {
    return outcome != Outcome::kDenied && outcome != Outcome::kNeverFits &&
           outcome != Outcome::kUnavailable;
  }
  bool has_decision() const { return limit != nullptr; }
};

// Reused from call to call, so that its memory is. Valid until the next call with it, and no longer
// than its Checker.
struct Response {
  bool allowed = true;
  // Not decided yet: ask again, the same, when the Pending says so. Nothing else here means
  // anything then.
  bool waiting = false;
  std::vector<DescriptorAnswer> descriptors;  // as many as the request's, in their order
};

// Whether a rule applied to at least one descriptor.
inline bool AnyRule(const Response& response) {
  return std::any_of(response.descriptors.begin(), response.descriptors.end(),
                     [](const DescriptorAnswer& outcome) { return outcome.rule != nullptr; });
}

// How a decision counts if nothing but its limit speaks for or against it.
Outcome OutcomeOf(const Settled& settled);

// Not thread-safe.
class Checker {
 public:
  // Decides by the limiter's own store. `worker` numbers this thread for the observer.
  explicit Checker(Limiter& limiter, uint32_t worker = 0);
  // Decides by `decider`, this thread's. `naming`: how it knows buckets by name. All must outlive
  // the checker.
  Checker(Limiter& limiter, uint32_t worker, Decider& decider, const BucketNaming& naming);
  ~Checker();
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  // Whether questions need a Pending, and may have to wait.
  bool may_wait() const { return decider_.may_wait(); }

  // Decides all descriptors. Errors: InvalidArgument for an empty domain, no descriptors, or more
  // than the bounds of rule/descriptor.h; FailedPrecondition before the first rules, and for a
  // refund that a queue is among the limits of; nothing has changed then. Unavailable if the shared
  // store cannot be asked and a rule refuses then: a request to pass has consumed nothing, a refund
  // or reset was not done for at least one descriptor.
  absl::Status Check(const Request& request, Response& response, base::Instant now,
                     Pending* pending = nullptr);

  // The rules this checker decides by now; null before the first.
  const rule::RuleSet* rules();

  // ---- For requests that bring their own limits.
  Decider& decider() const { return decider_; }
  const BucketNaming& naming() const { return naming_; }
  store::Store& store() const { return limiter_.store_; }
  // Such decisions, `count` of one outcome, as the observer counts them.
  void ObserveOwnLimits(Outcome outcome, uint64_t count) const {
    if (limiter_.observer_ != nullptr) limiter_.observer_->OnOwnLimits(worker_, outcome, count);
  }

 private:
  struct Matched;
  struct Scratch;
  // The inputs of one call.
  struct Call {
    const Request& request;
    const PublishedRules& rules;
    Pending* pending;
    base::Instant now;
  };

  void TakeUpRules();
  absl::Status Decide(const Call& call, Response& response);
  void Match(const Call& call);
  absl::Status AddRequests(const Call& call, bool shadow);
  absl::Status AddRule(const Call& call, uint32_t descriptor, const Matched& matched);
  absl::Status AddOverride(const Call& call, uint32_t descriptor, Matched& matched);
  absl::StatusOr<store::LimitHandle> OverrideLimit(const rule::OverrideLimit& limit);
  bool DecidePart(const Call& call, size_t first, size_t count);
  absl::Status Conclude(const Call& call, Response& response);
  void Observe(const Call& call, size_t descriptor, Outcome outcome) const;

  Limiter& limiter_;
  const uint32_t worker_;
  MemoryDecider own_decider_;
  Decider& decider_;
  const BucketNaming naming_;
  uint64_t generation_ = 0;
  std::shared_ptr<const PublishedRules> rules_;
  std::shared_ptr<const PublishedRules> answered_by_;  // what the last response refers to
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace headgate::limiter

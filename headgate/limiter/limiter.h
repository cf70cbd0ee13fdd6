// The one question every front asks: may this request pass now?
//
// A Limiter is shared by all threads; each thread asks through a Checker of its own, which keeps the rules it last saw
// and its scratch memory, so that a decision takes no lock but the bucket's and allocates nothing. Starts no thread,
// opens no socket, reads no clock.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/algorithm/decision.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/limiter/bucket_name.h"
#include "headgate/limiter/fleet.h"
#include "headgate/limiter/mode.h"
#include "headgate/limiter/observer.h"
#include "headgate/limiter/pending.h"
#include "headgate/rule/descriptor.h"
#include "headgate/rule/rule_set.h"
#include "headgate/store/store.h"

namespace headgate::limiter {

struct Request {
  std::string_view domain;
  std::span<const rule::Descriptor> descriptors;
};

// The answer for one descriptor.
struct Outcomes {
  const rule::Rule* rule = nullptr;  // null: none matched (or another rule replaced it); the descriptor passes
  Outcome outcome = Outcome::kNoRule;
  algorithm::Decision decision;  // of the rule's tightest limit; meaningless without one
  // The limit that `decision` is of; null without one. An override's is here too.
  const algorithm::Limit* limit = nullptr;
  // Of the limits that were asked, the one that can promise least.
  Mode mode = Mode::kMemory;

  // May it pass? Shadow rules let through what they deny.
  bool allowed() const {
    return outcome != Outcome::kDenied && outcome != Outcome::kNeverFits && outcome != Outcome::kUnavailable;
  }
  bool has_decision() const { return limit != nullptr; }
};

// Reused from call to call, so that its memory is. Valid until the next call with it, and no longer than its Checker.
struct Response {
  bool allowed = true;
  // Not decided yet: ask again, the same, when the Pending says so. Nothing else here means anything then.
  bool waiting = false;
  std::vector<Outcomes> descriptors;  // as many as the request's, in their order
};

// Whether a rule applied to at least one descriptor.
inline bool AnyRule(const Response& response) {
  return std::any_of(response.descriptors.begin(), response.descriptors.end(),
                     [](const Outcomes& outcome) { return outcome.rule != nullptr; });
}

struct PublishedRules;

class Limiter {
 public:
  // `observer` may be null. Both must outlive the limiter.
  Limiter(store::Store& store, Observer* observer);
  ~Limiter();

  // Publishes a whole new set of rules; what is consumed under the old ones stays consumed. Checkers take it up with
  // their next call. ResourceExhausted where the store cannot hold that many different limits: the old rules stay.
  absl::Status OnRules(std::shared_ptr<const rule::RuleSet> rules, base::Instant now);

  // The rules last published; null before the first.
  std::shared_ptr<const rule::RuleSet> rules() const;

  store::Store& store() const { return store_; }

 private:
  friend class Checker;
  std::shared_ptr<const PublishedRules> published() const;

  store::Store& store_;
  Observer* const observer_;
  mutable std::mutex mutex_;
  std::shared_ptr<const PublishedRules> published_;
  std::atomic<uint64_t> generation_{0};  // counts publications
};

// One thread's way to ask. Not thread-safe.
class Checker {
 public:
  // `worker` numbers this thread for the observer.
  explicit Checker(Limiter& limiter, uint32_t worker = 0);
  // Decides by what `fleet`, this thread's, shares with other instances. Each question then needs a Pending.
  Checker(Limiter& limiter, uint32_t worker, Fleet& fleet, const BucketNaming& naming);
  ~Checker();

  // Whether questions need a Pending, and may have to wait.
  bool may_wait() const { return fleet_ != nullptr; }

  // Decides all descriptors and consumes their cost. Errors (nothing is consumed): InvalidArgument for an empty domain,
  // no descriptors, or more than the bounds of rule/descriptor.h; FailedPrecondition before the first rules; and
  // Unavailable where the shared store cannot be asked and a rule refuses then.
  absl::Status Check(const Request& request, Response& response, base::Instant now, Pending* pending = nullptr);

  // What Check would answer, consuming nothing. A descriptor that names no cost is looked at with cost 0.
  absl::Status Peek(const Request& request, Response& response, base::Instant now, Pending* pending = nullptr);

  // Gives the costs back, at most what is consumed; answers what is there afterwards. FailedPrecondition if a queue is
  // among the limits; Unavailable if the shared store cannot be asked: then at least one cost was not given back.
  absl::Status Refund(const Request& request, Response& response, base::Instant now, Pending* pending = nullptr);

  // Makes the buckets as if never used. Unavailable if the shared store cannot be asked: then at least one was not.
  absl::Status Reset(const Request& request, Response& response, base::Instant now, Pending* pending = nullptr);

  // The rules this checker decides by now; null before the first.
  const rule::RuleSet* rules();

 private:
  struct Scratch;
  absl::Status Ask(store::Operation operation, const Request& request, Response& response, base::Instant now,
                   Pending* pending);
  absl::Status Decide(store::Operation operation, const Request& request, Response& response, base::Instant now,
                      Pending* pending);
  bool Take(const Request& request, size_t first, size_t count, Pending* pending, base::Instant now);
  void TakeUpRules();
  absl::Status Match(const Request& request);
  absl::Status AddTakes(store::Operation operation, const Request& request, bool shadow);
  absl::StatusOr<store::LimitHandle> OverrideLimit(const rule::OverrideLimit& limit);
  absl::Status Conclude(store::Operation operation, const Request& request, Response& response);

  Limiter& limiter_;
  const uint32_t worker_;
  Fleet* const fleet_ = nullptr;
  const BucketNaming naming_;
  uint64_t generation_ = 0;
  std::shared_ptr<const PublishedRules> rules_;
  std::shared_ptr<const PublishedRules> answered_by_;  // what the last response refers to, where not to rules_
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace headgate::limiter

// Answers the question of every front: may this request pass now?
//
//   descriptors ──match──> rules ──> a batch of requests ──> Decider ──> decisions
//                                                              one answer, observed <──┘
//
// A checker serves one thread. It keeps the last rules that it saw and its scratch memory, so a
// decision takes no lock except the bucket's, and allocates nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
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
#include "headgate/limiter/permit_hold.h"
#include "headgate/limiter/settled.h"
#include "headgate/limiter/size_charge.h"
#include "headgate/rule/descriptor.h"
#include "headgate/rule/rule_set.h"
#include "headgate/store/store.h"

namespace headgate::limiter {

using store::Operation;

// Clients retry and hedge within seconds.
inline constexpr base::Duration kIdRemembered = std::chrono::minutes(10);

// Makes a repeated request count once, also if another instance of a fleet gets the repetition. The
// first request that passes is remembered; a later one with the same id passes and takes nothing. A
// request with an id takes from all of its descriptors, or from none.
//
// A refund with an id is executed at most once: the id is used up before anything is refunded.
struct Once {
  std::string_view id{};     // in its domain; empty: the request has none
  base::Duration window{0};  // how long it is remembered; at least 1 s if there is an id
};

struct Request {
  std::string_view domain;
  std::span<const rule::Descriptor> descriptors;
  // kPeek: the answer of kTake, without consuming; a descriptor without a cost is peeked at with
  // cost 0. kRefund: gives the costs back, at most what is consumed, and answers with the new rest.
  // kReset: makes the buckets as if never used. kCharge: takes the costs, whether or not they fit.
  // kUndo: gives the costs back, as `undone` says.
  Operation operation = Operation::kTake;
  // A take of which a part is undone.
  struct Undone {
    base::Instant taken_at{0};  // Response::taken_at of the take
    algorithm::Cost kept = 0;   // the part that stays taken
  };
  std::span<const Undone> undone{};  // of kUndo: one per descriptor, in order
  Once once{};                       // only for kTake and kRefund
  // The size of the request's body, if it is known: a cost by size takes it, and not the reserve.
  std::optional<uint64_t> request_bytes{};
  // For rules that limit concurrency. If set, a request to pass takes one permit for each of them,
  // whatever its cost, before it takes from any bucket, and the hold keeps the permits. If null,
  // such rules are only looked at: they deny if as many requests are in flight as may be.
  PermitHold* permits = nullptr;
  // Rules that limit concurrency are left out; for requests whose permits are held elsewhere, or
  // that settle what has already passed.
  bool skips_permits = false;
  // The answer says what was taken (Response::took), and an id remembers it for later requests.
  bool tells_takes = false;
  // Response::sized has all that was taken, so that it can be given back if the request is not
  // sent.
  bool may_stay_unsent = false;
};

// The answer for one descriptor.
struct DescriptorAnswer {
  const rule::Rule* rule =
      nullptr;  // null: none matched (or another rule replaced it); the descriptor passes
  Outcome outcome = Outcome::kNoRule;
  algorithm::Decision decision;  // of the rule's tightest limit; not meaningful without one
  // The limit of `decision`, possibly an override; null without one.
  const algorithm::Limit* limit = nullptr;
  // The weakest mode among the limits that were asked.
  Mode mode = Mode::kMemory;
  // Whether `decision` is about requests in flight; `limit` then states them per ttl.
  bool of_permits = false;
  // Otherwise, the place of `limit` among those of the rule, or of its roll-out.
  uint32_t limit_index = 0;

  // Whether it may pass. Rules in shadow allow what they deny.
  bool allowed() const {
    return outcome != Outcome::kDenied && outcome != Outcome::kBlocked &&
           outcome != Outcome::kNeverFits && outcome != Outcome::kUnavailable;
  }
  bool has_decision() const { return limit != nullptr; }
};

// Reuse it to reuse its memory. Valid until the next call with it, and at most as long as its
// Checker.
struct Response {
  bool allowed = true;
  // Not decided yet: call again with the same arguments when the Pending is ready. The other fields
  // have no meaning until then.
  bool waiting = false;
  // Set if the request passes only because of passthrough: otherwise it would be kDenied or
  // kUnavailable.
  std::optional<Outcome> passed_despite{};
  bool repeated = false;             // a request with this id has passed before
  base::Instant first_passed_at{0};  // if `repeated`: when it did
  // For a request with an id: whether it will be remembered. Not while the store is unreachable.
  bool remembered = false;
  // The fewest permits that a rule has left, if rules that limit concurrency were asked.
  struct Concurrency {
    uint32_t max = 0;
    uint32_t in_flight = 0;
    base::Duration ttl{0};  // of the permit; 0 if there is none
  };
  std::optional<Concurrency> concurrency{};
  std::vector<DescriptorAnswer> descriptors;  // one per descriptor of the request, in order
  // If the request tells takes: whether the descriptor's limits gave its cost, to this request or
  // to the first one with its id. False if that is not known.
  std::vector<bool> took{};  // one per descriptor of the request, in order
  // When it gave it, on the clock of the buckets' store, or a little earlier; 0 if that is not
  // known.
  std::vector<base::Instant> taken_at{};  // one per descriptor of the request, in order
  // The takes from limits with a cost by size, for a request to pass that may yet be denied by
  // others. The caller corrects them.
  std::vector<SizeTake> sized{};
};

// The charges of a request that was just decided, to be corrected when it has ended.
std::vector<SizeCharge> KeepCharges(const Request& request, const Response& response);

// Whether a rule applied to at least one descriptor.
inline bool AnyRule(const Response& response) {
  return std::any_of(response.descriptors.begin(), response.descriptors.end(),
                     [](const DescriptorAnswer& outcome) { return outcome.rule != nullptr; });
}

// The answer to a release. Reuse it to reuse its memory.
struct Released {
  bool waiting = false;  // as in Response
  struct OfDescriptor {
    const rule::Rule* rule = nullptr;  // null: no rule that limits concurrency applies
    bool was_held = false;
    uint32_t in_flight = 0;  // afterwards
    algorithm::Decision decision{};
  };
  std::vector<OfDescriptor> descriptors{};  // one per descriptor of the request, in order
};

// The decision as it is told in passthrough: the request may pass at once.
inline algorithm::Decision PassedThrough(algorithm::Decision decision) {
  decision.allowed = true;
  decision.retry_after = decision.wait = base::Duration(0);
  return decision;
}

struct PublishedLimit;

// The outcome that a decision counts as, judged by its limit alone.
Outcome OutcomeOf(const algorithm::Decision& decision, Mode mode);

// Not thread-safe.
class Checker {
 public:
  // Decides with the limiter's own store. `worker` numbers this thread for the observer.
  explicit Checker(Limiter& limiter, uint32_t worker = 0);
  // Decides with `decider`, which belongs to this thread. `naming`: how it names buckets. All must
  // outlive the checker.
  Checker(Limiter& limiter, uint32_t worker, Decider& decider, const BucketNaming& naming);
  ~Checker();
  Checker(const Checker&) = delete;
  Checker& operator=(const Checker&) = delete;

  // Whether calls need a Pending, and may have to wait.
  bool may_wait() const { return decider_.may_wait(); }

  // Decides all descriptors. Errors: InvalidArgument for an empty domain, no descriptors, or more
  // than the bounds of rule/descriptor.h; FailedPrecondition before the first rules, and for a
  // refund to a queue; nothing has changed in these cases. Unavailable if the shared store cannot
  // be asked and a rule refuses requests then: a request to pass has consumed nothing, a refund or
  // reset was not confirmed for at least one descriptor; the message says whether it may have been
  // done.
  absl::Status Check(const Request& request, Response& response, base::Instant now,
                     Pending* pending = nullptr);

  // Gives back the permits that a request with these descriptors and this id has acquired. Errors
  // as for Check.
  absl::Status Release(const Request& request, const permit::Id& id, Released& released,
                       base::Instant now, Pending* pending = nullptr);

  // Does a step of a charge (SizeCharge::StepTo) in the bucket of its limit, whatever other limits
  // say. Call it again with the same arguments if it waits.
  Corrected Correct(const SizeCharge& charge, const SizeStep& step, base::Instant now,
                    Pending* pending);

  // The rules that this checker uses now, and as they are in force; null before the first. Valid
  // until the next call that decides.
  const rule::RuleSet* rules();
  const PublishedRules* published();

  // Whether requests are answered as if all of them were allowed. Answers of this checker are; the
  // caller answers decisions of the decider so by PassedThrough.
  bool passthrough() const { return limiter_.passthrough(); }

  // ---- For requests that bring their own limits.
  Decider& decider() const { return decider_; }
  const BucketNaming& naming() const { return naming_; }
  store::Store& store() const { return limiter_.store_; }
  // Reports `count` such decisions with one outcome to the observer.
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
  absl::StatusOr<const PublishedRules*> BeginRound(const Request& request, Pending* pending);
  bool AskPermits(const Call& call, const permit::Id* released);
  bool MayRepeat(const Call& call) const;
  static void MarkHeld(PermitHold& hold, PermitEntry& entry);
  bool DecidePermits(const Call& call, std::span<PermitEntry> entries,
                     absl::FunctionRef<size_t(size_t)> place);
  bool AcquireFound(const Call& call, bool joined);
  bool BucketsAllow(const Call& call) const;
  bool IsQuota(size_t descriptor) const;
  bool Denies(size_t descriptor) const;
  bool DecideQuotas(const Call& call, size_t group, size_t enforced, bool& denied);
  bool PassesBy(const Call& call, absl::FunctionRef<bool(size_t)> allows) const;
  bool GiveBackCosts(const Call& call, absl::FunctionRef<bool(uint32_t)> of_descriptor);
  void AddPermits(const Call& call, uint32_t descriptor, const Matched& matched,
                  const permit::Id* released);
  void ObservePermits(const Call& call) const;
  void ConcludeSizes(const Call& call, Response& response) const;
  bool DoStep(const Call& call, const SizeCharge& charge, const SizeStep& step, Settled& settled);
  void SpareBuckets(const Call& call, bool joined);
  void ConcludePermits(const Call& call, Response& response) const;
  permit::Id NextPermitId();
  absl::Status Decide(const Call& call, Response& response);
  void Match(const Call& call);
  absl::Status AddOnce(const Call& call);
  void TellTakes(const Call& call, const BatchEntry* id, Response& response) const;
  void NoteTakes(const Call& call, const BatchEntry& id, const std::vector<bool>& took) const;
  void GiveBackId(const Call& call, const BatchEntry& id, uint64_t amount) const;
  static bool RefundsOnce(const Request& request) {
    return request.operation == Operation::kRefund && !request.once.id.empty();
  }
  static std::string Unasked(Operation operation, const rule::Rule* rule, bool perhaps_done,
                             NoAnswer why);
  bool PerhapsDone(uint32_t descriptor) const;
  NoAnswer WhyUnasked(uint32_t descriptor) const;
  absl::StatusOr<bool> UseUpRefundId(const Call& call, Response& response);
  void ReleaseRefundId(const Call& call) const;
  // The requests of a batch by the rules that they belong to.
  enum class Part : uint8_t {
    kEnforced,  // quotas and group
    kQuotas,    // in quota mode
    kGroup,     // neither in quota mode nor in shadow
    kShadow
  };
  absl::Status AddRequests(const Call& call, Part part);
  absl::Status AddRule(const Call& call, uint32_t descriptor, const Matched& matched);
  void AddShadowRollout(const Call& call, uint32_t descriptor, const Matched& matched);
  struct LimitOfRequest;  // the limit of this request: the one that it brings, or the rule's own
  // A limit of a rule for a descriptor: a bucket.
  struct BucketOf {
    uint32_t descriptor;
    uint32_t limit_index;  // in its rule; those of a roll-out in shadow follow
  };
  void AddLimit(const Call& call, BucketOf of, const PublishedLimit& published,
                const LimitOfRequest& chosen, bool follows);
  absl::Status AddOverride(const Call& call, uint32_t descriptor, Matched& matched);
  absl::StatusOr<store::LimitHandle> OverrideLimit(const rule::OverrideLimit& limit);
  LimitOfRequest LimitFor(const PublishedLimit& limit, std::string_view given);
  LimitOfRequest GivenLimitFor(const PublishedLimit& limit, std::string_view given);
  absl::StatusOr<store::LimitHandle> NumberLimit(const PublishedLimit& limit, uint32_t number);
  void ObserveGiven(const Call& call, size_t descriptor) const;
  absl::StatusOr<store::LimitHandle> OnceLimit(const algorithm::LimitSpec& spec);
  bool DecidePart(const Call& call, size_t first, size_t count);
  bool DecideBuckets(const Call& call, std::span<BatchEntry> entries,
                     absl::FunctionRef<size_t(size_t)> place);
  absl::Status Conclude(const Call& call, Response& response);
  void Observe(const Call& call, size_t descriptor, Outcome outcome) const;
  void ObserveRollouts(const Call& call, const Response& response) const;

  Limiter& limiter_;
  const uint32_t worker_;
  MemoryDecider own_decider_;
  Decider& decider_;
  const BucketNaming naming_;
  uint64_t generation_ = 0;
  std::shared_ptr<const PublishedRules> rules_;
  std::shared_ptr<const PublishedRules> answered_by_;  // the rules that the last response refers to
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace headgate::limiter

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
#include "headgate/limiter/permit_hold.h"
#include "headgate/limiter/question.h"
#include "headgate/limiter/request.h"
#include "headgate/limiter/settled.h"
#include "headgate/limiter/size_charge.h"
#include "headgate/rule/descriptor.h"
#include "headgate/rule/rule_set.h"
#include "headgate/store/store.h"

namespace headgate::limiter {

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
  // Not decided yet: continue the question when it is ready. The other fields have no meaning until
  // then.
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
enum class Awaits : uint8_t;
struct Matched;

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

  // Whether calls need a Question, and may have to wait.
  bool may_wait() const { return decider_.may_wait(); }

  // Decides all descriptors. Errors: InvalidArgument for an empty domain, no descriptors, or more
  // than the bounds of rule/descriptor.h; FailedPrecondition before the first rules, and for a
  // refund to a queue; nothing has changed in these cases. Unavailable if the shared store cannot
  // be asked and a rule refuses requests then: a request to pass has consumed nothing, a refund or
  // reset was not confirmed for at least one descriptor; the message says whether it may have been
  // done.
  //
  // If the answer comes later (Response::waiting), `question`, which is not open, takes over the
  // request; its hold stays the caller's and must live as long.
  absl::Status Check(const Request& request, Response& response, base::Instant now,
                     Question* question = nullptr);
  // The same for a question that is open. It still waits if it is not ready.
  absl::Status Continue(Question& question, Response& response, base::Instant now);

  // Gives back the permits that a request with these descriptors and this id has acquired. Errors
  // and waiting are as for Check.
  absl::Status Release(const Request& request, const permit::Id& id, Released& released,
                       base::Instant now, Question* question = nullptr);
  absl::Status ContinueRelease(Question& question, Released& released, base::Instant now);

  // Does a step of a charge (SizeCharge::StepTo) in the bucket of its limit, whatever other limits
  // say. Waiting is as for Check.
  Corrected Correct(const SizeCharge& charge, const SizeStep& step, base::Instant now,
                    Question* question);
  Corrected ContinueCorrect(Question& question, base::Instant now);

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
  struct Caches;
  // The inputs of one call.
  struct Call {
    const Request& request;
    const PublishedRules& rules;
    Question* question;  // null if the decider never waits
    base::Instant now;
  };
  static constexpr size_t kSpareMax = 64;

  void TakeUpRules();
  absl::StatusOr<const PublishedRules*> Begin(const Request& request, Question* question);
  bool Wait(const Call& call, Awaits awaited);
  Call TakeBack(Question& question, base::Instant now);
  static void End(const Call& call);
  static Pending* PendingOf(const Call& call) {
    return call.question == nullptr ? nullptr : &call.question->pending_;
  }
  absl::Status Answer(const Call& call, Response& response);

  // ---- The steps of a request. Each works on `work_`. False if the answers come later.
  absl::StatusOr<bool> Decide(const Call& call);
  void Match(const Call& call);
  static bool AsksPermits(const Call& call);
  bool AskPermits(const Call& call, const permit::Id* released);
  void ReadPermits(const Call& call);
  absl::Status AddBuckets(const Call& call);
  void ReadQuotas(const Call& call);
  absl::Status ReadRefundId(const Call& call);
  bool DecideMembers(const Call& call);
  void ReadId(const Call& call);
  bool GiveBackQuotas(const Call& call);
  void ReadReturns();
  bool DecideShadows(const Call& call);
  bool AcquireFound(const Call& call);
  bool GiveBackRefused(const Call& call);
  void ObservePermits(const Call& call) const;
  absl::Status Conclude(const Call& call, Response& response);

  bool MembersDeny() const;
  bool MayRepeat(const Call& call) const;
  static void MarkHeld(PermitHold& hold, PermitEntry& entry);
  bool DecidePermits(const Call& call, std::span<PermitEntry> entries,
                     absl::FunctionRef<size_t(size_t)> place);
  bool BucketsAllow(const Call& call) const;
  bool IsQuota(size_t descriptor) const;
  bool Denies(size_t descriptor) const;
  bool PassesBy(const Call& call, absl::FunctionRef<bool(size_t)> allows) const;
  bool GiveBackCosts(const Call& call, absl::FunctionRef<bool(uint32_t)> of_descriptor);
  void AddPermits(const Call& call, uint32_t descriptor, const Matched& matched,
                  const permit::Id* released);
  const rule::SizeCost* SizeOf(const Call& call, size_t index) const;
  void ConcludeSizes(const Call& call, Response& response) const;
  bool AddStep(const Call& call, const SizeCharge& charge, const SizeStep& step);
  void AnswerCorrection(const Call& call, Corrected& corrected);
  absl::Status AnswerRelease(const Call& call, Released& released);
  void SpareBuckets(const Call& call);
  void ConcludePermits(const Call& call, Response& response) const;
  permit::Id NextPermitId();
  absl::Status AddOnce(const Call& call);
  void TellTakes(const Call& call, const BatchEntry* id, Response& response) const;
  void NoteTakes(const Call& call, const BatchEntry& id, const std::vector<bool>& took) const;
  void GiveBackId(const Call& call, const BatchEntry& id, uint64_t amount) const;
  static bool TakesOnce(const Request& request) {
    return request.operation == Operation::kTake && !request.once.id.empty();
  }
  static bool RefundsOnce(const Request& request) {
    return request.operation == Operation::kRefund && !request.once.id.empty();
  }
  static std::string Unasked(Operation operation, const rule::Rule* rule, bool perhaps_done,
                             NoAnswer why);
  bool PerhapsDone(uint32_t descriptor) const;
  NoAnswer WhyUnasked(uint32_t descriptor) const;
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
  absl::Status ConcludeBuckets(const Call& call, Response& response) const;
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
  std::unique_ptr<Caches> caches_;
  std::unique_ptr<Work> work_;                // of the present request
  std::vector<std::unique_ptr<Work>> spare_;  // for requests that have to wait
};

}  // namespace headgate::limiter

#include "headgate/limiter/checker.h"

#include <fmt/format.h>

#include <utility>

#include "headgate/base/check.h"
#include "headgate/limiter/conclusion.h"
#include "headgate/limiter/request_sizes.h"
#include "headgate/limiter/work.h"

namespace headgate::limiter {
namespace {

absl::Status Validate(const Request& request) {
  if (request.domain.empty())
    return absl::InvalidArgumentError("rate limit domain must not be empty");
  if (request.descriptors.empty())
    return absl::InvalidArgumentError("rate limit descriptor list must not be empty");
  if (request.descriptors.size() > rule::kDescriptorsMax) {
    return absl::InvalidArgumentError(
        fmt::format("more than {} descriptors", rule::kDescriptorsMax));
  }
  for (const rule::Descriptor& descriptor : request.descriptors) {
    if (descriptor.entries.size() > rule::kEntriesMax) {
      return absl::InvalidArgumentError(
          fmt::format("more than {} entries in a descriptor", rule::kEntriesMax));
    }
  }
  return absl::OkStatus();
}

void Clear(const Request& request, Response& response) {
  response.waiting = response.repeated = response.remembered = false;
  response.passed_despite.reset();
  response.concurrency.reset();
  response.descriptors.clear();
  response.descriptors.resize(request.descriptors.size());
  response.sized.clear();
  response.took.clear();
  response.taken_at.clear();
  if (!request.tells_takes && !RefundsOnce(request)) return;
  response.took.resize(request.descriptors.size(), false);
  response.taken_at.resize(request.descriptors.size(), base::Instant{0});
}

// The request is answered.
void End(const Task& task) {
  if (task.question != nullptr) task.pending()->Keep(nullptr);
}

Corrected AnswerCorrection(const Task& task) {
  const Corrected corrected{.settled = task.work.buckets.entry(0).settled};
  End(task);
  return corrected;
}

absl::Status AnswerRelease(const Task& task, Released& released) {
  End(task);
  return task.work.permits.TellReleased(task, released);
}

}  // namespace

Checker::Checker(Limiter& limiter, uint32_t worker)
    : limiter_(limiter),
      own_decider_(limiter.store(), limiter.permits()),
      means_{own_decider_, {}, limiter.store(), limiter.observers_, worker},
      brought_(std::make_unique<BroughtLimits>(limiter.store().limits())),
      work_(std::make_unique<Work>()) {}

Checker::Checker(Limiter& limiter, uint32_t worker, Decider& decider, const BucketNaming& naming)
    : limiter_(limiter),
      own_decider_(limiter.store(), limiter.permits()),
      means_{decider, naming, limiter.store(), limiter.observers_, worker},
      brought_(std::make_unique<BroughtLimits>(limiter.store().limits())),
      work_(std::make_unique<Work>()) {}

Checker::~Checker() = default;

const PublishedRules* Checker::published() {
  TakeUpRules();
  return rules_.get();
}

const rule::RuleSet* Checker::rules() {
  const PublishedRules* const rules = published();
  return rules == nullptr ? nullptr : rules->rules.get();
}

void Checker::TakeUpRules() {
  const uint64_t generation = limiter_.generation_.load(std::memory_order_acquire);
  if (generation == generation_) [[likely]]
    return;
  rules_ = limiter_.published();
  generation_ = generation;
}

absl::StatusOr<const PublishedRules*> Checker::Begin(const Request& request, Question* question) {
  HEADGATE_RETURN_IF_ERROR(Validate(request));
  TakeUpRules();
  work_->awaits = Awaits::kNothing;
  work_->has_waited = false;
  work_->id.Clear();
  work_->permits.Clear();
  work_->buckets.Clear();
  if (may_wait()) {
    HEADGATE_CHECK(question != nullptr && !question->open());
    // They decide the request to its end, and the answer refers to them.
    answered_by_ = rules_;
    question->pending_.Keep(rules_);
  }
  if (rules_ == nullptr) return absl::FailedPreconditionError("no rate limit configuration loaded");
  return rules_.get();
}

Task Checker::TaskOf(const Request& request, const PublishedRules& rules, Question* question,
                     base::Instant now) {
  return {.request = request,
          .rules = rules,
          .question = may_wait() ? question : nullptr,
          .now = now,
          .means = means_,
          .brought = *brought_,
          .permit_ids = permit_ids_,
          .work = *work_};
}

// The question takes over the request. False, for the caller to return.
bool Checker::Wait(const Task& task, Awaits awaited) {
  Question& question = *task.question;
  if (&task.request != &question.request()) question.kept_.Keep(task.request);
  work_->awaits = awaited;
  work_->has_waited = true;
  std::unique_ptr<Work> next;
  if (spare_.empty()) {
    next = std::make_unique<Work>();
  } else {
    next = std::move(spare_.back());
    spare_.pop_back();
  }
  question.work_ = std::exchange(work_, std::move(next));
  return false;
}

// Takes the request back from the question, together with the answers of the store.
Task Checker::TakeBack(Question& question, base::Instant now) {
  HEADGATE_CHECK(question.open() && !question.waiting());
  if (spare_.size() < kSpareMax) spare_.push_back(std::move(work_));
  work_ = std::move(question.work_);
  const std::span<const Settled> settled = question.pending_.settled();
  HEADGATE_CHECK(settled.size() == work_->asked.size());
  for (size_t i = 0; i < settled.size(); ++i) work_->asked[i] = settled[i];
  question.pending_.Forget();
  answered_by_ = question.pending_.rules();
  return TaskOf(question.request(), *answered_by_, &question, now);
}

absl::Status Checker::Check(const Request& request, Response& response, base::Instant now,
                            Question* question) {
  Clear(request, response);
  const absl::StatusOr<const PublishedRules*> rules = Begin(request, question);
  if (absl::IsFailedPrecondition(rules.status()) && AsksToPass(request.operation) &&
      passthrough()) {
    // There are no rules yet.
    response.allowed = true;
    response.passed_despite = Outcome::kUnavailable;
    return absl::OkStatus();
  }
  if (!rules.ok()) return rules.status();
  return Answer(TaskOf(request, **rules, question, now), response);
}

absl::Status Checker::Continue(Question& question, Response& response, base::Instant now) {
  response.waiting = question.waiting();
  if (response.waiting) return absl::OkStatus();
  Clear(question.request(), response);
  return Answer(TakeBack(question, now), response);
}

absl::Status Checker::Answer(const Task& task, Response& response) {
  const absl::StatusOr<bool> decided = Decide(task);
  response.waiting = decided.ok() && !*decided;
  if (response.waiting) return absl::OkStatus();
  const absl::Status status =
      decided.ok() ? Conclude(task, passthrough(), response) : decided.status();
  End(task);
  PermitHold* const permits = task.request.permits;
  if (permits != nullptr && (!status.ok() || !response.allowed)) permits->Release(task.now);
  return status;
}

// Takes one step after the other, until one has to wait for the store: then false, and the request
// continues behind this step later. Each step finds what the earlier ones have left in the work. A
// request pays only for the steps that it needs.
absl::StatusOr<bool> Checker::Decide(const Task& task) {
  auto& [awaits, has_waited, asked, matches, permits, buckets, id] = task.work;
  const bool asks_permits = AsksPermits(task);
  const bool refunds_once = RefundsOnce(task.request);
  switch (awaits) {
    case Awaits::kNothing:
      matches.Find(task);
      // Permits come first, because they can be given back exactly.
      if (asks_permits && !permits.Ask(task, nullptr)) return Wait(task, Awaits::kPermits);
      [[fallthrough]];
    case Awaits::kPermits:
      if (asks_permits) permits.Read(task);
      HEADGATE_RETURN_IF_ERROR(buckets.Add(task));
      if (asks_permits) permits.SpareBuckets(task);
      if (buckets.has_quotas() && !buckets.DecideQuotas(task)) return Wait(task, Awaits::kQuotas);
      [[fallthrough]];
    case Awaits::kQuotas:
      if (buckets.has_quotas()) buckets.ReadQuotas(task);
      if (refunds_once && !buckets.DecideId(task)) return Wait(task, Awaits::kRefundId);
      [[fallthrough]];
    case Awaits::kRefundId:
      if (refunds_once) HEADGATE_RETURN_IF_ERROR(id.ReadOfRefund(task));
      if (!buckets.DecideMembers(task)) return Wait(task, Awaits::kBuckets);
      [[fallthrough]];
    case Awaits::kBuckets:
      if (TakesOnce(task.request)) id.Read(task);
      if (buckets.has_quotas() && !buckets.GiveBackQuotas(task))
        return Wait(task, Awaits::kQuotasReturned);
      [[fallthrough]];
    case Awaits::kQuotasReturned:
      if (buckets.has_quotas()) buckets.ReadReturns();
      if (matches.any_shadow() && !buckets.DecideShadows(task)) return Wait(task, Awaits::kShadows);
      [[fallthrough]];
    case Awaits::kShadows:
      if (asks_permits && !permits.AcquireFound(task)) return Wait(task, Awaits::kAcquired);
      [[fallthrough]];
    case Awaits::kAcquired:
      if (asks_permits && !permits.GiveBackRefused(task)) return Wait(task, Awaits::kCostsReturned);
      [[fallthrough]];
    case Awaits::kCostsReturned:
      if (!asks_permits) break;
      buckets.ReadReturns();
      permits.Observe(task);
  }
  return true;
}

absl::Status Checker::Release(const Request& request, const permit::Id& id, Released& released,
                              base::Instant now, Question* question) {
  released.waiting = false;
  HEADGATE_ASSIGN_OR_RETURN(const PublishedRules* const rules, Begin(request, question));
  const Task task = TaskOf(request, *rules, question, now);
  task.work.matches.Find(task);
  if (!AsksPermits(task) || task.work.permits.Ask(task, &id)) return AnswerRelease(task, released);
  released.waiting = true;
  Wait(task, Awaits::kPermits);
  return absl::OkStatus();
}

absl::Status Checker::ContinueRelease(Question& question, Released& released, base::Instant now) {
  released.waiting = question.waiting();
  return released.waiting ? absl::OkStatus() : AnswerRelease(TakeBack(question, now), released);
}

Corrected Checker::Correct(const SizeCharge& charge, const SizeStep& step, base::Instant now,
                           Question* question) {
  Request request = charge.request();
  request.operation = step.operation;
  const auto rules = Begin(request, question);
  if (!rules.ok()) return {};
  const Task task = TaskOf(request, **rules, question, now);
  task.work.matches.Find(task);
  if (!AddStep(task, charge, step)) {
    End(task);
    return {};
  }
  if (task.work.buckets.DecideMembers(task)) return AnswerCorrection(task);
  Wait(task, Awaits::kBuckets);
  return {.waiting = true};
}

Corrected Checker::ContinueCorrect(Question& question, base::Instant now) {
  if (question.waiting()) return {.waiting = true};
  return AnswerCorrection(TakeBack(question, now));
}

}  // namespace headgate::limiter

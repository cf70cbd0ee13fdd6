// Answers the question of every front: may this request pass now?
//
//   descriptors ──match──> rules ──> a batch of requests ──> Decider ──> decisions
//                                                              one answer, observed <──┘
//
// A checker serves one thread. It keeps the last rules that it saw and its scratch memory, so a
// decision takes no lock except the bucket's, and allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "headgate/base/hash.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/limiter/bucket_name.h"
#include "headgate/limiter/decider.h"
#include "headgate/limiter/limiter.h"
#include "headgate/limiter/means.h"
#include "headgate/limiter/memory_decider.h"
#include "headgate/limiter/permit_hold.h"
#include "headgate/limiter/question.h"
#include "headgate/limiter/request.h"
#include "headgate/limiter/response.h"
#include "headgate/limiter/size_charge.h"
#include "headgate/rule/rule_set.h"

namespace headgate::limiter {

class BroughtLimits;
enum class Awaits : uint8_t;
struct Task;

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
  bool may_wait() const { return means_.decider.may_wait(); }

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

  // Whether requests are answered as if all of them were allowed.
  bool passthrough() const { return limiter_.passthrough(); }

  // The secret of the buckets of this process. A snapshot keeps it together with them.
  const base::HashSecret& hash_secret() const { return means_.store.hash_secret(); }

 private:
  friend class OwnLimits;
  static constexpr size_t kSpareMax = 64;

  void TakeUpRules();
  absl::StatusOr<const PublishedRules*> Begin(const Request& request, Question* question);
  Task TaskOf(const Request& request, const PublishedRules& rules, Question* question,
              base::Instant now);
  bool Wait(const Task& task, Awaits awaited);
  Task TakeBack(Question& question, base::Instant now);
  absl::StatusOr<bool> Decide(const Task& task);
  absl::Status Answer(const Task& task, Response& response);

  Limiter& limiter_;
  MemoryDecider own_decider_;
  const Means means_;
  uint64_t generation_ = 0;
  std::shared_ptr<const PublishedRules> rules_;
  std::shared_ptr<const PublishedRules> answered_by_;  // the rules that the last response refers to
  std::unique_ptr<BroughtLimits> brought_;
  PermitIds permit_ids_;
  std::unique_ptr<Work> work_;                // of the present request
  std::vector<std::unique_ptr<Work>> spare_;  // for requests that have to wait
};

}  // namespace headgate::limiter

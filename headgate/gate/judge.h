// Decides about the requests that proxies describe.
//
//   DescribedRequest ──mapping──▶ descriptors ──limiter──▶ Verdict
//
// The fronts for HTTP (handler.h) and for HAProxy (front/spoe) read requests and write verdicts.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "headgate/answer/limit_answer.h"
#include "headgate/base/clock.h"
#include "headgate/gate/live_mappings.h"
#include "headgate/gate/repeats.h"
#include "headgate/gate/verdict.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/size_charge.h"
#include "headgate/mapping/mapping.h"

namespace headgate::gate {

// A request that waits for the shared store. The bytes of the request and the mappings may be gone
// when the answer comes.
struct Asked {
  explicit Asked(std::function<void()> wake) : question(std::move(wake)) {}

  limiter::Question question;  // open while the request waits
  bool peeks = false;          // before it takes anything
  std::shared_ptr<const mapping::MappingSet> set{};
  const mapping::Mapping* mapping = nullptr;
  base::Hash128 id{};
  bool has_id = false;
  std::string cors_origin{};
  bool varies_by_origin = false;
  limiter::PermitHold permits{};
};

// For a caller that cannot hold every request until its turn.
struct WaitBound {
  // A request that would wait longer takes nothing.
  base::Duration wait_max = base::kDurationMax;
  // Whether to peek at the queues before taking from them. A peek costs as much as a take, and is
  // made only if a rule with a queue applies. Without it, the bound has no effect.
  bool peeks = false;
};

// Shared by the judges of all loops, and outlives them.
struct JudgeOptions {
  const LiveMappings& mappings;
  Repeats& repeats;
  const base::HashSecret& secret;  // for idempotency ids
  // Tells whether tokens are valid: its wall time follows the system's clock at once, which the
  // time of decisions does not.
  const base::Clock& clock;
  // A request has a token that is refused. May be null.
  std::function<void(jwt::Refusal reason, std::string_view mapping)> on_token_refused{};
  // A request is invalid. May be null.
  std::function<void(std::string_view reason, std::string_view mapping)> on_invalid{};
  // Whether this process is the proxy itself. Then every request is judged, and trusted_proxies
  // only says whose forwarding headers are believed.
  bool is_own_proxy = false;
};

struct OutcomeAndStatus {
  RequestOutcome outcome = RequestOutcome::kUnmatched;
  int status = 200;
};
// The outcome of a request before a limiter is asked; kAllowed if one must be asked.
OutcomeAndStatus OutcomeOf(const mapping::MappedRequest& mapped);

// One per loop; not thread-safe.
class Judge {
 public:
  // All arguments must outlive the judge.
  Judge(limiter::Checker& checker, answer::LimitAnswer& answer, const JudgeOptions& options,
        Counters& counters)
      : checker_(checker), answer_(answer), options_(options), counters_(counters) {}

  // The mappings that the next new request is judged by; null before the first.
  const mapping::MappingSet* mappings();

  // Returns false if the answer comes later: then `asked` wakes its owner, which calls again with
  // the same `asked`; the request is not read again. `make_asked` returns the place for a request
  // that has to wait; it is called only if answers may come later. The verdict is valid until the
  // next call.
  bool Decide(const mapping::DescribedRequest& request, absl::FunctionRef<Asked&()> make_asked,
              base::Instant now, Verdict& verdict, const WaitBound& bound = {});
  // Whether the last new request was judged by its path.
  bool has_read_path() const { return has_read_path_; }
  // For a request that cannot be read: no mapping can be chosen, so the first mapping gives the
  // status.
  void RefuseHead(const mapping::DescribedRequest& request, std::string_view why, Verdict& verdict);
  // Refuses a request because all places for waiting requests are taken.
  void RefuseBusy(Verdict& verdict);
  // For a request that waits. `wait_max` is as in WaitBound. If another request takes the turn
  // between the peek and the take, the wait may be longer.
  bool Continue(Asked& asked, base::Instant now, Verdict& verdict,
                base::Duration wait_max = base::kDurationMax);
  base::WallTime time_of_day() const { return options_.clock.WallNow(); }
  // The permits of the last request, if it passes. Only the proxy that owns this judge may call it.
  // Other judges cannot give permits back, so they take none: a rule that limits concurrency then
  // only peeks.
  limiter::PermitHold TakePermits() { return std::move(permits_); }
  // The charges of the last request by limits with a cost by size, even if it is denied. The proxy
  // of the request corrects them when the size is known; for other fronts the reserve is the cost.
  std::vector<limiter::SizeCharge> TakeCharges() { return std::exchange(charges_, {}); }

 private:
  // The hold for the permits of a request; null if nobody can give them back.
  limiter::PermitHold* HoldFor(Asked* asked) {
    if (!options_.is_own_proxy) return nullptr;
    return asked != nullptr ? &asked->permits : &permits_;
  }
  // Whether a rule with a queue applies.
  bool MayQueue(const limiter::Request& request);
  // Whether the peek is the answer: the request would wait for too long.
  bool EndsAtPeek(const absl::Status& status, const limiter::Request& peek,
                  const mapping::Mapping& mapping, base::Duration wait_max, base::Instant now,
                  Verdict& verdict);
  // The answer to the request itself.
  void Answer(const absl::Status& status, const limiter::Request& request,
              const mapping::Mapping& mapping, Asked* asked, base::Instant now, Verdict& verdict);
  bool IsWaiting(const absl::Status& status) const { return status.ok() && decided_.waiting; }
  void Conclude(const limiter::Request& request, const mapping::Mapping& mapping, base::Instant now,
                Verdict& verdict);
  void Judged(const mapping::MappedRequest& mapped, Verdict& verdict);
  // Sets which origin may read the answer. This does not depend on tokens or keys of the request.
  void SetCors(const mapping::DescribedRequest& request, Verdict& verdict) const;
  // Whether the request lacks a token that belongs in Authorization.
  bool LacksBearer(const mapping::MappedRequest& mapped) const;
  // The request's value of `idempotency_header`.
  wire::Lookup FindId(const mapping::DescribedRequest& request, std::string_view& id) const;
  base::Hash128 IdOf(std::string_view text, const mapping::MappedRequest& mapped) const;
  // The body for the denial in decided_: of its rule, or else of the mapping, or else of the
  // listener.
  std::shared_ptr<const rule::Refusal> RefusalOf(const mapping::Mapping& mapping) const;
  // Counts the verdict, and lets the request pass in passthrough.
  void Close(Verdict& verdict);
  void LetPass(Verdict& verdict) const;

  limiter::Checker& checker_;
  answer::LimitAnswer& answer_;
  const JudgeOptions options_;
  Counters& counters_;
  uint64_t generation_ = 0;
  std::shared_ptr<const mapping::MappingSet> set_;
  mapping::Mapper mapper_;
  bool has_read_path_ = false;
  limiter::Response decided_;
  std::string policy_;  // of a repeated verdict
  limiter::PermitHold permits_;
  std::vector<limiter::SizeCharge> charges_;
};

}  // namespace headgate::gate

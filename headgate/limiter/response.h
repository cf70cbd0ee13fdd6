// The answers of a Checker.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"
#include "headgate/limiter/mode.h"
#include "headgate/limiter/observer.h"
#include "headgate/limiter/request.h"
#include "headgate/limiter/size_charge.h"
#include "headgate/rule/rule_set.h"

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

// The outcome that a decision counts as, judged by its limit alone.
Outcome OutcomeOf(const algorithm::Decision& decision, Mode mode);

}  // namespace headgate::limiter

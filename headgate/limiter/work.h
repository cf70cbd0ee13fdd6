// The state of one request while a Checker decides it, or while it waits for the store. Only for
// the sources of Checker and Question.
//
//   Task   the inputs of a step: the request, the rules, and the work so far
//   Work   what the steps have found. Each dimension of a request has a type of its own
#pragma once

#include "headgate/base/strided.h"
#include "headgate/limiter/brought_limits.h"
#include "headgate/limiter/matches.h"
#include "headgate/limiter/means.h"
#include "headgate/limiter/permit_hold.h"
#include "headgate/limiter/published_rules.h"
#include "headgate/limiter/question.h"
#include "headgate/limiter/request.h"
#include "headgate/limiter/request_buckets.h"
#include "headgate/limiter/request_id.h"
#include "headgate/limiter/request_permits.h"

namespace headgate::limiter {

// The step whose answers are awaited.
enum class Awaits : uint8_t {
  kNothing,  // the request has just begun
  kPermits,
  kQuotas,
  kRefundId,
  kBuckets,
  kQuotasReturned,
  kShadows,
  kAcquired,
  kCostsReturned,
};

// Its memory is reused.
struct Work {
  Awaits awaits = Awaits::kNothing;
  bool has_waited = false;
  base::Strided<Settled> asked{};  // the place of the answers

  Matches matches;
  RequestPermits permits;
  RequestBuckets buckets;
  RequestId id;
};

// One call for a request.
struct Task {
  const Request& request;
  const PublishedRules& rules;
  Question* question;  // null if the decider never waits
  base::Instant now;
  const Means& means;
  BroughtLimits& brought;
  PermitIds& permit_ids;
  Work& work;

  // For the decider; null if it never waits.
  Pending* pending() const { return question == nullptr ? nullptr : &question->pending_; }
};

}  // namespace headgate::limiter

// The evidence for one decision: the calls that a node sent to the store for it, and the answers.
// The mode of the decision has to agree with the evidence:
//
//   leased          no call was made for it, and its cost was spent from leases; a denied request
//                   spent nothing. It may have waited for a call that another request caused
//   exact           the store answered with this decision; or it denied, and its cost was spent
//   from
//                   a lease that the store did not count; or no call was made since it can never
//                   pass
//   closed, open,   the call for it, or the one it waited for, failed, timed out or could not be
//   local           sent, and nothing was spent. Local: the instance's own store made this
//   decision.
#pragma once

#include <cstdint>
#include <string>

#include "headgate/limiter/pending.h"
#include "headgate/rule/rule_set.h"

namespace headgate::simulation {

struct Evidence {
  enum class Call : uint8_t { kNone, kOpen, kAnswered, kFailed };

  Call decision = Call::kNone;  // the call in which the store decides it
  bool took = false;            // this call takes, rather than only peeks
  bool allowed = false;         // the store allowed it
  bool denied = false;          // the store denied it, and may have been asked once more
  Call awaited = Call::kNone;   // the call of another request that it waited for
  int64_t spent = 0;            // from leases, less refunds to leases
  uint64_t refunded = 0;        // requests refunded at the store
  Call here = Call::kNone;      // the decision of the instance's own store
  bool allowed_here = false;
  bool operator==(const Evidence&) const = default;
};

// A decision to check.
struct Decided {
  limiter::Settled settled;
  uint64_t cost = 0;
  // Members of a group are asked one after the other, so one may wait because of another.
  bool in_group = false;
  bool takes = true;     // otherwise it is a refund or a peek
  bool counted = false;  // a member denied, but this limit counts denied requests
  bool undone = false;   // a member of its group denied: its cost has been given back
  rule::OnStoreFailure on_failure = rule::OnStoreFailure::kDeny;
};

// Describes the contradiction; empty if there is none.
std::string Dishonesty(const Decided& decided, const Evidence& evidence);

}  // namespace headgate::simulation

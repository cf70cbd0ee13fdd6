// The requests that a node sent to the store for one take, and the answers. The mode of the take
// has to agree with them:
//
//   leased          nothing was asked for it, and its cost was spent from leases; a denied request
//                   spent nothing
//   exact           the store answered, with this decision or with the lease that the request
//                   waited for and was decided from; or nothing was asked since it can never pass
//   closed, open,   what was asked for it failed, had no answer in time or could not be sent, and
//   local           nothing was spent. Local: the instance's own store has decided it so.
#pragma once

#include <cstdint>
#include <string>

#include "headgate/limiter/pending.h"
#include "headgate/rule/rule_set.h"

namespace headgate::simulation {

struct Evidence {
  enum class Call : uint8_t { kNone, kOpen, kAnswered, kFailed };

  Call decision = Call::kNone;  // the store was asked to decide it
  bool took = false;            // it was asked to take, not only to look
  bool allowed = false;         // it did so
  Call grant = Call::kNone;     // of the lease that was asked for when it came
  bool waited = false;          // it was not decided when it came
  int64_t spent = 0;            // from leases, less what was given back
  uint64_t refunded = 0;        // the store was told so
  Call here = Call::kNone;      // the node's own store was asked
  bool allowed_here = false;
  bool operator==(const Evidence&) const = default;
};

// A take as it was decided.
struct Decided {
  limiter::Settled settled;
  uint64_t cost = 0;
  // Members of a group are asked one after the other, so that one may wait for another.
  bool in_group = false;
  bool takes = true;     // else it gives back, or looks
  bool counted = false;  // a member denied, but this limit counts denied requests
  bool undone = false;   // a member of its group denied: what it took has been given back
  rule::OnStoreFailure on_failure = rule::OnStoreFailure::kDeny;
};

// Describes the contradiction; empty if there is none.
std::string Dishonesty(const Decided& decided, const Evidence& evidence);

}  // namespace headgate::simulation

#include "headgate/store/answer_without_store.h"

#include <string>

#include "headgate/algorithm/decide.h"
#include "headgate/algorithm/lease.h"

namespace headgate::store {

using algorithm::CanLease;
using algorithm::KeepsLeases;
using algorithm::Limit;

std::optional<SharedAnswer> AnswerWithoutStore(const SharedRequest& request) {
  const Limit& limit = request.limit->limit;
  SharedAnswer answer;
  // Reports of leases that were granted under another limit count as long as the bucket holds these
  // leases.
  const auto is_answered = [&](const LeaseAsk& ask) {
    const bool decides = ask.cost > 0 && (limit.spec().overdraw || limit.blocks());
    return ask.want > 0 || decides ? CanLease(limit) : KeepsLeases(limit.algorithm());
  };
  if (request.lease && !is_answered(*request.lease)) {
    answer.status = absl::FailedPreconditionError(
        "a bucket of " + std::string(Name(limit.algorithm())) +
        (limit.spec().count_denied ? " that counts denied requests" : "") +
        (limit.spec().overdraw ? " that may be overdrawn" : "") +
        (limit.blocks() ? " that blocks keys" : "") + " is always exact: it gives no leases");
    return answer;
  }
  if (!request.lease && GivesBack(request.operation) && !TakesRefunds(limit.algorithm())) {
    answer.status = algorithm::RefundRefused();
    return answer;
  }
  if (!limit.denies_all()) return std::nullopt;
  if (request.lease) {
    answer.decision = algorithm::DenyAll(limit, request.lease->cost);
    answer.grant.next_after = algorithm::kNever;
    return answer;
  }
  if (request.operation == Operation::kReset) return std::nullopt;
  answer.decision = algorithm::DenyAll(limit, AsksToPass(request.operation) ? request.cost : 0);
  return answer;
}

}  // namespace headgate::store

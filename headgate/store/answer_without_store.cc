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
  if (request.lease &&
      !(request.lease->want > 0 ? CanLease(limit) : KeepsLeases(limit.algorithm()))) {
    answer.status = absl::FailedPreconditionError(
        "a bucket of " + std::string(Name(limit.algorithm())) +
        (limit.spec().count_denied ? " that counts denied requests" : "") +
        " is always exact: it gives no leases");
    return answer;
  }
  const bool refund = !request.lease && request.operation == Operation::kRefund;
  if (refund && !TakesRefunds(limit.algorithm())) {
    answer.status = algorithm::RefundRefused();
    return answer;
  }
  if (!limit.denies_all()) return std::nullopt;
  if (request.lease) {
    answer.grant.retry_after = request.lease->want > 0 ? algorithm::kNever : base::Duration(0);
    return answer;
  }
  if (request.operation == Operation::kReset) return std::nullopt;
  answer.decision = algorithm::DenyAll(limit, refund ? 0 : request.cost);
  return answer;
}

}  // namespace headgate::store

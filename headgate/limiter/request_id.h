// The id of a request, which makes repetitions count once. An id is a window that begins with the
// first request that passes, and has room for no other.
//
// It also remembers what that request took, if the caller wants to know. With n descriptors:
//
//   each request   takes 2^n, which is all that the window has
//   the first one  gives back 2^i if the limits of descriptor i gave its cost
//   a later one    is denied, and reads this in what the window has left
//
// A refund with an id is executed at most once:
//
//   the id is used up  →  the refund  →  the id notes which descriptors were refunded
//
// A later refund with the id finds it used up. It is answered as repeated if the note says that
// everything was refunded; otherwise nobody knows what became of the first one, and it is an error.
#pragma once

#include <cstdint>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/limiter/decider.h"
#include "headgate/limiter/request.h"
#include "headgate/limiter/response.h"
#include "headgate/store/limit_table.h"

namespace headgate::limiter {

class RequestBuckets;
struct Task;

inline bool TakesOnce(const Request& request) {
  return request.operation == Operation::kTake && !request.once.id.empty();
}
inline bool RefundsOnce(const Request& request) {
  return request.operation == Operation::kRefund && !request.once.id.empty();
}

class RequestId {
 public:
  void Clear() { *this = RequestId(); }

  // Adds its bucket, the first of the group. If the store is unreachable, it remembers nothing, and
  // the request is decided like any other.
  absl::Status AddTo(const Task& task, RequestBuckets& buckets);
  // Reads the answer about the id of a request to pass.
  void Read(const Task& task);
  // Reads the answer about the id of a refund. An error if the refund must not be executed; if the
  // id was used before, the buckets are only peeked at.
  absl::Status ReadOfRefund(const Task& task);
  // After an error of a refund: if certainly nothing was refunded, the id can be used again.
  void ReleaseRefund(const Task& task) const;

  void TellIn(Response& response) const;
  // Whether a request with the id has passed before.
  bool repeated() const { return repeated_; }
  // Fills in Response::took and taken_at, and has the id remember them.
  void TellTakes(const Task& task, Response& response) const;

 private:
  void TellEarlierTakes(const Task& task, Response& response) const;
  void NoteTakes(const Task& task, const std::vector<bool>& took) const;
  void GiveBack(const Task& task, const BatchEntry& id, uint64_t amount) const;

  store::LimitHandle window_;
  bool repeated_ = false;
  bool remembered_ = false;
  base::Instant first_passed_at_{0};
};

}  // namespace headgate::limiter

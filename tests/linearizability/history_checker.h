// Checks a recorded history of one bucket: is there an order of the requests that agrees with real
// time, and in which a single bucket gives every recorded answer?
//
//   client 1   |---- take 1: allowed, 0 left ----|
//   client 2        |-- take 1: denied --|             possible: 1 before 2
//   client 3                                 |- take 1: allowed -|   impossible after these two
//
// The search is that of Wing and Gong, "Testing and verifying concurrent objects" (1993), with the
// memory of Lowe, "Testing for linearizability" (2017): a state that was reached before with the
// same requests done is not searched again. Exponential at worst; for thousands of requests of
// which a few overlap it takes milliseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headgate/algorithm/decision.h"
#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"
#include "headgate/store/store.h"

namespace headgate::linearizability {

struct Operation {
  algorithm::Cost cost = 1;
  store::Operation operation = store::Operation::kTake;  // no kReset
  // When the request was sent, and when its answer came, on one clock for all. An answer that never
  // came: kNever, and no answer. Such a request may have been done at any time since, or not at
  // all. A request that was certainly not done does not belong into the history.
  int64_t called = 0;
  int64_t returned = kNever;
  struct Answer {
    bool allowed = true;
    uint64_t remaining = 0;
    bool operator==(const Answer&) const = default;
  };
  std::optional<Answer> answer{};

  static constexpr int64_t kNever = INT64_MAX;
};

// Describes why the history is impossible; empty if it is possible. All requests are decided at
// `at`: the bucket must not refill by a whole request while the history is recorded. The limit may
// be of any kind but the log and the queue.
std::string Check(const algorithm::Limit& limit, base::Instant at,
                  const std::vector<Operation>& history);

}  // namespace headgate::linearizability

// One limit of every kind of bucket, for tests that go through all kinds.
#pragma once

#include <cstdint>
#include <vector>

#include "headgate/algorithm/limit.h"
#include "headgate/base/time.h"

namespace headgate::redis_host {

// `more` is appended to `kinds`.
inline std::vector<algorithm::LimitSpec> With(std::vector<algorithm::LimitSpec> kinds,
                                              const std::vector<algorithm::LimitSpec>& more) {
  kinds.insert(kinds.end(), more.begin(), more.end());
  return kinds;
}

// The kinds that grant leases. The month and the week have their own lengths.
inline std::vector<algorithm::LimitSpec> KindsThatLease(uint64_t requests, base::Duration period) {
  using enum algorithm::Algorithm;
  using algorithm::Align;
  return {
      {.algorithm = kTokenBucket, .requests = requests, .period = period},
      {.algorithm = kLeakyBucket, .requests = requests, .period = period},
      {.algorithm = kFixedWindow, .requests = requests, .period = period},
      {.algorithm = kFixedWindow,
       .requests = requests,
       .period = period,
       .align = Align::kFirstHit},
      {.algorithm = kFixedWindow, .requests = requests, .align = Align::kCalendarMonth},
      {.algorithm = kFixedWindow, .requests = requests, .align = Align::kCalendarWeek},
      {.algorithm = kSlidingWindowCounter, .requests = requests, .period = period},
  };
}

// The queue has waiting places for nine of ten requests.
inline std::vector<algorithm::LimitSpec> KindsThatNeverLease(uint64_t requests,
                                                             base::Duration period) {
  using enum algorithm::Algorithm;
  return {
      {.algorithm = kLeakyBucketQueue,
       .requests = requests,
       .period = period,
       .burst = requests * 9 / 10},
      {.algorithm = kSlidingWindowLog, .requests = requests, .period = period},
  };
}

}  // namespace headgate::redis_host

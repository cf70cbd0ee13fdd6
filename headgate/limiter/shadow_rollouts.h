// Roll-outs in shadow: the new limits of a rule are decided beside its own, in buckets of their
// own, and only counted.
#pragma once

#include <cstdint>

#include "headgate/limiter/response.h"
#include "headgate/rule/rule_set.h"

namespace headgate::limiter {

class RequestBuckets;
struct Task;

inline bool HasShadowRollout(const rule::Rule& rule) {
  return rule.rollout != nullptr && rule.rollout->shadow();
}

// Adds the buckets of the roll-out of a descriptor's rule.
void AddShadowRollout(const Task& task, uint32_t descriptor, RequestBuckets& buckets);

// Tells the observers the answers of each rule and of its roll-out in shadow, if both could be
// asked.
void ObserveShadowRollouts(const Task& task, const Response& response);

}  // namespace headgate::limiter

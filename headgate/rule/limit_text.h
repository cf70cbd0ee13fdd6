// Limits as text for people.
#pragma once

#include <string>

#include "headgate/algorithm/limit.h"
#include "headgate/rule/rule_set.h"

namespace headgate::rule {

// Describes a limit for people: "100 per 1m, token_bucket, burst 20".
std::string Describe(const algorithm::Limit& limit);

// The same, with its cost: "…, costs 1 for each 1KiB of response_bytes, reserve 64KiB".
std::string Describe(const RuleLimit& limit);

// Describes to which keys the limits of a roll-out apply: "for 0.5 % of the keys", "in shadow".
std::string DescribeReach(const Rollout& rollout);

}  // namespace headgate::rule

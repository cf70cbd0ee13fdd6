// The limit of concurrency of an API key (key_limit.h):
//
//   {"Limit": 20, "Algorithm": "concurrency", "Ttl": "60s"}
#pragma once

#include "headgate/rule/read/key_limit_members.h"
#include "headgate/rule/rule_set.h"

namespace headgate::rule::read {

// Whether these are the words of a limit of concurrency.
bool SaysConcurrency(const KeyLimitMembers& members);
// Adds the limit to the rule, or reports its problems.
void ReadConcurrency(KeyLimitMembers& members, Rule& rule);
// Reports the word that only limits of concurrency may have, for a limit of another kind.
void RefuseConcurrencyWords(KeyLimitMembers& members);

}  // namespace headgate::rule::read

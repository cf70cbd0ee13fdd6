// Reads a limit of concurrency in a rule file (concurrency.h).
#pragma once

#include "headgate/rule/read/fields.h"
#include "headgate/rule/rule_set.h"

namespace headgate::rule::read {

// Whether these are the fields of a limit of concurrency.
bool SaysConcurrency(const Fields& fields);
// Adds the limit to the rule, or reports its problems.
void ReadConcurrency(FieldReader& reader, Fields& fields, Rule& rule);
// Reports words that only limits of concurrency may have, for a limit of another kind.
void RefuseConcurrencyWords(FieldReader& reader, Fields& fields);

}  // namespace headgate::rule::read

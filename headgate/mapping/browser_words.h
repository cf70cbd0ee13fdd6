// The words of a mapping file for web pages: `preflights` and `cors_origins`.
#pragma once

#include "headgate/mapping/mapping.h"
#include "headgate/mapping/mapping_file.h"
#include "headgate/mapping/yaml_fields.h"
#include "headgate/rule/problem.h"

namespace headgate::mapping {

// Call it after `original_request` is read. The sidecar has flags for both words, because its pool
// needs them too: there the words have no effect and cause a warning.
void ReadBrowserWords(YamlFields& fields, Asker asker, MappingSet& set, rule::ProblemList& problems,
                      rule::ProblemList& warnings);

}  // namespace headgate::mapping

// Whether two YAML values mean the same to the loader of rules, however they are written.
#pragma once

#include <string_view>

#include "headgate/rule/edit/source_tree.h"
#include "headgate/rule/read/document.h"

namespace headgate::rule::edit {

// `field` is the name of the field that has these values, or empty. Numbers and truths are compared
// by their values, unless the loader reads the field as it is written: `name: 010` is not
// `name: 8`. The order of the pairs of a mapping does not count.
bool SameMeaning(const read::DocumentNode& a, const read::DocumentNode& b, std::string_view field);
bool SameMeaning(const SourceNode& a, const SourceNode& b, std::string_view field);

// Whether both are the same key of a mapping.
bool SameKey(const SourceNode& a, const SourceNode& b);

// Whether two values are the same, written in the same way as far as a loader can see.
bool SameNodes(const read::DocumentNode& a, const read::DocumentNode& b);

}  // namespace headgate::rule::edit

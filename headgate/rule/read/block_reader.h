// Reads the word `block` of a limit in YAML (block_words.h).
#pragma once

#include "headgate/algorithm/block.h"
#include "headgate/base/status.h"
#include "headgate/rule/read/document.h"

namespace headgate::rule::read {

// Has the errors of the other ParseBlock, and InvalidArgument if the value is neither a text nor a
// list of texts.
absl::StatusOr<algorithm::BlockLengths> ParseBlock(const DocumentNode& value);

}  // namespace headgate::rule::read

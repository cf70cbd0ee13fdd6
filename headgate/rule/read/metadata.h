// `metadata` of a rule file: any YAML mapping, passed on to clients as a JSON object.
#pragma once

#include <string>

#include "headgate/base/status.h"
#include "headgate/rule/read/document.h"

namespace headgate::rule::read {

inline constexpr size_t kMetadataBytesMax = 65'536;

// Keys become strings, timestamps stay strings, and the last of several equal keys counts.
// InvalidArgument if JSON cannot express a value, or if the result exceeds kMetadataBytesMax.
absl::StatusOr<std::string> MetadataJson(const DocumentNode& mapping);

}  // namespace headgate::rule::read

// `metadata` of a rule file: any YAML mapping, handed on to clients as a JSON object.
#pragma once

#include <string>

#include "headgate/base/status.h"
#include "headgate/rule/document.h"

namespace headgate::rule {

inline constexpr size_t kMetadataBytesMax = 65'536;

// Keys become texts; of a doubled key the last one counts; timestamps stay texts. InvalidArgument
// for what JSON cannot say, and for more than kMetadataBytesMax.
absl::StatusOr<std::string> MetadataJson(const DocumentNode& mapping);

}  // namespace headgate::rule

// A descriptor as people write it in a shell: k=v,k=v. A key or value that holds one of `,="` or a space stands in
// double quotes, `"` and `\` with a `\` before them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/status.h"
#include "headgate/rule/descriptor.h"

namespace headgate::app {

struct NamedValue {
  std::string key;
  std::string value;
  bool operator==(const NamedValue&) const = default;
};

// InvalidArgument with the place and what would be right. At most rule::kEntriesMax.
absl::StatusOr<std::vector<NamedValue>> ParseEntries(std::string_view text);

// Views of `values`, for the limiter.
std::vector<rule::Entry> EntriesOf(const std::vector<NamedValue>& values);

}  // namespace headgate::app

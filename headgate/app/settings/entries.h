// Parses a descriptor as people write it in a shell: k=v,k=v. A key or value with one of `,="` or a
// space is put in double quotes; inside them, `"` and `\` are escaped by `\`.
#pragma once

#include <optional>
#include <span>
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

// InvalidArgument names the character and the mistake. At most rule::kEntriesMax entries.
absl::StatusOr<std::vector<NamedValue>> ParseEntries(std::string_view text);

// The arguments of `check` and `explain`: --domain D k=v… or D k=v…
struct DescriptorArguments {
  std::string domain;
  std::vector<std::vector<NamedValue>> descriptors;
};

// `words` are the arguments that are not flags; the first one without a '=' is the domain.
// InvalidArgument if there are two domains or no descriptor.
absl::StatusOr<DescriptorArguments> ParseDescriptorArguments(
    const std::optional<std::string>& domain, std::span<const std::string> words);

// Views of `values` for the limiter; `values` must outlive them.
std::vector<rule::Entry> EntriesOf(const std::vector<NamedValue>& values);

}  // namespace headgate::app

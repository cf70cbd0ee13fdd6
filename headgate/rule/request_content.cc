#include "headgate/rule/request_content.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string_view>

#include "headgate/rule/rule_names.h"

namespace headgate::rule {

void AppendRequestContent(std::span<const Descriptor> descriptors, std::string& out) {
  const auto add_number = [&](uint64_t number) {
    fmt::format_to(std::back_inserter(out), "{} ", number);
  };
  const auto add_text = [&](std::string_view text) {
    add_number(text.size());
    out.append(text);
  };
  for (const Descriptor& descriptor : descriptors) {
    add_number(descriptor.entries.size());
    for (const Entry& entry : descriptor.entries) {
      add_text(entry.key);
      add_text(entry.value);
    }
    add_number(descriptor.cost.value_or(1));
    add_number(descriptor.override_limit ? 1 : 0);
    if (!descriptor.override_limit) continue;
    add_number(descriptor.override_limit->requests_per_unit);
    add_text(Name(descriptor.override_limit->unit));
  }
}

}  // namespace headgate::rule

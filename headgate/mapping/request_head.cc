#include "headgate/mapping/request_head.h"

#include "headgate/base/text.h"

namespace headgate::mapping {

using wire::Lookup;

Lookup RequestHead::FindHeader(std::string_view name, std::string_view& value) const {
  Lookup found = Lookup::kAbsent;
  for (const auto& [field, field_value] : fields) {
    if (!base::EqualsIgnoreCase(field, name)) continue;
    if (found == Lookup::kFound) return Lookup::kTwice;
    found = Lookup::kFound;
    value = field_value;
  }
  return found;
}

Lookup RequestHead::FindCookie(std::string_view name, std::string& text,
                               std::string_view& value) const {
  Lookup found = Lookup::kAbsent;
  for (const auto& [field, line] : fields) {
    if (!base::EqualsIgnoreCase(field, "Cookie")) continue;
    const Lookup here = wire::FindInCookies(line, name, value);
    if (here == Lookup::kAbsent) continue;
    if (here != Lookup::kFound) return here;
    if (found == Lookup::kFound) return Lookup::kTwice;
    found = Lookup::kFound;
  }
  if (found != Lookup::kFound || value.find('%') == value.npos) return found;
  const size_t begin = text.size();
  if (!wire::DecodeCookie(value, text)) return Lookup::kInvalid;
  value = std::string_view(text).substr(begin);
  return found;
}

}  // namespace headgate::mapping

#include "headgate/mapping/described_request.h"

#include "headgate/base/text.h"
#include "headgate/wire/alike_names.h"

namespace headgate::mapping {

using wire::Lookup;

Lookup DescribedRequest::FindField(std::string_view name, std::string_view& value) const {
  Lookup found = Lookup::kAbsent;
  for (const auto& [field, field_value] : fields) {
    if (!base::EqualsIgnoreCase(field, name)) continue;
    if (found == Lookup::kFound) return Lookup::kTwice;
    found = Lookup::kFound;
    value = field_value;
  }
  return found;
}

Lookup DescribedRequest::FindHeader(std::string_view name, std::string_view& value,
                                    wire::Why* why) const {
  Lookup found = Lookup::kAbsent;
  for (const auto& [field, field_value] : fields) {
    if (!wire::IsAlikeField(field, name)) continue;
    if (!base::EqualsIgnoreCase(field, name)) {
      wire::Refuse(why, "some servers take another field for it, with a '_' or '.' in its name");
      return Lookup::kInvalid;
    }
    found = found == Lookup::kAbsent ? Lookup::kFound : Lookup::kTwice;
    value = field_value;
  }
  if (found == Lookup::kTwice) wire::Refuse(why, "the header comes twice");
  return found;
}

Lookup DescribedRequest::FindCookie(std::string_view name, std::string& text,
                                    std::string_view& value, wire::Why* why) const {
  Lookup found = Lookup::kAbsent;
  for (const auto& [field, line] : fields) {
    if (!base::EqualsIgnoreCase(field, "Cookie")) continue;
    const Lookup here = wire::FindInCookies(line, name, value, why);
    if (here == Lookup::kAbsent) continue;
    if (here != Lookup::kFound) return here;
    if (found == Lookup::kFound) {
      wire::Refuse(why, "the cookie comes twice");
      return Lookup::kTwice;
    }
    found = Lookup::kFound;
  }
  if (found != Lookup::kFound || value.find('%') == value.npos) return found;
  const size_t begin = text.size();
  if (!wire::DecodeCookie(value, text, why)) return Lookup::kInvalid;
  value = std::string_view(text).substr(begin);
  return found;
}

}  // namespace headgate::mapping

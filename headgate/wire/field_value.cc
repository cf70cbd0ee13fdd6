#include "headgate/wire/field_value.h"

#include <algorithm>

#include "headgate/base/text.h"
#include "headgate/wire/credentials.h"

namespace headgate::wire {

bool ReadFieldValue(std::string_view name, std::string_view value, std::string& text,
                    std::string_view& read, Why* why) {
  const bool is_plain = std::all_of(value.begin(), value.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x80 && (c == '\t' || !base::IsControl(c));
  });
  if (!is_plain)
    return Refuse(why, "the header has a control character, or a byte that is not ASCII");
  if (!HasCredentials(name)) {
    read = value;
    return value.find('\t') == value.npos || Refuse(why, "the header has a tab");
  }
  const size_t begin = text.size();
  if (!CanonicalCredentials(value, text)) {
    return Refuse(why,
                  "more than one word follows the scheme, or the base64 of Basic is not in its one "
                  "form");
  }
  read = std::string_view(text).substr(begin);
  return true;
}

}  // namespace headgate::wire

#include "headgate/wire/named_values.h"

#include <algorithm>

#include "headgate/base/text.h"
#include "headgate/base/utf8.h"
#include "headgate/wire/percent.h"

namespace headgate::wire {
namespace {

// Appends the decoded text. False if an escape is broken or stands for a control character.
bool AppendDecoded(std::string_view text, char for_plus, std::string& out) {
  while (!text.empty()) {
    char c = text.front();
    if (c == '%') {
      const int byte = PercentByte(text);
      if (byte < 0) return false;
      c = static_cast<char>(byte);
      if (base::IsControl(c)) return false;
      text.remove_prefix(3);
    } else {
      if (c == '+') c = for_plus;
      text.remove_prefix(1);
    }
    out.push_back(c);
  }
  return true;
}

// Whether the encoded name stands for `name`. Decodes without a buffer.
bool IsName(std::string_view encoded, std::string_view name) {
  for (const char expected : name) {
    if (encoded.empty()) return false;
    char c = encoded.front();
    size_t size = 1;
    if (c == '%') {
      const int byte = PercentByte(encoded);
      if (byte < 0) return false;
      c = static_cast<char>(byte);
      size = 3;
    } else if (c == '+') {
      c = ' ';
    }
    if (c != expected) return false;
    encoded.remove_prefix(size);
  }
  return encoded.empty();
}

// Calls `visit` with the name and the value of each part of `text`.
template <typename Visit>
void ForEachPair(std::string_view text, char separator, const Visit& visit) {
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    const std::string_view pair = text.substr(0, end);
    const size_t equals = std::min(pair.find('='), pair.size());
    visit(pair.substr(0, equals), pair.substr(std::min(equals + 1, pair.size())));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

Lookup FindInQuery(std::string_view query, std::string_view name, std::string& out) {
  Lookup found = Lookup::kAbsent;
  std::string_view encoded;
  ForEachPair(query, '&', [&](std::string_view pair_name, std::string_view pair_value) {
    if (!IsName(pair_name, name)) return;
    found = found == Lookup::kAbsent ? Lookup::kFound : Lookup::kTwice;
    encoded = pair_value;
  });
  if (found != Lookup::kFound) return found;
  return AppendDecoded(encoded, ' ', out) ? Lookup::kFound : Lookup::kInvalid;
}

Lookup FindInCookies(std::string_view line, std::string_view name, std::string_view& value) {
  Lookup found = Lookup::kAbsent;
  std::string_view text;
  ForEachPair(line, ';', [&](std::string_view pair_name, std::string_view pair_value) {
    if (base::Trimmed(pair_name) != name) return;
    found = found == Lookup::kAbsent ? Lookup::kFound : Lookup::kTwice;
    text = base::Trimmed(pair_value);
  });
  if (found != Lookup::kFound) return found;
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    text = text.substr(1, text.size() - 2);
  const bool valid = std::all_of(text.begin(), text.end(), [](char c) {
    return c != '"' && c != '\\' && static_cast<unsigned char>(c) < 0x80;
  });
  if (!valid) return Lookup::kInvalid;
  value = text;
  return Lookup::kFound;
}

bool DecodeCookie(std::string_view value, std::string& out) {
  bool has_escape = false;
  for (size_t at = value.find('%'); at != value.npos; at = value.find('%', at + 1))
    has_escape = has_escape || PercentByte(value.substr(at)) >= 0;
  if (!has_escape) {
    out.append(value);
    return true;
  }
  const size_t begin = out.size();
  return AppendDecoded(value, '+', out) && base::IsUtf8(std::string_view(out).substr(begin));
}

}  // namespace headgate::wire

#include "headgate/wire/named_values.h"

#include <algorithm>

#include "headgate/base/percent.h"
#include "headgate/base/text.h"
#include "headgate/base/utf8.h"
#include "headgate/wire/alike_names.h"
#include "headgate/wire/readings.h"

namespace headgate::wire {
namespace {

// Appends the decoded text. False if an escape is broken or stands for a control character.
bool AppendDecoded(std::string_view text, char for_plus, std::string& out) {
  while (!text.empty()) {
    char c = text.front();
    if (c == '%') {
      const int byte = base::PercentByte(text);
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

bool HasControlsDecoded(std::string_view encoded) {
  for (; !encoded.empty(); encoded.remove_prefix(1)) {
    const int byte = base::PercentByte(encoded);
    if (base::IsControl(byte < 0 ? encoded.front() : static_cast<char>(byte))) return true;
  }
  return false;
}

bool IsAscii(char c) { return static_cast<unsigned char>(c) < 0x80; }

// Whether a reader may begin the name of a cookie behind this character.
bool EndsCookie(char c) {
  return c == ';' || Has(CharactersOf(Use::kRefusedInCookie), c) || !IsAscii(c);
}

// Whether a reader may find the name inside `part` (the text between two `;`), behind other text.
bool HidesName(std::string_view part, std::string_view name) {
  part = base::Trimmed(part);
  size_t begin = 0;  // the range of the last word in `part`
  size_t end = 0;
  bool is_behind = false;  // whether the word follows a character that ends a cookie
  bool ended = true;       // whether such a character, or nothing, precedes the next word
  for (size_t i = 0; i < part.size(); ++i) {
    if (part[i] == '=') {
      if (is_behind && IsAlikeName(part.substr(begin, end - begin), NameCoding::kEscaped, name))
        return true;
      is_behind = ended = false;
    } else if (EndsCookie(part[i])) {
      ended = true;
    } else {
      if (ended) {
        is_behind = i > 0;
        begin = i;
        ended = false;
      }
      end = i + 1;
    }
  }
  return false;
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

Lookup FindInQuery(std::string_view query, std::string_view name, std::string& out, Why* why) {
  const CharacterSet& refused = CharactersOf(Use::kRefusedInQuery);
  if (std::any_of(query.begin(), query.end(), [&](char c) { return Has(refused, c); })) {
    Refuse(why, "some servers separate parameters at a ';' in the query");
    return Lookup::kInvalid;
  }
  Lookup found = Lookup::kAbsent;
  std::string_view encoded_name;
  std::string_view encoded;
  ForEachPair(query, '&', [&](std::string_view pair_name, std::string_view pair_value) {
    if (!IsAlikeName(pair_name, NameCoding::kForm, name)) return;
    found = found == Lookup::kAbsent ? Lookup::kFound : Lookup::kTwice;
    encoded_name = pair_name;
    encoded = pair_value;
  });
  if (found == Lookup::kTwice)
    Refuse(why, "the parameter comes twice, perhaps under a name that some servers take for it");
  if (found != Lookup::kFound) return found;
  const size_t begin = out.size();
  const bool valid = !HasControlsDecoded(encoded_name) && AppendDecoded(encoded, ' ', out) &&
                     base::IsUtf8(std::string_view(out).substr(begin));
  if (valid) {
    // Many applications remove spaces at the ends.
    const std::string_view all = std::string_view(out).substr(begin);
    const std::string_view trimmed = base::Trimmed(all);
    const auto front = static_cast<size_t>(trimmed.data() - all.data());
    out.resize(begin + front + trimmed.size());
    out.erase(begin, front);
    return Lookup::kFound;
  }
  Refuse(why,
         "the parameter has a broken escape, a control character, or bytes that are not UTF-8");
  return Lookup::kInvalid;
}

Lookup FindInCookies(std::string_view line, std::string_view name, std::string_view& value,
                     Why* why) {
  Lookup found = Lookup::kAbsent;
  bool hides = false;
  std::string_view text;
  ForEachPair(line, ';', [&](std::string_view pair_name, std::string_view pair_value) {
    hides = hides || HidesName({pair_name.begin(), pair_value.end()}, name);
    if (!IsAlikeName(base::Trimmed(pair_name), NameCoding::kEscaped, name)) return;
    found = found == Lookup::kAbsent ? Lookup::kFound : Lookup::kTwice;
    text = base::Trimmed(pair_value);
  });
  if (hides) {
    Refuse(why, "its name and a '=' follow a space, comma or quote in another cookie");
    return Lookup::kInvalid;
  }
  if (found == Lookup::kTwice)
    Refuse(why, "the cookie comes twice, perhaps under a name that some servers take for it");
  if (found != Lookup::kFound) return found;
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    text = text.substr(1, text.size() - 2);
  const CharacterSet& refused = CharactersOf(Use::kRefusedInCookie);
  const bool valid =
      std::all_of(text.begin(), text.end(), [&](char c) { return !Has(refused, c) && IsAscii(c); });
  if (!valid) {
    Refuse(why, "the cookie has a space, comma, quote, '\\', or a byte that is not ASCII");
    return Lookup::kInvalid;
  }
  value = text;
  return Lookup::kFound;
}

bool DecodeCookie(std::string_view value, std::string& out, Why* why) {
  bool has_escape = false;
  for (size_t at = value.find('%'); at != value.npos; at = value.find('%', at + 1))
    has_escape = has_escape || base::PercentByte(value.substr(at)) >= 0;
  if (!has_escape) {
    out.append(value);
    return true;
  }
  const size_t begin = out.size();
  if (!AppendDecoded(value, '+', out) || !base::IsUtf8(std::string_view(out).substr(begin))) {
    return Refuse(why,
                  "some escapes of the cookie are broken, or stand for a control character or for "
                  "bytes that are not UTF-8");
  }
  std::replace(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end(), ' ', '+');
  return true;
}

}  // namespace headgate::wire

#include "headgate/store/redis/error_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "headgate/base/text.h"

namespace headgate::store::redis {
namespace {

// The prefix of all our names.
constexpr std::string_view kKeyPrefix = "hg:";
constexpr std::string_view kArguments = "with args beginning with";

bool IsLowerHexDigit(char c) { return !base::IsUpper(c) && base::HexValue(c) >= 0; }
bool IsWordCharacter(char c) {
  return base::IsLetterOrDigit(c) || c == '_' || c == '|' || c == '-';
}

// The first quotation mark. An apostrophe as in "can't" does not count.
size_t FindQuote(std::string_view text) {
  constexpr std::string_view kQuotes = "'\"`";
  size_t at = text.find_first_of(kQuotes);
  while (at != std::string_view::npos && at > 0 && at + 1 < text.size() && text[at] == '\'' &&
         base::IsLetter(text[at - 1]) && base::IsLetter(text[at + 1])) {
    at = text.find_first_of(kQuotes, at + 1);
  }
  return at;
}

// The number of characters at the end of `text` that are all of `kind`.
template <typename Kind>
size_t CountAtEnd(std::string_view text, const Kind& kind) {
  return static_cast<size_t>(std::find_if_not(text.rbegin(), text.rend(), kind) - text.rbegin());
}

// The end of `text` if it has the form " script: SHA1, on @user_script:LINE.", which says where a
// script failed; otherwise empty.
std::string_view ScriptPlace(std::string_view text) {
  constexpr std::string_view kOn = ", on @user_script:";
  constexpr std::string_view kScript = " script: ";
  constexpr size_t kSha1Digits = 40;
  std::string_view rest = text;
  if (!rest.ends_with('.')) return {};
  rest.remove_suffix(1);
  const size_t digits = CountAtEnd(rest, base::IsDigit);
  rest.remove_suffix(digits);
  if (digits == 0 || !rest.ends_with(kOn)) return {};
  rest.remove_suffix(kOn.size());
  if (CountAtEnd(rest, IsLowerHexDigit) != kSha1Digits) return {};
  rest.remove_suffix(kSha1Digits);
  if (!rest.ends_with(kScript)) return {};
  return text.substr(rest.size() - kScript.size());
}

// The position of the first quotation, or the end of `text`. A first quotation that is a plain
// word, such as a command, is skipped. Quoted text may itself contain quotes, so nothing behind a
// quotation can be told from it.
size_t FindQuotation(std::string_view text) {
  constexpr std::string_view kQuotes = "'\"`";
  const size_t begin = FindQuote(text);
  if (begin == std::string_view::npos) return text.size();
  const size_t end = text.find(text[begin], begin + 1);
  if (end == std::string_view::npos) return begin;
  const std::string_view quoted = text.substr(begin + 1, end - begin - 1);
  const bool word = std::all_of(quoted.begin(), quoted.end(), IsWordCharacter);
  const bool closed = end + 1 == text.size() || !IsWordCharacter(text[end + 1]);
  return word && closed ? std::min(text.find_first_of(kQuotes, end + 1), text.size()) : begin;
}

}  // namespace

std::string WithoutArguments(std::string_view error) {
  const size_t end =
      std::min({error.find(kArguments), error.find(kKeyPrefix), FindQuotation(error)});
  if (end == error.size()) return std::string(error);
  std::string_view shown = error.substr(0, end);
  shown = shown.substr(0, shown.find_last_not_of(" ,") + 1);
  return fmt::format("{} …{}", shown, ScriptPlace(error));
}

}  // namespace headgate::store::redis

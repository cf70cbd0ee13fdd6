#include "headgate/store/redis/error_text.h"

#include <algorithm>

namespace headgate::store::redis {
namespace {

// Every name of ours begins so.
constexpr std::string_view kKeyPrefix = "hg:";
constexpr std::string_view kArguments = "with args beginning with";

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '|' || c == '-';
}

// Where quotations begin, but for a first one that is a plain word, such as a command; the end where there are none.
// What stands between quotes may itself hold quotes, so that nothing behind it can be told from it.
size_t FindQuotation(std::string_view text) {
  constexpr std::string_view kQuotes = "'\"`";
  const size_t begin = text.find_first_of(kQuotes);
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
  const size_t end = std::min({error.find(kArguments), error.find(kKeyPrefix), FindQuotation(error)});
  if (end == error.size()) return std::string(error);
  std::string_view shown = error.substr(0, end);
  shown = shown.substr(0, shown.find_last_not_of(" ,") + 1);
  return std::string(shown) + " …";
}

}  // namespace headgate::store::redis

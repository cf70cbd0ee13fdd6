#include "headgate/replay/access_log.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "headgate/wire/json.h"

namespace headgate::replay {
namespace {

using wire::Json;

constexpr int64_t kSecondsMax = int64_t{230} * 366 * 86'400;
constexpr int64_t kNanosPerSecond = 1'000'000'000;
constexpr size_t kFractionDigits = 9;
constexpr const char* kTimeMembers[] = {"@timestamp",   "time",       "timestamp", "ts",
                                        "time_iso8601", "time_local", "msec"};

std::optional<base::Instant> ParseByFormat(const std::string& format, std::string_view text) {
  absl::Time time;
  if (!absl::ParseTime(format, absl::string_view(text.data(), text.size()), &time, nullptr))
    return std::nullopt;
  if (time < absl::UnixEpoch() || absl::ToUnixSeconds(time) > kSecondsMax) return std::nullopt;
  return base::Instant::FromNanos(absl::ToUnixNanos(time));
}

// "1795601635.123", or "1795601635123" in milliseconds.
std::optional<base::Instant> ParseSeconds(std::string_view text) {
  constexpr int64_t kMillisMin = int64_t{100'000'000} * 1'000;  // as seconds, the year 5138
  int64_t seconds = 0;
  const char* const end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, seconds);
  if (error != std::errc()) return std::nullopt;
  if (seconds >= kMillisMin && seconds / 1'000 <= kSecondsMax && at == end)
    return base::Instant::FromNanos(seconds * (kNanosPerSecond / 1'000));
  if (seconds > kSecondsMax) return std::nullopt;
  int64_t nanos = 0;
  if (at != end) {
    if (*at++ != '.' || at == end) return std::nullopt;
    size_t digits = 0;
    for (; at != end; ++at) {
      if (*at < '0' || *at > '9') return std::nullopt;
      if (digits == kFractionDigits) continue;
      nanos = nanos * 10 + (*at - '0');
      ++digits;
    }
    for (; digits < kFractionDigits; ++digits) nanos *= 10;
  }
  return base::Instant::FromNanos(seconds * kNanosPerSecond + nanos);
}

// Whether the digits can be a Unix time, rather than a status, a size or a duration.
bool MayBeSeconds(std::string_view text) {
  constexpr size_t kDigitsMin = 10;  // since 2001
  const size_t digits = text.find_first_not_of("0123456789");
  return std::min(digits, text.size()) >= kDigitsMin;
}

// The next word of `line`, which is taken from its front. False at the end.
bool TakeWord(std::string_view& line, std::string_view& word) {
  const size_t begin = line.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return false;
  line.remove_prefix(begin);
  const char close = line[0] == '"' ? '"' : line[0] == '[' ? ']' : ' ';
  if (close == ' ') {
    word = line.substr(0, line.find_first_of(" \t\r\n"));
    line.remove_prefix(word.size());
    return true;
  }
  size_t end = 1;
  while (end < line.size() && line[end] != close) end += line[end] == '\\' ? 2u : 1u;
  end = std::min(end, line.size());
  word = line.substr(1, end - 1);
  line.remove_prefix(std::min(end + 1, line.size()));
  return true;
}

std::string_view IdOf(std::string_view word) { return word == "-" ? std::string_view() : word; }

// A text, or the JSON of another value.
std::string TextOf(const Json& value) {
  return value.is_string() ? std::string(value.text()) : value.Text();
}

}  // namespace

absl::StatusOr<ClientPlace> ClientPlace::Parse(std::string_view text) {
  int word = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, word);
  const bool is_number = error == std::errc() && at == end;
  if (text.empty() || (is_number && word == 0)) {
    return absl::InvalidArgumentError(
        "the client is the number of a word (1 is the first, -1 the last), or the name of a "
        "member of JSON");
  }
  if (is_number) return ClientPlace{.word = word};
  return ClientPlace{.word = 0, .member = std::string(text)};
}

std::optional<base::Instant> ParseLogTime(std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (MayBeSeconds(text)) return ParseSeconds(text);
  if (const auto time = ParseByFormat("%d/%b/%Y:%H:%M:%E*S %z", text)) return time;
  return ParseByFormat(absl::RFC3339_full, text);
}

std::optional<LoggedRequest> AccessLogReader::Read(std::string_view line) {
  if (line.size() > kLogLineBytesMax) return std::nullopt;
  return client_.member.empty() ? ReadText(line) : ReadJson(line);
}

std::optional<LoggedRequest> AccessLogReader::ReadText(std::string_view line) {
  words_.clear();
  std::optional<base::Instant> at;
  for (std::string_view word; TakeWord(line, word);) {
    if (!at) at = ParseLogTime(word);
    words_.push_back(word);
  }
  const auto count = static_cast<int64_t>(words_.size());
  const int64_t place = client_.word > 0 ? client_.word - 1 : count + client_.word;
  if (!at || place < 0 || place >= count) return std::nullopt;
  return LoggedRequest{.at = *at, .client = IdOf(words_[static_cast<size_t>(place)])};
}

std::optional<LoggedRequest> AccessLogReader::ReadJson(std::string_view line) {
  const Json object = Json::Parse(line).value_or(nullptr);
  const Json* const client = object.Find(client_.member);
  if (client == nullptr) return std::nullopt;
  for (const char* const name : kTimeMembers) {
    const Json* const member = object.Find(name);
    const auto at = member == nullptr ? std::nullopt : ParseLogTime(TextOf(*member));
    if (!at) continue;
    name_ = client->is_null() ? "" : TextOf(*client);
    return LoggedRequest{.at = *at, .client = IdOf(name_)};
  }
  return std::nullopt;
}

}  // namespace headgate::replay

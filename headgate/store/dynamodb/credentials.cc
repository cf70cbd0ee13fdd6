#include "headgate/store/dynamodb/credentials.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>

#include "headgate/base/text.h"
#include "headgate/wire/json.h"

namespace headgate::store::dynamodb {
namespace {

absl::Status BadCredentials(std::string what) {
  return absl::InvalidArgumentError(std::move(what));
}

bool IsPrintable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

// The digits of `text` from `at` to `end`; -1 if they are not digits.
int NumberIn(std::string_view text, size_t at, size_t size) {
  int number = -1;
  if (at + size > text.size()) return -1;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + size, number);
  return error == std::errc() && end == text.data() + at + size ? number : -1;
}

// "2026-11-25T12:00:00Z", also with a fraction, which is cut.
std::optional<base::WallTime> TimeIn(std::string_view text) {
  const int year = NumberIn(text, 0, 4), month = NumberIn(text, 5, 2), day = NumberIn(text, 8, 2);
  const int hour = NumberIn(text, 11, 2), minute = NumberIn(text, 14, 2),
            second = NumberIn(text, 17, 2);
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!text.ends_with('Z') || year < 1970 || year > 2200 || !date.ok() || hour < 0 || hour > 23 ||
      minute < 0 || minute > 59 || second < 0 || second > 60)
    return std::nullopt;
  const auto time = std::chrono::sys_days(date).time_since_epoch() + std::chrono::hours(hour) +
                    std::chrono::minutes(minute) + std::chrono::seconds(second);
  return base::WallTime::FromNanos(std::chrono::nanoseconds(time).count());
}

std::string_view NextLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

}  // namespace

bool AreUsable(const Credentials& credentials) {
  return !credentials.access_key.empty() && !credentials.secret_key.empty() &&
         IsPrintable(credentials.access_key) && IsPrintable(credentials.secret_key) &&
         IsPrintable(credentials.session_token);
}

absl::StatusOr<std::optional<Credentials>> CredentialsInEnvironment(
    const Environment& environment) {
  Credentials found{.access_key = environment("AWS_ACCESS_KEY_ID"),
                    .secret_key = environment("AWS_SECRET_ACCESS_KEY"),
                    .session_token = environment("AWS_SESSION_TOKEN")};
  if (found.access_key.empty() && found.secret_key.empty()) return std::nullopt;
  if (found.access_key.empty() || found.secret_key.empty())
    return BadCredentials("of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY only one is set");
  if (!AreUsable(found))
    return BadCredentials("a key in the environment has spaces or control characters");
  return found;
}

absl::StatusOr<Credentials> CredentialsInFile(std::string_view text, std::string_view profile) {
  Credentials found;
  bool is_in_profile = false;
  bool has_profile = false;
  while (!text.empty()) {
    const std::string_view line = NextLine(text);
    const std::string_view trimmed = base::Trimmed(line);
    if (trimmed.empty() || trimmed.front() == '#' || trimmed.front() == ';') continue;
    if (trimmed.front() == '[') {
      const std::string_view name =
          base::Trimmed(trimmed.substr(1, std::min(trimmed.find(']'), trimmed.size()) - 1));
      is_in_profile = name == profile;
      has_profile = has_profile || is_in_profile;
      continue;
    }
    const size_t equals = trimmed.find('=');
    // An indented line belongs to the setting before it.
    if (!is_in_profile || equals == std::string_view::npos || line.front() != trimmed.front())
      continue;
    const std::string_view name = base::Trimmed(trimmed.substr(0, equals));
    const std::string value(base::Trimmed(trimmed.substr(equals + 1)));
    if (base::EqualsIgnoreCase(name, "aws_access_key_id")) found.access_key = value;
    if (base::EqualsIgnoreCase(name, "aws_secret_access_key")) found.secret_key = value;
    if (base::EqualsIgnoreCase(name, "aws_session_token")) found.session_token = value;
  }
  if (!has_profile) return absl::NotFoundError(fmt::format("there is no profile [{}]", profile));
  if (!AreUsable(found)) {
    return BadCredentials(fmt::format(
        "the profile [{}] has no aws_access_key_id and aws_secret_access_key that can be used",
        profile));
  }
  return found;
}

absl::StatusOr<Credentials> CredentialsInJson(std::string_view text) {
  const wire::Json answer = wire::Json::Parse(text).value_or(nullptr);
  if (!answer.is_object()) return BadCredentials("the answer is not a JSON object");
  const auto member = [&](const char* name) { return std::string(answer[name].text()); };
  Credentials found{.access_key = member("AccessKeyId"),
                    .secret_key = member("SecretAccessKey"),
                    .session_token = member("Token")};
  if (!AreUsable(found)) return BadCredentials("the answer has no keys that can be used");
  if (const std::string expiration = member("Expiration"); !expiration.empty()) {
    found.expires_at = TimeIn(expiration);
    if (!found.expires_at) return BadCredentials("the answer's Expiration is not a time in UTC");
  }
  return found;
}

}  // namespace headgate::store::dynamodb

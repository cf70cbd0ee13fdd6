#include "headgate/wire/http_fields.h"

#include <algorithm>
#include <span>

#include "absl/strings/escaping.h"
#include "headgate/base/digits.h"

namespace headgate::wire {
namespace {

constexpr uint64_t kSfIntegerMax = 999'999'999'999'999;

uint64_t SecondsUp(base::Duration d) {
  return static_cast<uint64_t>(
      std::max<int64_t>(0, std::chrono::ceil<std::chrono::seconds>(d).count()));
}

void AppendParameter(std::string_view name, uint64_t value, std::string& out) {
  out.append(";").append(name).append("=");
  AppendSfInteger(value, out);
}

// Appends ;w=60. A window that is not whole seconds is left out.
void AppendWindow(base::Duration window, std::string& out) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(window);
  if (seconds.count() > 0 && seconds == window)
    AppendParameter("w", static_cast<uint64_t>(seconds.count()), out);
}

// A byte sequence (RFC 9651, 4.1.8).
void AppendPartitionKey(const RateLimitState& state, std::string& out) {
  if (!state.partition_key) return;
  const auto& key = *state.partition_key;
  const std::string encoded = absl::Base64Escape(
      {static_cast<const char*>(static_cast<const void*>(key.data())), key.size()});
  out.append(";pk=:").append(encoded).append(":");
}

// Appends printable ASCII; percent-encodes everything else, so that no field can end early.
void AppendVisible(std::string_view text, std::string& out) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7E) {
      out.push_back('%');
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    } else {
      out.push_back(c);
    }
  }
}

// The name of the limit. Parts need no escaping.
void AppendPolicyName(const RateLimitState& state, std::string& out) {
  AppendSfString(state.policy, out);
  if (state.policy_part.empty()) return;
  out.pop_back();
  out.append(state.policy_part).push_back('"');
}

uint64_t InUnits(uint64_t count, const RateLimitState& state) {
  return count > kSfIntegerMax / state.unit_size ? kSfIntegerMax : count * state.unit_size;
}

// Unix time, clamped to the bounds of instants.
base::Duration ResetTime(const RateLimitState& state, base::WallTime now) {
  return std::chrono::nanoseconds(now.ns) + std::min(state.reset_after, base::kDurationMax / 2);
}

// Each function writes a value, or returns false if there is nothing to write.
bool WritePolicy(const RateLimitState& state, base::WallTime /*now*/, std::string& out) {
  AppendPolicyName(state, out);
  AppendParameter("q", InUnits(state.quota, state), out);
  if (state.unit != QuotaUnit::kRequests)
    out.append(";qu=\"").append(Name(state.unit)).append("\"");
  AppendWindow(state.window, out);
  AppendPartitionKey(state, out);
  return true;
}

// `r` is the available part of the quota `q`; it can exceed `q`, because a burst may hold more. `t`
// is the time until more is available; it is optional and left out if it would be empty.
// Retry-After must not be earlier than `t`, so for a denied request `t` has the value of
// Retry-After.
bool WriteRateLimit(const RateLimitState& state, base::WallTime /*now*/, std::string& out) {
  AppendPolicyName(state, out);
  AppendParameter("r", InUnits(std::min(state.remaining, state.quota), state), out);
  const bool waits = state.denied && state.retry_after.has_value();
  const uint64_t window = waits ? RetryAfterSeconds(*state.retry_after)
                                : SecondsUp(state.more_after.value_or(base::Duration(0)));
  if (window > 0) AppendParameter("t", window, out);
  AppendPartitionKey(state, out);
  return true;
}

bool WriteLimit(const RateLimitState& state, base::WallTime /*now*/, std::string& out) {
  AppendSfInteger(state.limit, out);
  return true;
}

bool WriteRemaining(const RateLimitState& state, base::WallTime /*now*/, std::string& out) {
  AppendSfInteger(state.remaining, out);
  return true;
}

bool WriteReset(const RateLimitState& state, base::WallTime /*now*/, std::string& out) {
  if (state.limit == 0) return false;  // nothing will be available, however long the client waits
  AppendSfInteger(SecondsUp(state.reset_after), out);
  return true;
}

bool WriteRetryAfter(const RateLimitState& state, base::WallTime /*now*/, std::string& out) {
  if (!state.denied || !state.retry_after) return false;
  AppendSfInteger(RetryAfterSeconds(*state.retry_after), out);
  return true;
}

// The quota in the form of drafts 3 to 7: 100;w=60.
bool WriteOldPolicy(const RateLimitState& state, base::WallTime /*now*/, std::string& out) {
  AppendSfInteger(state.quota, out);
  AppendWindow(state.window, out);
  return true;
}

bool WriteLimitAndPolicy(const RateLimitState& state, base::WallTime now, std::string& out) {
  AppendSfInteger(state.quota, out);
  out.append(", ");
  return WriteOldPolicy(state, now, out);
}

bool WriteDraft7(const RateLimitState& state, base::WallTime /*now*/, std::string& out) {
  out.append("limit=");
  AppendSfInteger(state.quota, out);
  out.append(", remaining=");
  AppendSfInteger(state.remaining, out);
  if (state.limit == 0) return true;  // nothing will be available
  out.append(", reset=");
  AppendSfInteger(SecondsUp(state.reset_after), out);
  return true;
}

bool WriteUsed(const RateLimitState& state, base::WallTime /*now*/, std::string& out) {
  AppendSfInteger(state.limit - std::min(state.limit, state.remaining), out);
  return true;
}

bool WriteResource(const RateLimitState& state, base::WallTime /*now*/, std::string& out) {
  AppendVisible(state.policy, out);
  out.append(state.policy_part);
  return true;
}

// Unix time in seconds, rounded up.
bool WriteResetUnix(const RateLimitState& state, base::WallTime now, std::string& out) {
  if (state.limit == 0) return false;
  AppendSfInteger(SecondsUp(ResetTime(state, now)), out);
  return true;
}

// As Go writes a duration, in milliseconds, rounded up: 6m0s, 12ms, 1.5s.
bool WriteResetGo(const RateLimitState& state, base::WallTime /*now*/, std::string& out) {
  if (state.limit == 0) return false;
  const auto total = std::chrono::ceil<std::chrono::milliseconds>(
      std::clamp(state.reset_after, base::Duration(0), base::kDurationMax));
  if (total.count() > 0 && total < std::chrono::seconds(1)) {
    base::AppendNumber(static_cast<uint64_t>(total.count()), out);
    out.append("ms");
    return true;
  }
  const std::chrono::hh_mm_ss time(total);
  if (time.hours().count() > 0) {
    base::AppendNumber(static_cast<uint64_t>(time.hours().count()), out);
    out.push_back('h');
  }
  if (total >= std::chrono::minutes(1)) {
    base::AppendNumber(static_cast<uint64_t>(time.minutes().count()), out);
    out.push_back('m');
  }
  base::AppendNumber(static_cast<uint64_t>(time.seconds().count()), out);
  if (const int64_t ms = time.subseconds().count(); ms > 0) {
    out.append({'.', static_cast<char>('0' + ms / 100), static_cast<char>('0' + ms / 10 % 10),
                static_cast<char>('0' + ms % 10)});
    out.erase(out.find_last_not_of('0') + 1);
  }
  out.push_back('s');
  return true;
}

void AppendTwoDigits(unsigned number, std::string& out) {
  out.append({static_cast<char>('0' + number / 10 % 10), static_cast<char>('0' + number % 10)});
}

// RFC 3339, in whole seconds, rounded up: 2026-11-28T18:00:00Z.
bool WriteResetDate(const RateLimitState& state, base::WallTime now, std::string& out) {
  if (state.limit == 0) return false;
  const std::chrono::sys_seconds time{std::chrono::ceil<std::chrono::seconds>(
      std::clamp(ResetTime(state, now), base::Duration(0), base::kDurationMax))};
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date{day};
  const std::chrono::hh_mm_ss of_day{time - day};
  base::AppendNumber(static_cast<uint64_t>(static_cast<int>(date.year())), out);
  out.push_back('-');
  AppendTwoDigits(static_cast<unsigned>(date.month()), out);
  out.push_back('-');
  AppendTwoDigits(static_cast<unsigned>(date.day()), out);
  out.push_back('T');
  AppendTwoDigits(static_cast<unsigned>(of_day.hours().count()), out);
  out.push_back(':');
  AppendTwoDigits(static_cast<unsigned>(of_day.minutes().count()), out);
  out.push_back(':');
  AppendTwoDigits(static_cast<unsigned>(of_day.seconds().count()), out);
  out.push_back('Z');
  return true;
}

using WriteValue = bool (*)(const RateLimitState& state, base::WallTime now, std::string& out);
struct FieldRow {
  // The unit that the field describes; absent: any unit.
  std::optional<QuotaUnit> unit{};
  std::string_view name;
  WriteValue write;
};

constexpr FieldRow kAll[] = {{{}, "RateLimit-Policy", WritePolicy},
                             {{}, "RateLimit", WriteRateLimit},
                             {{}, "X-RateLimit-Limit", WriteLimit},
                             {{}, "X-RateLimit-Remaining", WriteRemaining},
                             {{}, "X-RateLimit-Reset", WriteReset}};
constexpr FieldRow kDraft[] = {{{}, "RateLimit-Policy", WritePolicy},
                               {{}, "RateLimit", WriteRateLimit}};
constexpr FieldRow kDraft7[] = {{{}, "RateLimit-Policy", WriteOldPolicy},
                                {{}, "RateLimit", WriteDraft7}};
constexpr FieldRow kDraft6[] = {{{}, "RateLimit-Policy", WriteOldPolicy},
                                {{}, "RateLimit-Limit", WriteLimit},
                                {{}, "RateLimit-Remaining", WriteRemaining},
                                {{}, "RateLimit-Reset", WriteReset}};
constexpr FieldRow kDraft3[] = {{{}, "RateLimit-Limit", WriteLimitAndPolicy},
                                {{}, "RateLimit-Remaining", WriteRemaining},
                                {{}, "RateLimit-Reset", WriteReset}};
constexpr FieldRow kGithub[] = {{{}, "X-RateLimit-Limit", WriteLimit},
                                {{}, "X-RateLimit-Remaining", WriteRemaining},
                                {{}, "X-RateLimit-Used", WriteUsed},
                                {{}, "X-RateLimit-Reset", WriteResetUnix},
                                {{}, "X-RateLimit-Resource", WriteResource}};
constexpr FieldRow kTwitter[] = {{{}, "x-rate-limit-limit", WriteLimit},
                                 {{}, "x-rate-limit-remaining", WriteRemaining},
                                 {{}, "x-rate-limit-reset", WriteResetUnix}};
// These APIs have no limits of bytes or of requests in flight, and OpenAI has only one kind of
// tokens.
constexpr FieldRow kOpenai[] = {
    {QuotaUnit::kRequests, "x-ratelimit-limit-requests", WriteLimit},
    {QuotaUnit::kRequests, "x-ratelimit-remaining-requests", WriteRemaining},
    {QuotaUnit::kRequests, "x-ratelimit-reset-requests", WriteResetGo},
    {QuotaUnit::kTokens, "x-ratelimit-limit-tokens", WriteLimit},
    {QuotaUnit::kTokens, "x-ratelimit-remaining-tokens", WriteRemaining},
    {QuotaUnit::kTokens, "x-ratelimit-reset-tokens", WriteResetGo}};
constexpr FieldRow kAnthropic[] = {
    {QuotaUnit::kRequests, "anthropic-ratelimit-requests-limit", WriteLimit},
    {QuotaUnit::kRequests, "anthropic-ratelimit-requests-remaining", WriteRemaining},
    {QuotaUnit::kRequests, "anthropic-ratelimit-requests-reset", WriteResetDate},
    {QuotaUnit::kTokens, "anthropic-ratelimit-tokens-limit", WriteLimit},
    {QuotaUnit::kTokens, "anthropic-ratelimit-tokens-remaining", WriteRemaining},
    {QuotaUnit::kTokens, "anthropic-ratelimit-tokens-reset", WriteResetDate},
    {QuotaUnit::kInputTokens, "anthropic-ratelimit-input-tokens-limit", WriteLimit},
    {QuotaUnit::kInputTokens, "anthropic-ratelimit-input-tokens-remaining", WriteRemaining},
    {QuotaUnit::kInputTokens, "anthropic-ratelimit-input-tokens-reset", WriteResetDate},
    {QuotaUnit::kOutputTokens, "anthropic-ratelimit-output-tokens-limit", WriteLimit},
    {QuotaUnit::kOutputTokens, "anthropic-ratelimit-output-tokens-remaining", WriteRemaining},
    {QuotaUnit::kOutputTokens, "anthropic-ratelimit-output-tokens-reset", WriteResetDate}};

// In the order of RateLimitDialect.
constexpr std::span<const FieldRow> kDialects[] = {kAll,    kDraft,   kDraft7, kDraft6,    kDraft3,
                                                   kGithub, kTwitter, kOpenai, kAnthropic, {}};

std::span<const FieldRow> FieldsOf(RateLimitDialect dialect) {
  return kDialects[static_cast<size_t>(dialect)];
}

// The unit that a dialect calls this one.
QuotaUnit UnitIn(RateLimitDialect dialect, QuotaUnit unit) {
  const bool one_kind = dialect == RateLimitDialect::kOpenai &&
                        (unit == QuotaUnit::kInputTokens || unit == QuotaUnit::kOutputTokens);
  return one_kind ? QuotaUnit::kTokens : unit;
}

}  // namespace

uint64_t RetryAfterSeconds(base::Duration retry_after) {
  return std::max<uint64_t>(1, SecondsUp(retry_after));
}

void AppendSfInteger(uint64_t value, std::string& out) {
  base::AppendNumber(std::min(value, kSfIntegerMax), out);
}

void AppendSfString(std::string_view text, std::string& out) {
  out.push_back('"');
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find_first_of("\"\\", begin), text.size());
    AppendVisible(text.substr(begin, end - begin), out);
    if (end < text.size()) out.append({'\\', text[end]});
    begin = end + 1;
  }
  out.push_back('"');
}

void EmitRateLimitFields(const RateLimitState& state, RateLimitDialect dialect, base::WallTime now,
                         std::string& scratch, EmitField emit) {
  dialect = state.dialect.value_or(dialect);
  const QuotaUnit unit = UnitIn(dialect, state.unit);
  for (const FieldRow& row : FieldsOf(dialect)) {
    scratch.clear();
    if (row.unit.value_or(unit) == unit && row.write(state, now, scratch)) emit(row.name, scratch);
  }
  scratch.clear();
  if (WriteRetryAfter(state, now, scratch)) emit("Retry-After", scratch);
}

void EmitEmptyRateLimitFields(RateLimitDialect dialect, const RateLimitState* state,
                              EmitField emit) {
  const RateLimitDialect other =
      state == nullptr ? RateLimitDialect::kNone : state->dialect.value_or(dialect);
  const QuotaUnit unit = state == nullptr ? QuotaUnit::kRequests : UnitIn(other, state->unit);
  for (const FieldRow& row : FieldsOf(dialect)) {
    const std::span<const FieldRow> written = FieldsOf(other);
    const bool has = std::any_of(written.begin(), written.end(), [&](const FieldRow& field) {
      return field.unit.value_or(unit) == unit && field.name == row.name;
    });
    if (!has) emit(row.name, {});
  }
}

}  // namespace headgate::wire

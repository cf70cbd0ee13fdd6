#include "headgate/wire/http_fields.h"

#include <algorithm>
#include <charconv>

namespace headgate::wire {
namespace {

constexpr uint64_t kSfIntegerMax = 999'999'999'999'999;

uint64_t SecondsUp(base::Duration d) {
  return static_cast<uint64_t>(
      std::max<int64_t>(0, std::chrono::ceil<std::chrono::seconds>(d).count()));
}

// At least 1: a client that is told 0 asks again at once.
uint64_t RetryAfterSeconds(base::Duration retry_after) {
  return std::max<uint64_t>(1, SecondsUp(retry_after));
}

void AppendParameter(std::string_view name, uint64_t value, std::string& out) {
  out.append(";").append(name).append("=");
  AppendSfInteger(value, out);
}

// Each function writes a value, or returns false if there is nothing to write.
bool WritePolicy(const RateLimitState& state, std::string& out) {
  AppendSfString(state.policy, out);
  AppendParameter("q", state.quota, out);
  const auto seconds = std::chrono::floor<std::chrono::seconds>(state.window);
  if (seconds.count() > 0 && seconds == state.window)
    AppendParameter("w", static_cast<uint64_t>(seconds.count()), out);
  return true;
}

// `r` is what is available of the quota `q`; it can exceed `q`, because a burst may hold more. `t`
// is the window in which `r` is available; it is optional and left out if it would be empty. For a
// denied request the window ends at the time of Retry-After, which must not be earlier than `t`, so
// both have the same value.
bool WriteRateLimit(const RateLimitState& state, std::string& out) {
  AppendSfString(state.policy, out);
  AppendParameter("r", std::min(state.remaining, state.quota), out);
  const bool waits = state.denied && state.retry_after.has_value();
  const uint64_t window =
      waits ? RetryAfterSeconds(*state.retry_after) : SecondsUp(state.reset_after);
  if (window > 0) AppendParameter("t", window, out);
  return true;
}

bool WriteLimit(const RateLimitState& state, std::string& out) {
  AppendSfInteger(state.limit, out);
  return true;
}

bool WriteRemaining(const RateLimitState& state, std::string& out) {
  AppendSfInteger(state.remaining, out);
  return true;
}

bool WriteReset(const RateLimitState& state, std::string& out) {
  if (state.limit == 0) return false;  // nothing will be available, however long the client waits
  AppendSfInteger(SecondsUp(state.reset_after), out);
  return true;
}

bool WriteRetryAfter(const RateLimitState& state, std::string& out) {
  if (!state.denied || !state.retry_after) return false;
  AppendSfInteger(RetryAfterSeconds(*state.retry_after), out);
  return true;
}

struct FieldRow {
  RateLimitField field;
  std::string_view name;
  bool (*write)(const RateLimitState& state, std::string& out);
};
constexpr FieldRow kFields[] = {
    {RateLimitField::kPolicy, "RateLimit-Policy", WritePolicy},
    {RateLimitField::kRateLimit, "RateLimit", WriteRateLimit},
    {RateLimitField::kLimit, "X-RateLimit-Limit", WriteLimit},
    {RateLimitField::kRemaining, "X-RateLimit-Remaining", WriteRemaining},
    {RateLimitField::kReset, "X-RateLimit-Reset", WriteReset},
    {RateLimitField::kRetryAfter, "Retry-After", WriteRetryAfter},
};

}  // namespace

void AppendSfInteger(uint64_t value, std::string& out) {
  char digits[20];
  const auto [end, error] =
      std::to_chars(std::begin(digits), std::end(digits), std::min(value, kSfIntegerMax));
  out.append(digits, end);
}

void AppendSfString(std::string_view text, std::string& out) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  out.push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte > 0x7E) {
      out.push_back('%');
      out.push_back(kHex[byte >> 4]);
      out.push_back(kHex[byte & 15]);
    } else {
      if (c == '"' || c == '\\') out.push_back('\\');
      out.push_back(c);
    }
  }
  out.push_back('"');
}

void EmitRateLimitFields(
    const RateLimitState& state, RateLimitFieldSet selected, std::string& scratch,
    absl::FunctionRef<void(std::string_view name, std::string_view value)> emit) {
  for (const FieldRow& row : kFields) {
    if (!selected.Has(row.field)) continue;
    scratch.clear();
    if (row.write(state, scratch)) emit(row.name, scratch);
  }
}

}  // namespace headgate::wire

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

// At least 1: a client that is told 0 asks again at once.
uint64_t RetryAfterSeconds(base::Duration retry_after) {
  return std::max<uint64_t>(1, SecondsUp(retry_after));
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

// Each function writes a value, or returns false if there is nothing to write.
bool WritePolicy(const RateLimitState& state, std::string& out) {
  AppendSfString(state.policy, out);
  AppendParameter("q", state.quota, out);
  AppendWindow(state.window, out);
  AppendPartitionKey(state, out);
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
  AppendPartitionKey(state, out);
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

// The quota in the form of drafts 3 to 7: 100;w=60.
bool WriteOldPolicy(const RateLimitState& state, std::string& out) {
  AppendSfInteger(state.quota, out);
  AppendWindow(state.window, out);
  return true;
}

bool WriteLimitAndPolicy(const RateLimitState& state, std::string& out) {
  AppendSfInteger(state.quota, out);
  out.append(", ");
  return WriteOldPolicy(state, out);
}

bool WriteDraft7(const RateLimitState& state, std::string& out) {
  out.append("limit=");
  AppendSfInteger(state.quota, out);
  out.append(", remaining=");
  AppendSfInteger(state.remaining, out);
  out.append(", reset=");
  AppendSfInteger(SecondsUp(state.reset_after), out);
  return true;
}

bool WriteUsed(const RateLimitState& state, std::string& out) {
  AppendSfInteger(state.limit - std::min(state.limit, state.remaining), out);
  return true;
}

bool WriteResource(const RateLimitState& state, std::string& out) {
  AppendVisible(state.policy, out);
  return true;
}

using WriteValue = bool (*)(const RateLimitState& state, std::string& out);
struct FieldRow {
  std::string_view name;
  WriteValue write = nullptr;  // null: Unix time of the reset
};

constexpr FieldRow kAll[] = {{"RateLimit-Policy", WritePolicy},
                             {"RateLimit", WriteRateLimit},
                             {"X-RateLimit-Limit", WriteLimit},
                             {"X-RateLimit-Remaining", WriteRemaining},
                             {"X-RateLimit-Reset", WriteReset}};
constexpr FieldRow kDraft[] = {{"RateLimit-Policy", WritePolicy}, {"RateLimit", WriteRateLimit}};
constexpr FieldRow kDraft7[] = {{"RateLimit-Policy", WriteOldPolicy}, {"RateLimit", WriteDraft7}};
constexpr FieldRow kDraft6[] = {{"RateLimit-Policy", WriteOldPolicy},
                                {"RateLimit-Limit", WriteLimit},
                                {"RateLimit-Remaining", WriteRemaining},
                                {"RateLimit-Reset", WriteReset}};
constexpr FieldRow kDraft3[] = {{"RateLimit-Limit", WriteLimitAndPolicy},
                                {"RateLimit-Remaining", WriteRemaining},
                                {"RateLimit-Reset", WriteReset}};
constexpr FieldRow kGithub[] = {{"X-RateLimit-Limit", WriteLimit},
                                {"X-RateLimit-Remaining", WriteRemaining},
                                {"X-RateLimit-Used", WriteUsed},
                                {"X-RateLimit-Reset"},
                                {"X-RateLimit-Resource", WriteResource}};
constexpr FieldRow kTwitter[] = {{"x-rate-limit-limit", WriteLimit},
                                 {"x-rate-limit-remaining", WriteRemaining},
                                 {"x-rate-limit-reset"}};

struct DialectRow {
  std::string_view name;
  std::span<const FieldRow> fields;
};
// In the order of RateLimitDialect.
constexpr DialectRow kDialects[] = {
    {"all", kAll},        {"draft", kDraft},   {"draft-7", kDraft7},  {"draft-6", kDraft6},
    {"draft-3", kDraft3}, {"github", kGithub}, {"twitter", kTwitter}, {"none", {}}};

const DialectRow& RowOf(RateLimitDialect dialect) {
  return kDialects[static_cast<size_t>(dialect)];
}

// Unix time in seconds, rounded up.
bool WriteResetTime(const RateLimitState& state, base::WallTime now, std::string& out) {
  if (state.limit == 0) return false;
  const base::Duration since_epoch = std::chrono::nanoseconds(now.ns);
  AppendSfInteger(SecondsUp(since_epoch + std::min(state.reset_after, base::kDurationMax / 2)),
                  out);
  return true;
}

}  // namespace

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

std::string_view Name(RateLimitDialect dialect) { return RowOf(dialect).name; }

std::optional<RateLimitDialect> DialectByName(std::string_view name) {
  const auto found = std::find_if(std::begin(kDialects), std::end(kDialects),
                                  [&](const DialectRow& row) { return row.name == name; });
  if (found == std::end(kDialects)) return std::nullopt;
  return static_cast<RateLimitDialect>(found - std::begin(kDialects));
}

void EmitRateLimitFields(const RateLimitState& state, RateLimitDialect dialect, base::WallTime now,
                         std::string& scratch, EmitField emit) {
  for (const FieldRow& row : RowOf(dialect).fields) {
    scratch.clear();
    const bool written =
        row.write == nullptr ? WriteResetTime(state, now, scratch) : row.write(state, scratch);
    if (written) emit(row.name, scratch);
  }
  scratch.clear();
  if (WriteRetryAfter(state, scratch)) emit("Retry-After", scratch);
}

void EmitEmptyRateLimitFields(RateLimitDialect dialect, EmitField emit) {
  for (const FieldRow& row : RowOf(dialect).fields) emit(row.name, {});
}

}  // namespace headgate::wire

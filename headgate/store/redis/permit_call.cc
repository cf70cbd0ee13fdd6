#include "headgate/store/redis/permit_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "headgate/store/redis/bucket_call.h"
#include "headgate/store/redis/error_text.h"
#include "headgate/store/redis/script_texts.h"

namespace headgate::store::redis {
namespace {

using permit::Ask;
using wire::RespValue;
using Microseconds = std::chrono::microseconds;

// Longer than any permit lives, and it fits into nanoseconds.
constexpr int64_t kAfterMaxUs = std::chrono::floor<Microseconds>(base::kDurationMax).count();

std::string_view WordOf(Ask::Kind kind) {
  switch (kind) {
    case Ask::Kind::kAcquire:
      return "acquire";
    case Ask::Kind::kRelease:
      return "release";
    case Ask::Kind::kPeek:
      return "look";
    case Ask::Kind::kClear:
      return "clear";
  }
  __builtin_unreachable();
}

// Nothing if it is not a possible number of microseconds.
std::optional<base::Duration> ReadAfter(std::string_view text) {
  int64_t us = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), us);
  if (error != std::errc() || end != text.data() + text.size() || us < 0 || us > kAfterMaxUs)
    return std::nullopt;
  return Microseconds(us);
}

}  // namespace

PermitCall::PermitCall(const SharedPermits& request)
    : key_(request.name.size() > kNameBytesMax ? HashedName(request.name)
                                               : std::string(request.name)) {
  const Ask& ask = request.ask;
  const auto ttl =
      std::chrono::ceil<Microseconds>(std::clamp(ask.ttl, base::Duration(1), permit::kTtlMax));
  words_ = {std::string(WordOf(ask.kind)), fmt::format("{:016x}{:016x}", ask.id.high, ask.id.low),
            std::to_string(ask.max), std::to_string(ttl.count())};
}

const Script& PermitCall::script() {
  static const Script script = MakeScript("permits", kPermitsText);
  return script;
}

absl::StatusOr<permit::Answer> PermitCall::Read(const RespValue& reply) {
  using Outcome = permit::Answer::Outcome;
  if (reply.is_error()) return absl::UnavailableError(WithoutArguments(reply.text));
  if (reply.kind != RespValue::Kind::kArray || reply.items.size() != 5)
    return Unreadable("permits", reply);
  constexpr int64_t kCountMax = std::numeric_limits<uint32_t>::max();
  const int64_t outcome = reply.items[0].integer;
  const int64_t in_flight = reply.items[1].integer;
  const int64_t expired = reply.items[4].integer;
  const auto first = ReadAfter(reply.items[2].text);
  const auto last = ReadAfter(reply.items[3].text);
  if (outcome < 0 || outcome > static_cast<int64_t>(Outcome::kUnknown) || in_flight < 0 ||
      in_flight > kCountMax || expired < 0 || expired > kCountMax || !first || !last)
    return Unreadable("permits", reply);
  return permit::Answer{.outcome = static_cast<Outcome>(outcome),
                        .in_flight = static_cast<uint32_t>(in_flight),
                        .first_end_after = *first,
                        .last_end_after = *last,
                        .expired = static_cast<uint32_t>(expired)};
}

}  // namespace headgate::store::redis

#include "headgate/front/api/reservation.h"

#include <fmt/format.h>

#include <charconv>
#include <iterator>

#include "absl/strings/escaping.h"
#include "headgate/base/json.h"
#include "headgate/rule/rule_names.h"
#include "headgate/wire/digest.h"

namespace headgate::front::api {
namespace {

constexpr size_t kSealBytes = std::tuple_size_v<wire::Mac>;
constexpr int64_t kNanosPerMs = 1'000'000;

void AppendField(std::string_view name, std::string_view text, std::string& out) {
  out.append("\"").append(name).append("\":");
  base::AppendJsonString(text, out);
}

void AppendDescriptor(const rule::Descriptor& descriptor, std::string& out) {
  out.append(R"({"entries":[)");
  for (const rule::Entry& entry : descriptor.entries) {
    if (out.back() == '}') out.push_back(',');
    out.push_back('{');
    AppendField("key", entry.key, out);
    out.push_back(',');
    AppendField("value", entry.value, out);
    out.push_back('}');
  }
  out.append(R"(],"cost":)");
  base::AppendJsonNumber(descriptor.cost.value_or(1), out);
  if (const auto& limit = descriptor.override_limit) {
    out.append(R"(,"limit":{"requests_per_unit":)");
    base::AppendJsonNumber(uint64_t{limit->requests_per_unit}, out);
    out.push_back(',');
    AppendField("unit", rule::Name(limit->unit), out);
    out.push_back('}');
  }
  out.push_back('}');
}

// Reads a number and the character behind it, which is then in `end`. False if there is none.
template <typename Number>
bool TakeNumber(std::string_view& text, Number& number, char& end, int base = 10) {
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  const auto length = static_cast<size_t>(at - text.data());
  if (error != std::errc() || length == text.size()) return false;
  end = *at;
  text.remove_prefix(length + 1);
  return true;
}

bool TakeTakes(std::string_view& text, std::vector<ReservedTake>& takes) {
  for (char end = ','; end == ',';) {
    ReservedTake& take = takes.emplace_back();
    if (!TakeNumber(text, take.cost, end) || end != ':') return false;
    if (!TakeNumber(text, take.mark, end, 16) || end != ':') return false;
    if (!TakeNumber(text, take.at.ns, end) || (end != ',' && end != ' ')) return false;
  }
  return true;
}

}  // namespace

std::optional<std::string> SealReservation(const limiter::Request& request, std::string_view id,
                                           const Reservation& reservation,
                                           std::string_view secret) {
  std::string payload = fmt::format("{} {} {:x} ", reservation.expiry.ns / kNanosPerMs,
                                    reservation.taken_at.ns, reservation.place);
  for (const ReservedTake& take : reservation.takes)
    fmt::format_to(std::back_inserter(payload), "{}:{:x}:{},", take.cost, take.mark, take.at.ns);
  payload.back() = ' ';
  payload.push_back('{');
  AppendField("id", id, payload);
  payload.push_back(',');
  AppendField("domain", request.domain, payload);
  payload.append(R"(,"descriptors":[)");
  for (const rule::Descriptor& descriptor : request.descriptors) {
    if (payload.back() == '}') payload.push_back(',');
    AppendDescriptor(descriptor, payload);
  }
  payload.append("]}");
  const wire::Mac seal = wire::HmacSha256(secret, payload);
  const std::string sealed = std::string(seal.begin(), seal.end()) + payload;
  std::string token = absl::WebSafeBase64Escape(absl::string_view(sealed.data(), sealed.size()));
  if (token.size() > kReservationBytesMax) return std::nullopt;
  return token;
}

std::optional<OpenedReservation> OpenReservation(std::string_view token, std::string_view secret) {
  std::string sealed;
  if (token.size() > kReservationBytesMax ||
      !absl::WebSafeBase64Unescape(absl::string_view(token.data(), token.size()), &sealed) ||
      sealed.size() <= kSealBytes) {
    return std::nullopt;
  }
  const std::string_view payload = std::string_view(sealed).substr(kSealBytes);
  const std::string_view seal = std::string_view(sealed).substr(0, kSealBytes);
  const wire::Mac expected = wire::HmacSha256(secret, payload);
  if (!wire::EqualSecrets({expected.data(), expected.size()}, seal)) return std::nullopt;
  std::string_view rest = payload;
  int64_t expiry_ms = 0;
  int64_t taken_at_ns = 0;
  char end = 0;
  OpenedReservation opened;
  Reservation& reservation = opened.reservation;
  // If a member is missing, an older version sealed the reservation.
  const bool is_whole = TakeNumber(rest, expiry_ms, end) && TakeNumber(rest, taken_at_ns, end) &&
                        TakeNumber(rest, reservation.place, end, 16) &&
                        TakeTakes(rest, reservation.takes);
  if (!is_whole) return std::nullopt;
  reservation.expiry = base::Instant::FromNanos(expiry_ms * kNanosPerMs);
  reservation.taken_at = base::Instant::FromNanos(taken_at_ns);
  opened.check = std::string(rest);
  return opened;
}

}  // namespace headgate::front::api

#include "headgate/front/api/reservation.h"

#include <charconv>

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

}  // namespace

std::optional<std::string> SealReservation(const limiter::Request& request, std::string_view id,
                                           const ReservationTimes& times, std::string_view secret) {
  std::string payload = std::to_string(times.expiry.ns / kNanosPerMs) + " " +
                        std::to_string(times.taken_at.ns) + " {";
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
  const auto take_number = [&rest] {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error == std::errc()) rest.remove_prefix(static_cast<size_t>(end - rest.data()) + 1);
    return number;
  };
  const int64_t expiry_ms = take_number();
  const int64_t taken_at_ns = take_number();
  return OpenedReservation{.times = {.expiry = base::Instant::FromNanos(expiry_ms * kNanosPerMs),
                                     .taken_at = base::Instant::FromNanos(taken_at_ns)},
                           .check = std::string(rest)};
}

}  // namespace headgate::front::api

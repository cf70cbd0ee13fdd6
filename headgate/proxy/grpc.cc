#include "headgate/proxy/grpc.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "headgate/base/text.h"

namespace headgate::proxy {
namespace {

constexpr std::string_view kMediaType = "application/grpc";
constexpr std::string_view kTimeoutField = "grpc-timeout";
constexpr size_t kTimeoutDigitsMax = 8;
constexpr int64_t kTimeoutMax = 99'999'999;

struct Unit {
  char letter;
  int64_t ns;
};
// The finest first.
constexpr std::array kUnits = {
    Unit{'n', 1},
    Unit{'u', 1'000},
    Unit{'m', 1'000'000},
    Unit{'S', 1'000'000'000},
    Unit{'M', int64_t{60} * 1'000'000'000},
    Unit{'H', int64_t{3600} * 1'000'000'000},
};
// The longest timeout, 99,999,999 hours, does not fit; kDurationMax is 146 years.
constexpr int64_t kHoursMax = base::kDurationMax.count() / kUnits.back().ns;

}  // namespace

bool IsGrpc(const http::RequestHead& head) {
  return head.version == http::Version::kHttp2 && HasGrpcType(head.fields);
}

bool HasGrpcType(const http::Fields& fields) {
  const auto type = fields.Find("content-type");
  if (!type || type->size() < kMediaType.size() ||
      !base::EqualsIgnoreCase(type->substr(0, kMediaType.size()), kMediaType))
    return false;
  if (type->size() == kMediaType.size()) return true;
  const char next = (*type)[kMediaType.size()];
  return next == '+' || next == ';' || next == ' ';
}

std::optional<uint32_t> ReadGrpcStatus(const http::Fields& fields) {
  const auto text = fields.Find("grpc-status");
  if (!text || fields.CountOf("grpc-status") != 1) return std::nullopt;
  uint32_t status = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), status);
  if (error != std::errc() || end != text->data() + text->size()) return std::nullopt;
  return status;
}

// https://github.com/grpc/grpc/blob/master/doc/http-grpc-status-mapping.md maps answers of other
// programs. Headgate's own answers say more precisely what they mean.
GrpcStatus GrpcStatusOf(int http_status) {
  switch (http_status) {
    case 400:
      return GrpcStatus::kInternal;
    case 401:
      return GrpcStatus::kUnauthenticated;
    case 403:
      return GrpcStatus::kPermissionDenied;
    case 429:
      return GrpcStatus::kResourceExhausted;
    case 501:
      return GrpcStatus::kUnimplemented;
    case 502:
    case 503:
      return GrpcStatus::kUnavailable;
    case 408:
    case 504:
      return GrpcStatus::kDeadlineExceeded;
    default:
      return GrpcStatus::kUnknown;
  }
}

std::optional<base::Duration> ParseGrpcTimeout(std::string_view text) {
  if (text.size() < 2 || text.size() > kTimeoutDigitsMax + 1) return std::nullopt;
  const std::string_view digits = text.substr(0, text.size() - 1);
  if (!std::all_of(digits.begin(), digits.end(), base::IsDigit)) return std::nullopt;
  int64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const auto unit = std::find_if(kUnits.begin(), kUnits.end(),
                                 [&](const Unit& u) { return u.letter == text.back(); });
  if (unit == kUnits.end()) return std::nullopt;
  if (unit->letter == 'H') value = std::min(value, kHoursMax);
  return base::Duration(value * unit->ns);
}

std::string GrpcTimeout(base::Duration timeout) {
  const int64_t ns = std::max<int64_t>(0, timeout.count());
  const auto unit = std::find_if(kUnits.begin(), kUnits.end() - 1,
                                 [&](const Unit& u) { return ns / u.ns <= kTimeoutMax; });
  return std::to_string(ns / unit->ns) + unit->letter;
}

std::optional<base::Duration> GrpcTimeoutOf(const http::RequestHead& head) {
  if (!IsGrpc(head)) return std::nullopt;
  const auto text = head.fields.Find(kTimeoutField);
  return text ? ParseGrpcTimeout(*text) : std::nullopt;
}

void ShortenGrpcTimeout(base::Duration waited, http::RequestHead& head) {
  const auto timeout = GrpcTimeoutOf(head);
  if (!timeout) return;
  head.fields.Remove(kTimeoutField);
  head.fields.Add(kTimeoutField, GrpcTimeout(*timeout - waited));
}

void AppendGrpcMessage(std::string_view text, std::string& out) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte <= 0x7e && c != '%') {
      out.push_back(c);
      continue;
    }
    out.push_back('%');
    out.push_back(kHex[byte >> 4]);
    out.push_back(kHex[byte & 15]);
  }
}

}  // namespace headgate::proxy

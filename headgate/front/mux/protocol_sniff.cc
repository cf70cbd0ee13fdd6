#include "headgate/front/mux/protocol_sniff.h"

#include <algorithm>
#include <array>

#include "headgate/base/text.h"
#include "headgate/http/token.h"

namespace headgate::front::mux {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::array<std::string_view, 9> kMethods = {
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"};

// Whether the line, without its line end, ends with a version such as " HTTP/1.1".
bool EndsWithHttpVersion(std::string_view line) {
  constexpr std::string_view kMark = " HTTP/";
  if (line.size() < kMark.size() + 3) return false;
  const std::string_view tail = line.substr(line.size() - kMark.size() - 3);
  return tail.starts_with(kMark) && base::IsDigit(tail[6]) && tail[7] == '.' &&
         base::IsDigit(tail[8]);
}

}  // namespace

std::string_view Name(Protocol protocol) {
  switch (protocol) {
    case Protocol::kResp:
      return "resp";
    case Protocol::kHttp1:
      return "http1";
    case Protocol::kHttp2:
      return "http2";
    case Protocol::kTls:
      return "tls";
  }
  return "";
}

std::optional<Protocol> SniffProtocol(std::span<const char> bytes) {
  std::string_view text(bytes.data(), bytes.size());
  const bool full = text.size() >= kSniffBytesMax;
  text = text.substr(0, kSniffBytesMax);

  if (!text.empty() && text[0] == 0x16) {
    if (text.size() == 1) return std::nullopt;
    return text[1] == 0x03 ? Protocol::kTls : Protocol::kResp;
  }
  // Both HTTP/1 and inline RESP skip empty lines at the start.
  const size_t start = text.find_first_not_of("\r\n");
  if (start == std::string_view::npos) return full ? std::optional(Protocol::kResp) : std::nullopt;
  text.remove_prefix(start);

  if (text.starts_with(kPreface)) return Protocol::kHttp2;
  if (kPreface.starts_with(text)) return full ? std::optional(Protocol::kResp) : std::nullopt;
  if (text[0] == '*') return Protocol::kResp;

  const size_t token_end = static_cast<size_t>(
      std::find_if_not(text.begin(), text.end(), http::IsTokenChar) - text.begin());
  if (token_end == text.size()) return full ? std::optional(Protocol::kResp) : std::nullopt;
  if (text[token_end] != ' ' || token_end == 0) return Protocol::kResp;
  if (token_end + 1 < text.size() && text[token_end + 1] == '/' &&
      std::find(kMethods.begin(), kMethods.end(), text.substr(0, token_end)) != kMethods.end()) {
    return Protocol::kHttp1;
  }
  const size_t line_end = text.find('\n');
  if (line_end == std::string_view::npos)
    return full ? std::optional(Protocol::kResp) : std::nullopt;
  std::string_view line = text.substr(0, line_end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return EndsWithHttpVersion(line) ? Protocol::kHttp1 : Protocol::kResp;
}

}  // namespace headgate::front::mux

#include "headgate/wire/origin.h"

#include <fmt/format.h>

#include <algorithm>

#include "headgate/base/text.h"

namespace headgate::wire {
namespace {

constexpr std::string_view kSeparator = "://";
constexpr size_t kOriginBytesMax = 512;  // a host has at most 255

bool IsSchemeChar(char c) { return base::IsLetterOrDigit(c) || c == '+' || c == '-' || c == '.'; }

// The characters of names, IPv4 addresses, IPv6 addresses in brackets, and ports.
bool IsAuthorityChar(char c) {
  return base::IsLetterOrDigit(c) || c == '-' || c == '.' || c == '_' || c == ':' || c == '[' ||
         c == ']';
}

std::string_view DefaultPort(std::string_view scheme) {
  return scheme == "https" ? ":443" : scheme == "http" ? ":80" : "";
}

}  // namespace

bool IsSentOrigin(std::string_view text) {
  if (text == "null") return true;
  const size_t at = text.find(kSeparator);
  if (at == text.npos || at == 0 || text.size() > kOriginBytesMax) return false;
  const std::string_view scheme = text.substr(0, at);
  const std::string_view authority = text.substr(at + kSeparator.size());
  return !authority.empty() && std::all_of(scheme.begin(), scheme.end(), IsSchemeChar) &&
         std::all_of(authority.begin(), authority.end(), IsAuthorityChar);
}

std::optional<OriginProblem> CheckAllowedOrigin(std::string_view text) {
  if (text == kAnyOrigin) return std::nullopt;
  if (text == "null") {
    return OriginProblem{"stands for every page that hides its origin",
                         "any site can make such a page; \"*\" lets every page read refusals, "
                         "without its credentials"};
  }
  constexpr std::string_view kHint =
      "write it as browsers do: https://app.example.com, with a port only if it is not the usual "
      "one, and nothing behind it; or \"*\" for every page";
  if (text.find('*') != text.npos) {
    return OriginProblem{
        "has a '*'",
        "write each origin: https://a.example.com, https://b.example.com; or \"*\" "
        "alone for every page"};
  }
  if (!IsSentOrigin(text)) return OriginProblem{"is not an origin", std::string(kHint)};
  if (std::any_of(text.begin(), text.end(), base::IsUpper)) {
    std::string lower(text);
    std::transform(lower.begin(), lower.end(), lower.begin(), base::ToLower);
    return OriginProblem{"has upper-case letters, which browsers do not send",
                         fmt::format("write {}", lower)};
  }
  const std::string_view port = DefaultPort(text.substr(0, text.find(kSeparator)));
  if (!port.empty() && text.ends_with(port)) {
    return OriginProblem{"has the usual port, which browsers do not send",
                         fmt::format("write {}", text.substr(0, text.size() - port.size()))};
  }
  return std::nullopt;
}

AllowedOrigin FindAllowedOrigin(std::span<const std::string> allowed,
                                std::optional<std::string_view> sent) {
  if (allowed.empty()) return {};
  if (std::find(allowed.begin(), allowed.end(), kAnyOrigin) != allowed.end())
    return {.origin = kAnyOrigin};
  if (!sent) return {.varies = true};
  const auto found = std::find(allowed.begin(), allowed.end(), *sent);
  return {.origin = found == allowed.end() ? std::string_view() : std::string_view(*found),
          .varies = true};
}

void EmitCorsFields(const AllowedOrigin& allowed, RateLimitDialect dialect, std::string& scratch,
                    EmitField emit) {
  if (allowed.varies) emit("Vary", "Origin");
  if (allowed.origin.empty()) return;
  emit("Access-Control-Allow-Origin", allowed.origin);
  if (allowed.origin != kAnyOrigin) emit("Access-Control-Allow-Credentials", "true");
  scratch = "Retry-After";
  EmitEmptyRateLimitFields(dialect, nullptr,
                           [&](std::string_view name, std::string_view /*value*/) {
                             scratch.append(", ").append(name);
                           });
  emit("Access-Control-Expose-Headers", scratch);
}

}  // namespace headgate::wire

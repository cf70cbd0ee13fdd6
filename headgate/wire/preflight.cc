#include "headgate/wire/preflight.h"

#include <algorithm>
#include <array>

#include "headgate/base/text.h"
#include "headgate/wire/alike_names.h"
#include "headgate/wire/origin.h"

namespace headgate::wire {
namespace {

// A browser never sends these with a preflight. With credentials, the application might act for the
// client; a body could be read as input; and some frameworks take the method from the last of these
// fields instead of the request line.
constexpr std::array<std::string_view, 10> kMore = {
    "Authorization", "Cookie",  "Content-Type",  "Content-Encoding",       "Transfer-Encoding",
    "Expect",        "Upgrade", "X-HTTP-Method", "X-HTTP-Method-Override", "X-Method-Override"};

constexpr std::array<std::string_view, 15> kOfBrowsers = {
    "Accept",  "Accept-Encoding", "Accept-Language", "Cache-Control", "Connection", "DNT",
    "Host",    "Origin",          "Pragma",          "Priority",      "Save-Data",  "TE",
    "Referer", "User-Agent",      "Content-Length"};

constexpr std::string_view kRequestMethod = "Access-Control-Request-Method";
constexpr std::string_view kRequestHeaders = "Access-Control-Request-Headers";

bool StartsWith(std::string_view name, std::string_view prefix) {
  return name.size() >= prefix.size() &&
         base::EqualsIgnoreCase(name.substr(0, prefix.size()), prefix);
}

bool IsMethod(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return base::IsLetterOrDigit(c) || c == '-' || c == '_';
  });
}

}  // namespace

void PreflightScan::Add(std::string_view name, std::string_view value) {
  if (IsAlikeField(name, "Origin")) {
    ++origins_;
    has_more_ = has_more_ || !base::EqualsIgnoreCase(name, "Origin") || !IsSentOrigin(value);
  } else if (IsAlikeField(name, kRequestMethod)) {
    ++methods_;
    has_more_ = has_more_ || !base::EqualsIgnoreCase(name, kRequestMethod) || !IsMethod(value);
  } else if (base::EqualsIgnoreCase(name, kRequestHeaders)) {
    ++headers_;
  } else if (IsAlikeField(name, "Content-Length")) {
    has_more_ = has_more_ || value != "0";
  } else {
    has_more_ = has_more_ || std::any_of(kMore.begin(), kMore.end(), [&](std::string_view more) {
                  return IsAlikeField(name, more);
                });
  }
}

bool PreflightScan::IsPreflight(std::string_view method) const {
  return method == "OPTIONS" && origins_ == 1 && methods_ == 1 && headers_ <= 1 && !has_more_;
}

bool IsOfBrowsers(std::string_view name) {
  return std::any_of(kOfBrowsers.begin(), kOfBrowsers.end(),
                     [&](std::string_view known) { return base::EqualsIgnoreCase(name, known); }) ||
         StartsWith(name, "Sec-") || StartsWith(name, "Access-Control-Request-");
}

}  // namespace headgate::wire

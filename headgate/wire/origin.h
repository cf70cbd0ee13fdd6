// Origins of web pages, and the fields of CORS that let a page of another origin read an answer
// (Fetch, 3.3).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "headgate/wire/http_fields.h"

namespace headgate::wire {

// Stands for every origin.
inline constexpr std::string_view kAnyOrigin = "*";

// Whether a browser could send this in Origin: "https://app.example.com:8443", or "null" for a page
// that has no origin, such as a sandboxed frame.
bool IsSentOrigin(std::string_view text);

struct OriginProblem {
  std::string message;  // "is not an origin: …"
  std::string hint;
};
// Why this cannot be an origin that a setting allows; absent if it can. It has to be written as
// browsers send it, because it is compared byte by byte. "null" is refused: every site can have it.
std::optional<OriginProblem> CheckAllowedOrigin(std::string_view text);

// The part of an answer's CORS fields that depends on the page's origin.
struct AllowedOrigin {
  std::string_view origin{};  // an item of the setting; empty: the page may not read the answer
  bool varies = false;        // whether another origin would get another answer
};
// `allowed` is the setting, with valid items. `sent` is the only Origin of the request, if any.
AllowedOrigin FindAllowedOrigin(std::span<const std::string> allowed,
                                std::optional<std::string_view> sent);

// Emits the fields that let a page read an answer with its status, Retry-After and the fields of
// the dialect. An origin that is listed by name may read answers to requests with credentials; any
// origin may not.
void EmitCorsFields(const AllowedOrigin& allowed, RateLimitDialect dialect, std::string& scratch,
                    EmitField emit);

}  // namespace headgate::wire

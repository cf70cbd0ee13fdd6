#include "headgate/mapping/possible.h"

#include <fmt/format.h>

#include <algorithm>

#include "headgate/base/text.h"
#include "headgate/mapping/geohash.h"
#include "headgate/mapping/host_pattern.h"
#include "headgate/mapping/written_path.h"
#include "headgate/rule/problem.h"
#include "headgate/wire/named_values.h"

namespace headgate::mapping {
namespace {

using rule::Shown;

// Stricter than HTTP's token, which allows `*`, `|` and `!`. No method has them.
bool IsMethod(std::string_view text) {
  return !text.empty() && base::IsUpper(text.front()) &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return base::IsUpper(c) || base::IsDigit(c) || c == '-' || c == '_' || c == '.';
         });
}

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (base::IsLower(c)) c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

std::string HintForMethod(std::string_view method) {
  if (method == "*") return "leave method out to match every method";
  if (const std::string upper = Upper(method); IsMethod(upper))
    return fmt::format("methods are written in upper case: {}", upper);
  return "a method is one word in upper case; several are a list: method: [GET, POST]";
}

// HTTP's token (RFC 9110, 5.6.2).
bool IsFieldName(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return base::IsLetterOrDigit(c) ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

// The hint for a list value that is not a possible one, or an empty text. Paths with an escaped `?`
// or `#`, or with a `*`, cannot be written: the text more probably has a query or a fragment, or is
// a pattern.
std::string HintForPath(std::string_view value) {
  const auto spelling = SpellingOfPath(value);
  if (!spelling || value.find_first_of("?#*") != value.npos)
    return "a list has paths without query and without *: /a/b; only the condition path has "
           "patterns";
  return ReadPath(value) ? ""
                         : fmt::format("write it as paths are normalized: {}", Shown(*spelling));
}

std::string HintForPrefix(std::string_view value, uint32_t segments) {
  if (std::string hint = HintForPath(value); !hint.empty()) return hint;
  return std::count(value.begin(), value.end(), '/') <= static_cast<ptrdiff_t>(segments)
             ? ""
             : fmt::format("path_prefix: {} has at most {} segments: /a, but not /a/", segments,
                           segments);
}

std::string HintForSegment(std::string_view value) {
  return ReadPath(fmt::format("/{}", value)) && value.find_first_of("/?*") == value.npos
             ? ""
             : "a segment is the text between two / of a path, without escapes other than %25";
}

std::string HintForHost(std::string_view value) {
  const auto host = ParseHostPattern(value);
  if (!host || host->starts_with('*'))
    return "a list has hosts without port and without *: example.com, [2001:db8::1]";
  return *host == value ? "" : fmt::format("write it as hosts are normalized: {}", *host);
}

std::string HintForHeader(std::string_view value) {
  return base::Trimmed(value) == value ? "" : "remove the spaces around it";
}

// A cookie could only have an escape if its own `%` is escaped, which nobody means.
std::string HintForCookie(std::string_view value) {
  std::string decoded;
  if (!wire::DecodeCookie(value, decoded)) return "write it as it is behind its percent-encoding";
  // Spaces at an end can be in quotes or escaped.
  return decoded == value ? "" : fmt::format("cookies are decoded; write {}", Shown(decoded));
}

std::string HintForGeohash(std::string_view value, uint32_t characters) {
  return value.size() == characters &&
                 value.find_first_not_of(kGeohashAlphabet) == std::string_view::npos
             ? ""
             : fmt::format("a cell has {} characters, each one of {}", characters,
                           kGeohashAlphabet);
}

// An attribute with a problem of its own has no name or no count.
std::string HintForListValue(const Attribute& attribute, std::string_view value) {
  switch (attribute.kind) {
    case AttributeKind::kValue:
      return value == attribute.name || attribute.name.empty()
                 ? ""
                 : fmt::format("it is always '{}'", Shown(attribute.name));
    case AttributeKind::kHeader:
      return HintForHeader(value);
    case AttributeKind::kCookie:
      return HintForCookie(value);
    case AttributeKind::kMethod:
      return IsMethod(value) ? "" : HintForMethod(value);
    case AttributeKind::kHost:
      return HintForHost(value);
    case AttributeKind::kPath:
      return HintForPath(value);
    case AttributeKind::kPathPrefix:
      return attribute.count == 0 ? "" : HintForPrefix(value, attribute.count);
    case AttributeKind::kPathSegment:
      return HintForSegment(value);
    case AttributeKind::kGeohash:
      return attribute.count == 0 ? "" : HintForGeohash(value, attribute.count);
    case AttributeKind::kQuery:
    case AttributeKind::kClaim:
    case AttributeKind::kClientAddress:
      break;
  }
  return "";
}

// Whether `earlier` fits every request that `mapping` fits.
bool Covers(const Mapping& earlier, const Mapping& mapping) {
  // A condition without values fits everything.
  const auto covers = [](const auto& wide, const auto& narrow, const auto& matches) {
    return wide.empty() ||
           (!narrow.empty() && std::all_of(narrow.begin(), narrow.end(), [&](const auto& n) {
             return std::any_of(wide.begin(), wide.end(),
                                [&](const auto& w) { return matches(w, n); });
           }));
  };
  const auto equals = [](const auto& a, const auto& b) { return a == b; };
  const auto path_matches = [](const PathPattern& wide, const PathPattern& narrow) {
    return wide.Matches(narrow.text());
  };
  const bool fits_every_path =
      std::any_of(earlier.paths.begin(), earlier.paths.end(),
                  [](const PathPattern& pattern) { return pattern.text() == "/*"; });
  return covers(earlier.methods, mapping.methods, equals) &&
         covers(earlier.hosts, mapping.hosts, HostMatches) &&
         (fits_every_path || covers(earlier.paths, mapping.paths, path_matches));
}

}  // namespace

std::optional<Impossible> CheckMethod(std::string_view method) {
  if (IsMethod(method)) return std::nullopt;
  return Impossible{.message = fmt::format("'{}' matches no method", Shown(method)),
                    .hint = HintForMethod(method)};
}

std::optional<Impossible> CheckHost(std::string_view host) {
  if (ParseHostPattern(host)) return std::nullopt;
  Impossible impossible{
      .message = fmt::format("'{}' matches no host", Shown(host)),
      .hint = "a host is written without port: example.com, *.example.com, [2001:db8::1]"};
  if (host == "*") {
    impossible.hint = "leave host out to match every host";
  } else if (host.find('*') != host.npos) {
    impossible.hint = "a * may only be the whole first label of a name, as in *.example.com";
  } else if (std::any_of(host.begin(), host.end(),
                         [](char c) { return static_cast<unsigned char>(c) >= 0x80; })) {
    impossible.hint = "write the name as requests have it, in ASCII: xn--mnchen-3ya.de";
  }
  return impossible;
}

std::optional<Impossible> CheckHeaderName(std::string_view name) {
  if (IsFieldName(name)) return std::nullopt;
  return Impossible{.message = fmt::format("'{}' is not the name of a header", Shown(name)),
                    .hint = "a name has no spaces and no colon: X-API-Key"};
}

std::optional<Impossible> CheckCookieName(std::string_view name) {
  if (base::Trimmed(name) == name && name.find_first_of("=;") == name.npos &&
      !base::HasControls(name))
    return std::nullopt;
  return Impossible{.message = fmt::format("'{}' is not the name of a cookie", Shown(name)),
                    .hint = "a name has no = and no ; and no spaces around it: sid"};
}

std::optional<Impossible> CheckListValue(const Attribute& attribute, std::string_view value) {
  std::string hint = base::HasControls(value) ? "remove the control character"
                                              : HintForListValue(attribute, value);
  if (hint.empty()) return std::nullopt;
  return Impossible{.message = fmt::format("{} is never '{}'", Describe(attribute), Shown(value)),
                    .hint = std::move(hint)};
}

std::string ListValue(const Attribute& attribute, const std::string& text) {
  switch (attribute.kind) {
    case AttributeKind::kPath:
    case AttributeKind::kPathPrefix:
      return ReadPath(text).value_or(text);
    case AttributeKind::kPathSegment: {
      const auto path = ReadPath(fmt::format("/{}", text));
      return path ? path->substr(1) : text;
    }
    default:
      return text;
  }
}

std::optional<Impossible> CheckReached(const Mapping& mapping, std::span<const Mapping> earlier) {
  const auto found = std::find_if(earlier.begin(), earlier.end(), [&](const Mapping& other) {
    return other.paths.size() <= kComparedPathsMax && Covers(other, mapping);
  });
  if (found == earlier.end()) return std::nullopt;
  return Impossible{
      .message = fmt::format("no request reaches '{}': '{}' fits all of its requests",
                             Shown(mapping.name), Shown(found->name)),
      .hint = fmt::format("the first mapping that fits decides; move this one before '{}'",
                          Shown(found->name))};
}

}  // namespace headgate::mapping

#include "headgate/mapping/possible.h"

#include <fmt/format.h>

#include <algorithm>

#include "headgate/base/text.h"
#include "headgate/mapping/geohash.h"
#include "headgate/mapping/host_pattern.h"
#include "headgate/mapping/written_path.h"
#include "headgate/rule/problem.h"
#include "headgate/wire/credentials.h"
#include "headgate/wire/field_value.h"
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

std::string HintForHeader(std::string_view name, std::string_view value) {
  if (base::Trimmed(value) != value) return "remove the spaces around it";
  std::string text;
  std::string_view read;
  if (wire::ReadFieldValue(name, value, text, read)) return "";
  return wire::HasCredentials(name)
             ? "credentials are a scheme and one word, or a scheme and parameters: Bearer k1"
             : "a header with a byte above 0x7f is always invalid; write ASCII";
}

std::string HintForBearer(std::string_view value) {
  std::string_view token;
  return wire::BearerOf(value, token) == wire::Lookup::kFound && token == value
             ? ""
             : "a token is one word, without Bearer in front";
}

// Some readers of cookies take `+` for a space.
std::string WithoutSpaces(std::string_view value) {
  std::string text(value);
  std::replace(text.begin(), text.end(), ' ', '+');
  return text;
}

// Values are compared decoded. A decoded cookie has an escape only if its `%` is escaped too, which
// nobody intends.
std::string HintForCookie(std::string_view value) {
  std::string decoded;
  if (!wire::DecodeCookie(value, decoded)) return "write it as it is behind its percent-encoding";
  // A space is escaped in the request.
  std::replace(decoded.begin(), decoded.end(), ' ', '+');
  return decoded == WithoutSpaces(value)
             ? ""
             : fmt::format("cookies are decoded; write {}", Shown(decoded));
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
      return HintForHeader(attribute.name, value);
    case AttributeKind::kBearer:
      return HintForBearer(value);
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
    case AttributeKind::kNetwork:
      break;
  }
  return "";
}

// Whether a segment is written as frameworks write one that may have any text.
bool HasPlaceholder(std::string_view path) {
  while (!path.empty()) {
    const std::string_view segment = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(segment.size() + 1, path.size()));
    const bool is_enclosed =
        segment.size() > 1 && ((segment.front() == '{' && segment.back() == '}') ||
                               (segment.front() == '<' && segment.back() == '>') ||
                               (segment.front() == '[' && segment.back() == ']'));
    if (is_enclosed || (segment.size() > 1 && segment.front() == ':')) return true;
  }
  return false;
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
  const auto path_matches = [](const PathPattern& wide, const PathPattern& narrow) {
    return wide.Matches(narrow.text());
  };
  const bool fits_every_path =
      std::any_of(earlier.paths.begin(), earlier.paths.end(),
                  [](const PathPattern& pattern) { return pattern.text() == "/*"; });
  return covers(earlier.methods, mapping.methods, MethodFits) &&
         covers(earlier.hosts, mapping.hosts, HostMatches) &&
         (fits_every_path || covers(earlier.paths, mapping.paths, path_matches));
}

}  // namespace

std::optional<Impossible> CheckPath(std::string_view path) {
  if (HasPlaceholder(path)) {
    return Impossible{
        .message = fmt::format("'{}' has a placeholder, which fits only itself", Shown(path)),
        .hint = "write * for one segment: /users/*/posts"};
  }
  if (PathPattern::Parse(path)) return std::nullopt;
  return Impossible{.message = fmt::format("'{}' matches no path", Shown(path)),
                    .hint =
                        "a path is written as it is normalized, without query: /login, /api/*, "
                        "/users/*/posts or *"};
}

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
  return Impossible{
      .message = fmt::format("'{}' is not the name of a cookie", Shown(name)),
      .hint = "write the name without `=`, `;` and surrounding spaces, for example `sid`"};
}

std::optional<Impossible> CheckListValue(const Attribute& attribute, std::string_view value) {
  const bool of_path =
      attribute.kind == AttributeKind::kPath || attribute.kind == AttributeKind::kPathPrefix;
  std::string hint = base::HasControls(value) ? "remove the control character"
                     : of_path && HasPlaceholder(value)
                         ? "a list has no placeholders; path_prefix or path_segment read a part"
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
    case AttributeKind::kCookie:
      return WithoutSpaces(text);
    case AttributeKind::kHeader: {
      std::string canonical;
      std::string_view read;
      return wire::ReadFieldValue(attribute.name, text, canonical, read) ? std::string(read) : text;
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
      .hint =
          Covers(mapping, *found)
              ? fmt::format("both fit the same requests; put the descriptors of both into '{}', "
                            "or give one of them another path, method or host",
                            Shown(found->name))
              : fmt::format("the first mapping that fits decides; move this one before '{}'",
                            Shown(found->name))};
}

bool FitsEveryRequest(const Mapping& mapping) { return Covers(mapping, Mapping()); }

}  // namespace headgate::mapping

#include "headgate/mapping/reading_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "headgate/wire/credentials.h"
#include "headgate/wire/request_path.h"

namespace headgate::mapping {
namespace {

using rule::Shown;

// Whether a mapping names this path, and not just every path.
bool NamesPath(const MappingSet& set, std::string_view path) {
  return std::any_of(set.mappings.begin(), set.mappings.end(), [&](const Mapping& mapping) {
    return std::any_of(mapping.paths.begin(), mapping.paths.end(), [&](const PathPattern& pattern) {
      return pattern.text() != "/*" && pattern.Matches(path);
    });
  });
}

// The same path with or without a slash at the end; empty if there is none.
std::string OtherSpelling(std::string_view pattern) {
  if (pattern == "/" || pattern == "/*") return "";
  if (pattern.ends_with("/*")) return std::string(pattern.substr(0, pattern.size() - 2));
  if (pattern.ends_with('/')) return std::string(pattern.substr(0, pattern.size() - 1));
  return std::string(pattern) + "/";
}

using Add = std::function<void(std::string message, std::string_view hint)>;

void WarnOfMethod(std::string_view done, std::string_view word, const Add& add) {
  add(fmt::format("applications that honour X-HTTP-Method-Override or the parameter _method run "
                  "another method than the one that is {}, and some scripts run for any method",
                  done),
      fmt::format("leave {} out, or refuse other methods and these fields in front of the "
                  "application",
                  word));
}

void WarnOfAttribute(const Attribute& attribute, const Add& add) {
  switch (attribute.kind) {
    case AttributeKind::kMethod:
      return WarnOfMethod("counted", "method: true", add);
    case AttributeKind::kQuery:
      return add(fmt::format("some applications also read the parameter '{}' from a form in the "
                             "body, which is not seen here",
                             Shown(attribute.name)),
                 "Rails and PHP's $_REQUEST prefer the body; count by a header, or make the "
                 "application read the query only");
    case AttributeKind::kHeader:
      if (!wire::HasCredentials(attribute.name)) return;
      return add(fmt::format("many applications read only the token in {}, whatever its scheme is",
                             attribute.name),
                 "bearer: true counts by the token; header: Authorization by scheme and "
                 "credentials, so each scheme and each password has a limit of its own");
    case AttributeKind::kClaim:
      if (attribute.claim.size() != 1 || attribute.claim[0].find('.') == std::string::npos ||
          attribute.claim[0].find('/') != std::string::npos) {
        return;
      }
      return add(fmt::format("'{}' is one claim with a dot in its name", Shown(attribute.claim[0])),
                 "a claim inside another one is a list: claim: [app, plan]");
    case AttributeKind::kPath:
      return add(
          "path: true makes a key of each path: clients that add a slash, a suffix or upper "
          "case have a limit for each spelling that the application accepts",
          "value: NAME in a mapping for each path has one key; other paths can share a last "
          "mapping");
    case AttributeKind::kPathPrefix:
    case AttributeKind::kPathSegment:
      return add(
          "a key of a part of the path has a limit for each spelling that the application accepts, "
          "such "
          "as upper case or a suffix",
          "value: NAME in a mapping for each path has one key; or add a limit for the client "
          "alone");
    default:
      return;
  }
}

// Warns if a token brings the limit but does not name the client: clients can lend each other such
// a token.
void WarnOfLentTokens(const MappedDescriptor& descriptor, const Add& add) {
  const std::optional<Attribute>& from = descriptor.limit_from;
  if (!from || from->kind != AttributeKind::kClaim) return;
  const auto is_of_token = [&](const MappedEntry& entry) {
    return entry.attribute.kind == AttributeKind::kClaim && entry.attribute.issuer == from->issuer;
  };
  if (std::any_of(descriptor.entries.begin(), descriptor.entries.end(), is_of_token)) return;
  add("no entry is a claim of the token that brings the limit, so one client's token raises the "
      "limits of all who use it",
      "add the user's claim to the entries: {key: user, claim: sub}");
}

void WarnOfMapping(const MappingSet& set, const Mapping& mapping, const Add& add) {
  if (!mapping.methods.empty()) WarnOfMethod("matched", "method", add);
  for (const PathPattern& pattern : mapping.paths) {
    if (wire::IsScript(pattern.text()) && !NamesPath(set, pattern.text() + "/x")) {
      add(fmt::format("'{0}/x' is invalid, because many servers run '{0}' for it",
                      Shown(pattern.text())),
          "if the application has such paths, add the pattern with /* behind it");
    }
    const std::string other = OtherSpelling(pattern.text());
    if (other.empty() || NamesPath(set, other)) continue;
    add(fmt::format("'{}' does not fit '{}', which many applications treat alike",
                    Shown(pattern.text()), Shown(other)),
        "write both, or make the application strict");
  }
  for (const MappedDescriptor& descriptor : mapping.descriptors) {
    WarnOfLentTokens(descriptor, add);
    for (const MappedEntry& entry : descriptor.entries) {
      WarnOfAttribute(entry.attribute, add);
      const bool is_missing = entry.attribute.kind == AttributeKind::kNetwork &&
                              entry.attribute.name.empty() && !descriptor.optional;
      if (is_missing) {
        add("clients in none of the networks are refused, because the attribute is missing",
            "otherwise: internet, beside network, names them; optional: true leaves the "
            "descriptor out");
      }
    }
  }
  for (const auto& lists : {std::span(mapping.refuse), std::span(mapping.exempt)}) {
    for (const AttributeList& list : lists) WarnOfAttribute(list.attribute, add);
  }
}

}  // namespace

void WarnOfReadings(const MappingSet& set, std::span<const rule::Mark> marks,
                    rule::ProblemList& warnings) {
  for (size_t i = 0; i < set.mappings.size(); ++i) {
    const Mapping& mapping = set.mappings[i];
    WarnOfMapping(set, mapping, [&](std::string message, std::string_view hint) {
      warnings.Add(marks[i], fmt::format("{}: {}", Shown(mapping.name), message),
                   std::string(hint));
    });
  }
}

}  // namespace headgate::mapping

// Whether values of a mapping file can occur in a request. A condition that no request meets would
// switch limits off without a word, and an entry of a refusal list that no request has would refuse
// nobody. So such values are problems of the file.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "headgate/mapping/attribute.h"
#include "headgate/mapping/mapping.h"

namespace headgate::mapping {

struct Impossible {
  std::string message;
  std::string hint;
};

// Each Check function returns why no request has the value; empty if one can have it.

// `path` is a pattern. Frameworks write a segment with any text as {id}, :id or <id>.
std::optional<Impossible> CheckPath(std::string_view path);
std::optional<Impossible> CheckMethod(std::string_view method);
// `host` is a pattern.
std::optional<Impossible> CheckHost(std::string_view host);
std::optional<Impossible> CheckHeaderName(std::string_view name);
std::optional<Impossible> CheckCookieName(std::string_view name);
// The value of a list of this attribute, which is not the client's address.
std::optional<Impossible> CheckListValue(const Attribute& attribute, std::string_view value);
// Converts a text that CheckListValue accepts into the value that requests have.
std::string ListValue(const Attribute& attribute, const std::string& text);
// A mapping behind `earlier` ones: the first one that fits decides. Considers only earlier mappings
// with at most kComparedPathsMax paths, so that long files load fast.
std::optional<Impossible> CheckReached(const Mapping& mapping, std::span<const Mapping> earlier);

inline constexpr size_t kComparedPathsMax = 16;

// Whether the mapping has no conditions, or only conditions that every request meets.
bool FitsEveryRequest(const Mapping& mapping);

}  // namespace headgate::mapping

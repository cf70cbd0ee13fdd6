// The one form of a request's path that is used for matching and for keys.
//
//   percent-decode once → merge slashes → remove dot segments
//
// A path that two readers could resolve to two different paths is refused: a client could otherwise
// reach a backend by a spelling that no rule matches. readings.h has examples.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "headgate/wire/why.h"

namespace headgate::wire {

// The meaning of a `;` in a segment. Servlet containers begin a parameter there, and route the path
// without it: `/login;x=1` is /login. Other servers take `;` for an ordinary character.
enum class PathParameters : uint8_t {
  kRefuse,  // readers could differ: refused
  kStrip,   // begins a parameter, which is not a part of the path
  kKeep,    // a character
};

struct PathOptions {
  PathParameters parameters = PathParameters::kRefuse;
  // False: `.` and `..` are segments like others, as for a server that does not resolve them.
  bool resolves_dots = true;
};

// Appends the normalized path to `out`. False if the path is refused:
// - it does not begin with '/'
// - its first segment is empty ("//host/a"): readers take what follows for a host
// - it has a broken escape, or an escape of '/', '\', or a control character
// - it has a raw '\', '#', or control character
// - its escapes stand for bytes that are not UTF-8: readers replace them in their own ways
// - a segment has the id of a session, as "/(S(abc))/login": ASP.NET removes it
// - `..` leads above the root, or follows an empty segment ("/a//../b"): whether slashes are merged
//   before dots are removed would change the result
// - it has a `;`, raw or escaped, unless `options` give it a meaning. Only a raw one begins a
//   parameter, so an escaped one is refused there too. In front of it, a dot segment is always
//   refused, and an empty one unless it is a character.
// `path` has no query. Bytes above 0x7f are kept, because patterns in files have them; the path of
// a request has none (IsPlainTarget).
bool NormalizePath(std::string_view path, std::string& out, PathOptions options = {},
                   Why* why = nullptr);

// Whether a path that NormalizePath accepts has a segment `.` or `..`. Servers differ in whether
// they resolve them.
bool HasDotSegments(std::string_view path);

// Appends the same path with the escapes of its client, but with slashes merged and dot segments
// removed. Decoded once, the result is the path that NormalizePath appends, so a reader that does
// not normalize finds the path that was matched. `path` must be one that NormalizePath accepts.
void AppendMergedPath(std::string_view path, std::string& out);

// Whether a segment with this end is a script: servers run it, and pass it the segments behind it
// as PATH_INFO (RFC 3875, 4.1.5).
bool IsScript(std::string_view path);

// Whether a script is in front of more segments.
bool HasScript(std::string_view path);

// Whether a path with a script in front of more segments fits if it is read otherwise. Servers run
// /blog/index.php for "/blog/index.php/login"; Symfony, Laravel and WordPress then route
// /blog/login. `path` is normalized.
bool FitsBehindScript(std::string_view path, absl::FunctionRef<bool(std::string_view)> fits);

// Whether all servers find the same path and query in this target of a request: it consists of
// visible ASCII characters (RFC 9112, 3.2) other than '#'. Servers differ in whether they end the
// target at '#', and some remove other bytes, such as 0x85 and 0xa0, as white space.
bool IsPlainTarget(std::string_view target);

}  // namespace headgate::wire

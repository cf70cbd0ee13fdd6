// The one form of a request's path that is used for matching and for keys.
//
//   percent-decode once → merge slashes → remove dot segments
//
// A path that two readers could resolve to two different paths is refused: a client could otherwise
// reach a backend by a spelling that no rule matches. `;` is an ordinary character.
#pragma once

#include <string>
#include <string_view>

namespace headgate::wire {

// Appends the normalized path to `out`. False if the path is refused:
// - it does not begin with '/'
// - it has a broken escape, or an escape of '/', '\', or a control character
// - it has a raw '\', '#', or control character
// - `..` leads above the root, or follows an empty segment ("/a//../b"): whether slashes are merged
//   before dots are removed would change the result
// `path` has no query. Bytes above 0x7f are kept, because patterns in files have them; a path of a
// request cannot (IsPlainTarget).
bool NormalizePath(std::string_view path, std::string& out);

// Appends the same path with the escapes of its client, but with slashes merged and dot segments
// removed. Decoded once, this is what NormalizePath appends, so a reader that does not normalize
// finds the path that was matched. `path` must be one that NormalizePath accepts.
void AppendMergedPath(std::string_view path, std::string& out);

// Whether all servers find the same path and query in this target of a request: it consists of
// visible ASCII characters (RFC 9112, 3.2) other than '#'. Servers differ in whether they end the
// target at '#', and some remove other bytes, such as 0x85 and 0xa0, as white space.
bool IsPlainTarget(std::string_view target);

}  // namespace headgate::wire

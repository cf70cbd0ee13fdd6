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
// `path` has no query. Bytes above 0x7f are kept.
bool NormalizePath(std::string_view path, std::string& out);

}  // namespace headgate::wire

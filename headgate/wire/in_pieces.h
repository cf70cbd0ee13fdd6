// For tests and fuzzers of stream parsers: feeds a stream in pieces. The result must not depend on
// the pieces.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::wire {

// The offsets at which pieces of one size end, without the end of the stream itself.
inline std::vector<size_t> PiecesOf(size_t piece, size_t stream_size) {
  std::vector<size_t> ends;
  for (size_t end = piece; end < stream_size; end += piece) ends.push_back(end);
  return ends;
}

// Feeds the stream in pieces that end at `ends` (ascending) and at the end of the stream.
// `parse(pending)` removes complete items from the front of `pending` and returns whether to
// continue. Returns the number of bytes left over.
template <typename Parse>
size_t FeedInPieces(std::string_view stream, const std::vector<size_t>& ends, Parse parse) {
  std::string pending;
  size_t fed = 0;
  for (size_t i = 0; i <= ends.size(); ++i) {
    const size_t end = i < ends.size() ? ends[i] : stream.size();
    // Use a fresh buffer for each piece, so that a sanitizer reports any view into the old one.
    pending = std::string(pending).append(stream.substr(fed, end - fed));
    fed = end;
    if (!parse(pending)) break;
  }
  return pending.size();
}

}  // namespace headgate::wire

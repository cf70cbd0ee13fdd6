// For the tests and fuzzers of what reads a stream: the stream arrives in pieces, and must mean the
// same.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::wire {

// The ends of pieces of one size, but for the stream's own end.
inline std::vector<size_t> PiecesOf(size_t piece, size_t stream_size) {
  std::vector<size_t> ends;
  for (size_t end = piece; end < stream_size; end += piece) ends.push_back(end);
  return ends;
}

// Feeds the stream in pieces that end at `ends` (ascending) and at its own end. `parse(pending)`
// takes what is whole off the front of what is pending and returns whether to go on. Returns how
// many bytes were left over.
template <typename Parse>
size_t FeedInPieces(std::string_view stream, const std::vector<size_t>& ends, Parse parse) {
  std::string pending;
  size_t fed = 0;
  for (size_t i = 0; i <= ends.size(); ++i) {
    const size_t end = i < ends.size() ? ends[i] : stream.size();
    // A fresh buffer for each piece, so that a view into the old one is a mistake that a sanitizer
    // sees.
    pending = std::string(pending).append(stream.substr(fed, end - fed));
    fed = end;
    if (!parse(pending)) break;
  }
  return pending.size();
}

}  // namespace headgate::wire

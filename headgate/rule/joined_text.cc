#include "headgate/rule/joined_text.h"

#include "headgate/base/wide.h"

namespace headgate::rule {
namespace {

// Multiply-and-fold with the constants of wyhash: odd numbers with equally many ones and zeros.
constexpr uint64_t kMixA = 0xa0761d6478bd642f;
constexpr uint64_t kMixB = 0xe7037ed1a0b428db;

uint64_t Mix(uint64_t a, uint64_t b) {
  const base::uint128 product = base::WideMul(a, b);
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t LoadWord(const char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace

bool JoinedText::Before(std::string_view text) const {
  for (const std::string_view piece : pieces_) {
    const size_t count = std::min(piece.size(), text.size());
    const int order = piece.substr(0, count).compare(text.substr(0, count));
    if (order != 0) return order < 0;
    if (count < piece.size()) return false;
    text.remove_prefix(count);
  }
  return !text.empty();
}

size_t JoinedText::Find(std::string_view literal, size_t begin, size_t end) const {
  end = std::min(end, size());
  if (begin > end || literal.size() > end - begin) return kNotFound;
  if (literal.empty()) return begin;
  const size_t last = end - literal.size();
  const size_t value_begin = pieces_[0].size() + pieces_[1].size();
  for (; begin < value_begin && begin <= last; ++begin) {
    if (HasAt(begin, literal)) return begin;
  }
  if (begin > last) return kNotFound;
  const size_t found = pieces_[2].substr(0, end - value_begin).find(literal, begin - value_begin);
  return found == std::string_view::npos ? kNotFound : value_begin + found;
}

size_t JoinedText::Copy(size_t position, char* out, size_t count) const {
  size_t copied = 0;
  for (const std::string_view piece : pieces_) {
    if (position >= piece.size()) {
      position -= piece.size();
      continue;
    }
    const size_t part = std::min(count - copied, piece.size() - position);
    std::memcpy(out + copied, piece.data() + position, part);
    copied += part;
    position = 0;
  }
  return copied;
}

uint64_t Hash(uint32_t scope, const JoinedText& text) {
  constexpr size_t kChunk = 64;
  std::array<char, kChunk> chunk;
  uint64_t state = Mix(scope ^ kMixA, text.size() ^ kMixB);
  for (size_t position = 0;;) {
    const size_t count = text.Copy(position, chunk.data(), kChunk);
    // Pad with zeros. The size is hashed too, so padding and zeros of the text give different
    // hashes.
    std::memset(chunk.data() + count, 0, (kChunk - count) % 16);
    for (size_t i = 0; i < count; i += 16) {
      state =
          Mix(LoadWord(chunk.data() + i) ^ state ^ kMixA, LoadWord(chunk.data() + i + 8) ^ kMixB);
    }
    position += count;
    if (count < kChunk) return Mix(state, kMixB);
  }
}

}  // namespace headgate::rule

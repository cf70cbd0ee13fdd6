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

template <typename Word>
uint64_t Load(const char* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// The bytes of a text of up to 16, in two words. A byte may be in both.
struct TwoWords {
  uint64_t first = 0;
  uint64_t last = 0;
};
TwoWords LoadShort(const char* bytes, size_t size) {
  if (size >= 8) return {Load<uint64_t>(bytes), Load<uint64_t>(bytes + size - 8)};
  if (size >= 4) return {Load<uint32_t>(bytes), Load<uint32_t>(bytes + size - 4)};
  if (size == 0) return {};
  return {Load<uint8_t>(bytes),
          Load<uint8_t>(bytes + size / 2) << 8 | Load<uint8_t>(bytes + size - 1)};
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

// 16 bytes at a time. The last 16 may overlap those before them: the size is hashed too.
uint64_t Hash(uint32_t scope, const JoinedText& text) {
  constexpr size_t kStep = 16;
  std::array<char, 4 * kStep> copy;
  const size_t size = text.size();
  const char* whole = text.whole();
  if (whole == nullptr && size <= copy.size()) {
    text.Copy(0, copy.data(), size);
    whole = copy.data();
  }
  uint64_t state = Mix(scope ^ kMixA, size ^ kMixB);
  const auto mix = [&](TwoWords words) {
    state = Mix(words.first ^ state ^ kMixA, words.last ^ kMixB);
  };
  const auto mix_at = [&](size_t position) {
    if (whole == nullptr) text.Copy(position, copy.data(), kStep);
    mix(LoadShort(whole == nullptr ? copy.data() : whole + position, kStep));
  };
  if (size <= kStep) {
    mix(LoadShort(whole, size));
  } else {
    for (size_t position = 0; position + kStep < size; position += kStep) mix_at(position);
    mix_at(size - kStep);
  }
  return Mix(state, kMixB);
}

}  // namespace headgate::rule

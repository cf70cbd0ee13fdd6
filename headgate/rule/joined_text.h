// One entry of a request as rules spell it: "key_value", or the key alone. It is compared, searched
// and hashed piece by piece and never joined in memory, so matching does not allocate.
//
// The file format treats the pieces as one text: the entry {a_b: c} equals the entry {a: b_c}.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

namespace headgate::rule {

class JoinedText {
 public:
  static constexpr size_t kNotFound = std::string_view::npos;

  // `key` alone.
  explicit JoinedText(std::string_view key) : pieces_{key, {}, {}} {}
  // `key` + "_" + `value`.
  JoinedText(std::string_view key, std::string_view value) : pieces_{key, "_", value} {}

  size_t size() const { return pieces_[0].size() + pieces_[1].size() + pieces_[2].size(); }

  // Whether `literal` occurs at `position`.
  bool HasAt(size_t position, std::string_view literal) const {
    for (const std::string_view piece : pieces_) {
      if (literal.empty()) return true;
      if (position >= piece.size()) {
        position -= piece.size();
        continue;
      }
      const size_t count = std::min(literal.size(), piece.size() - position);
      if (std::memcmp(piece.data() + position, literal.data(), count) != 0) return false;
      literal.remove_prefix(count);
      position = 0;
    }
    return literal.empty();
  }

  bool operator==(std::string_view text) const {
    if (text.size() != size()) return false;
    const char* at = text.data();
    for (const std::string_view piece : pieces_) {
      if (!piece.empty() && std::memcmp(at, piece.data(), piece.size()) != 0) return false;
      at += piece.size();
    }
    return true;
  }

  // The text, if it is one piece in memory; else null.
  const char* whole() const { return pieces_[1].empty() ? pieces_[0].data() : nullptr; }

  // Whether this sorts before `text` in byte order.
  bool Before(std::string_view text) const;

  // The position of the first `literal` within [begin, end), or kNotFound.
  size_t Find(std::string_view literal, size_t begin, size_t end) const;

  // Copies up to `count` bytes from `position` on; returns the number of bytes copied.
  size_t Copy(size_t position, char* out, size_t count) const;

 private:
  std::array<std::string_view, 3> pieces_;
};

// Not safe for tables that untrusted clients fill: only rule files fill the tables that use this
// hash. Depends on the whole text, not on where its pieces meet.
uint64_t Hash(uint32_t scope, const JoinedText& text);

}  // namespace headgate::rule

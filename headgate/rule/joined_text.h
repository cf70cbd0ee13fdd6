// One entry of a request as rules spell it: "key_value", or the key alone. It is compared, searched
// and hashed in its pieces and never joined in memory, so that matching does not allocate.
//
// That the pieces are one text is part of the file format: the entry {a_b: c} is the entry {a: b_c}
// there.
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

  // Whether `literal` stands at `position`.
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

  bool operator==(std::string_view text) const { return text.size() == size() && HasAt(0, text); }

  // Whether this comes before `text` in the order of bytes.
  bool Before(std::string_view text) const;

  // Where `literal` first stands within [begin, end), or kNotFound.
  size_t Find(std::string_view literal, size_t begin, size_t end) const;

  // Copies up to `count` bytes from `position` on; returns how many there were.
  size_t Copy(size_t position, char* out, size_t count) const;

 private:
  std::array<std::string_view, 3> pieces_;
};

// Not for tables that others fill: only rule files decide what is in the tables it is used for.
// Depends on the text, not on where its pieces meet.
uint64_t Hash(uint32_t scope, const JoinedText& text);

}  // namespace headgate::rule

#include "headgate/wire/alike_names.h"

#include <algorithm>

#include "headgate/base/percent.h"
#include "headgate/base/text.h"
#include "headgate/wire/readings.h"

namespace headgate::wire {
namespace {

// The characters of a name, decoded and folded, one after the other. Needs no buffer.
class FoldedName {
 public:
  FoldedName(std::string_view text, NameCoding coding) : rest_(text), coding_(coding) {
    const CharacterSet& skipped = CharactersOf(Use::kSkippedInName);
    while (!rest_.empty() && Has(skipped, Peek())) rest_.remove_prefix(Width());
  }

  // '\0' at the end.
  char Next() {
    if (rest_.empty()) return '\0';
    const char c = Peek();
    is_blank_ = IsBlank(c);
    rest_.remove_prefix(Width());
    begins_member_ = Has(CharactersOf(Use::kBeginsMember), c);
    return Has(CharactersOf(Use::kFoldedInName), c) ? '_' : base::ToLower(c);
  }
  // Whether the last character began the name of a member.
  bool begins_member() const { return begins_member_; }
  // Whether some reader removes the last character and all behind it as spaces.
  bool EndsBlank() {
    while (is_blank_ && !rest_.empty()) Next();
    return is_blank_;
  }

 private:
  // Counts every byte that is not ASCII as blank, because the spaces of Unicode consist of such
  // bytes, which are rare in names otherwise.
  static bool IsBlank(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte <= ' ' || byte >= 0x7f;
  }
  size_t Width() const {
    if (WideByte() >= 0) return 6;
    return Byte() >= 0 ? 3 : 1;
  }
  char Peek() const {
    const int byte = WideByte() >= 0 ? WideByte() : Byte();
    if (byte >= 0) return static_cast<char>(byte);
    return coding_ == NameCoding::kForm && rest_.front() == '+' ? ' ' : rest_.front();
  }
  int Byte() const { return coding_ == NameCoding::kPlain ? -1 : base::PercentByte(rest_); }
  // The byte for which "%u0061" stands, or -1.
  int WideByte() const {
    if (coding_ != NameCoding::kForm || rest_.size() < 6 || !rest_.starts_with("%u00")) return -1;
    const int high = base::HexValue(rest_[4]);
    const int low = base::HexValue(rest_[5]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
  }

  std::string_view rest_;
  const NameCoding coding_;
  bool begins_member_ = false;
  bool is_blank_ = false;
};

bool HasMember(std::string_view name) {
  const CharacterSet& members = CharactersOf(Use::kBeginsMember);
  return std::any_of(name.begin(), name.end(), [&](char c) { return Has(members, c); });
}

}  // namespace

bool IsAlikeName(std::string_view name, NameCoding coding, std::string_view wanted) {
  FoldedName given(name, coding);
  FoldedName expected(wanted, NameCoding::kPlain);
  while (true) {
    const char c = given.Next();
    const char e = expected.Next();
    if (c != e) {
      return e == '\0' && ((given.begins_member() && !HasMember(wanted)) || given.EndsBlank());
    }
    if (c == '\0') return true;
  }
}

bool IsAlikeField(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return base::IsLetterOrDigit(x) ? base::ToLower(x) == base::ToLower(y)
                                    : !base::IsLetterOrDigit(y);
  });
}

}  // namespace headgate::wire

// The members of a small JSON object, such as the claims of a token. Refuses duplicate names,
// because readers differ in which of the values they take.
//
// Clients write tokens, so time and memory are linear in the size of the text: all names and texts
// stand in one string, and a member knows its parent instead of its path. 6 KiB of JSON, as in the
// longest token, take at most 32 KiB.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::jwt {

class JsonMembers {
 public:
  enum class Kind : uint8_t { kString, kNumber, kBool, kNull, kObject, kArray };

  struct Member {
    Kind kind = Kind::kNull;
    // The text of a string; a number as written; "true" or "false"; empty for others. A part of the
    // members.
    std::string_view text{};
  };

  // Nesting beyond this is refused.
  static constexpr size_t kDepthMax = 32;
  // An object with more members is refused. The strings of an array count as members; everything
  // else in an array is not kept.
  static constexpr size_t kMembersMax = 1024;

  // False if `json` is not one object, is too deep or too large, or has a name twice.
  bool Parse(std::string_view json);
  // The same, but keeps only the members at the top that have one of these names. Others are
  // skipped, and may come twice.
  bool ParseOnly(std::string_view json, std::span<const std::string_view> names);

  // Empty if there is no such member. `names` lead from the top down.
  std::optional<Member> Find(std::span<const std::string_view> names) const;
  std::optional<Member> Find(std::string_view name) const { return Find({&name, 1}); }
  // The texts of the strings in the array of this name at the top.
  std::vector<std::string_view> StringsIn(std::string_view name) const;

  // The memory behind the members.
  size_t bytes() const { return members_.capacity() * sizeof(Stored) + texts_.capacity(); }

 private:
  friend class MemberCollector;

  // Members are named by their order in the text, from 1; the object itself is 0.
  struct Stored {
    uint16_t parent = 0;
    uint16_t id = 0;
    Kind kind = Kind::kNull;
    // Places in `texts_`; the text follows the name. An item of an array has no name.
    uint32_t name_begin = 0;
    uint32_t text_begin = 0;
    uint32_t text_end = 0;
  };

  std::string_view NameOf(const Stored& member) const;
  std::string_view TextOf(const Stored& member) const;
  const Stored* FindStored(uint16_t parent, std::string_view name) const;

  std::vector<Stored> members_;  // by parent, then name, then id
  std::string texts_;
};

}  // namespace headgate::jwt

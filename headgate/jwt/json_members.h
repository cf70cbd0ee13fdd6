// The members of a small JSON object, such as the claims of a token, as a flat list. Refuses
// duplicate names, because readers differ in which of the values they take.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::jwt {

class JsonMembers {
 public:
  enum class Kind : uint8_t { kString, kNumber, kBool, kNull, kObject, kArray };

  struct Member {
    std::string path;  // names from the top down, joined by '\0'; items of an array have no name
    Kind kind = Kind::kNull;
    // The text of a string; a number as written; "true" or "false"; empty for others.
    std::string text{};
  };

  // Nesting beyond this is refused.
  static constexpr size_t kDepthMax = 32;

  // False if `json` is not one object, is too deep, or has a name twice.
  bool Parse(std::string_view json);

  // Null if there is no such member. `names` lead from the top down.
  const Member* Find(std::span<const std::string_view> names) const;
  const Member* Find(std::string_view name) const { return Find({&name, 1}); }
  // The texts of the strings in the array of this name at the top.
  std::vector<std::string_view> StringsIn(std::string_view name) const;

 private:
  std::vector<Member> members_;  // in order of their paths; items behind their array
};

}  // namespace headgate::jwt

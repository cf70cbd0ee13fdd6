// A JSON value (RFC 8259) as a tree, for documents that are read or built outside of the path of a
// decision. Boost.JSON parses them; no header shows it, because it costs each source that sees it
// a second to compile.
//
// Reading never fails: what is absent, or is of another type, reads as null, or as the value that
// the caller names. So an answer of a foreign program needs no check before each step.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::wire {

class Json {
 public:
  struct Member;

  // Arrays and objects that are nested deeper than this are not read. Answers contain the metadata
  // of rules as JSON, and a rule file may have 100 levels.
  static constexpr size_t kDepthMax = 128;

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : kind_(value ? Kind::kTrue : Kind::kFalse) {}
  template <std::unsigned_integral T>
  Json(T value) : kind_(Kind::kUnsigned), whole_(value) {}
  template <std::signed_integral T>
  Json(T value) : Json(Signed{value}) {}
  Json(double value) : kind_(Kind::kFraction), fraction_(value) {}
  Json(std::string text) : kind_(Kind::kString), text_(std::move(text)) {}
  Json(std::string_view text) : Json(std::string(text)) {}
  Json(const char* text) : Json(std::string(text)) {}

  static Json Array(std::vector<Json> items = {});
  // The members keep their order.
  static Json Object(std::vector<Member> members = {});

  // Empty if `text` is not one JSON value in UTF-8, or is nested too deeply. If a name comes twice
  // in an object, the last value counts.
  static std::optional<Json> Parse(std::string_view text);

  bool is_null() const { return kind_ == Kind::kNull; }
  bool is_bool() const { return kind_ == Kind::kTrue || kind_ == Kind::kFalse; }
  bool is_number() const {
    return kind_ == Kind::kUnsigned || kind_ == Kind::kNegative || kind_ == Kind::kFraction;
  }
  // Whether it is a number that fits into 64 bits, with or without a sign, and was written without
  // a fraction or an exponent.
  bool is_whole() const { return kind_ == Kind::kUnsigned || kind_ == Kind::kNegative; }
  bool is_string() const { return kind_ == Kind::kString; }
  bool is_array() const { return kind_ == Kind::kArray; }
  bool is_object() const { return kind_ == Kind::kObject; }

  bool truth(bool otherwise = false) const { return is_bool() ? kind_ == Kind::kTrue : otherwise; }
  // The nearest value in range.
  int64_t whole(int64_t otherwise = 0) const;
  uint64_t count(uint64_t otherwise = 0) const;
  double number(double otherwise = 0) const;
  // Valid as long as this value.
  std::string_view text(std::string_view otherwise = {}) const {
    return is_string() ? std::string_view(text_) : otherwise;
  }
  // Empty if this is not an array.
  const std::vector<Json>& items() const { return items_; }
  // Empty if this is not an object.
  const std::vector<Member>& members() const { return members_; }

  // Null if this is not an object with a member of this name.
  const Json* Find(std::string_view name) const;
  // A null value if this is not an object with a member of this name.
  const Json& operator[](std::string_view name) const;
  const Json& operator[](const char* name) const { return (*this)[std::string_view(name)]; }
  // A null value if this is not an array that has this item.
  const Json& operator[](size_t index) const;

  // The member of this name, added as null if it is absent. A null value becomes an object; any
  // other value must be one.
  Json& operator[](std::string_view name);
  Json& operator[](const char* name) { return (*this)[std::string_view(name)]; }
  // Adds a member without looking for its name, which must be new.
  void Add(std::string_view name, Json value);
  // Adds an item. A null value becomes an array; any other value must be one.
  void Append(Json item);

  // On one line, without spaces. Invalid UTF-8 is replaced by U+FFFD.
  std::string Text() const;
  // One line per value, indented by this many spaces per level, for people.
  std::string IndentedText(size_t spaces) const;

  friend bool operator==(const Json&, const Json&) = default;

 private:
  enum class Kind : uint8_t {
    kNull,
    kFalse,
    kTrue,
    kUnsigned,
    kNegative,
    kFraction,
    kString,
    kArray,
    kObject,
  };
  struct Signed {
    int64_t value;
  };
  friend class JsonBuilder;

  Json(Signed number)
      : kind_(number.value < 0 ? Kind::kNegative : Kind::kUnsigned),
        whole_(static_cast<uint64_t>(number.value)) {}
  void Write(std::optional<size_t> spaces, size_t level, std::string& out) const;

  Kind kind_ = Kind::kNull;
  uint64_t whole_ = 0;  // kUnsigned; kNegative in two's complement
  double fraction_ = 0;
  std::string text_;
  std::vector<Json> items_;
  std::vector<Member> members_;
};

struct Json::Member {
  std::string name;
  Json value;
  friend bool operator==(const Member&, const Member&) = default;
};

}  // namespace headgate::wire

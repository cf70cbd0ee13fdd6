// A JSON value (RFC 8259) as a tree, for documents that are read or built outside of the path of a
// decision. Boost.JSON parses them. No header includes it, because it adds a second of compile time
// to each source that does.
//
// Reading never fails: a value that is absent or of another type reads as null, or as the caller's
// default. So the answer of another program needs no check before each step.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace headgate::wire {

class Json {
 public:
  struct Member;

  // Arrays and objects that are nested deeper than this are not read. Answers contain the metadata
  // of rules as JSON, and a rule file may have 100 levels.
  static constexpr size_t kDepthMax = 128;
  // A text with more values is not read. A value takes 40 bytes, a member of an object 72.
  static constexpr size_t kValuesMax = 1'000'000;
  // For the bodies of requests that have a few members.
  static constexpr size_t kRequestValuesMax = 10'000;

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  template <std::unsigned_integral T>
  Json(T value) : value_(uint64_t{value}) {}
  template <std::signed_integral T>
  Json(T value) {
    value < 0 ? value_ = int64_t{value} : value_ = static_cast<uint64_t>(value);
  }
  Json(double value) : value_(value) {}
  Json(std::string text) : value_(std::move(text)) {}
  Json(std::string_view text) : Json(std::string(text)) {}
  Json(const char* text) : Json(std::string(text)) {}

  static Json Array(std::vector<Json> items = {});
  // The members keep their order.
  static Json Object(std::vector<Member> members = {});

  // Empty if `text` is not one JSON value in UTF-8, is nested too deeply, or has more than
  // `values_max` values. Time and memory are linear in the size of the text, whatever the names. If
  // a name comes twice in an object, members() has both, and the last value counts.
  static std::optional<Json> Parse(std::string_view text, size_t values_max = kValuesMax);

  bool is_null() const { return Is<std::nullptr_t>(); }
  bool is_bool() const { return Is<bool>(); }
  bool is_number() const { return is_whole() || Is<double>(); }
  // Whether it is a number that fits into 64 bits, with or without a sign, and was written without
  // a fraction or an exponent.
  bool is_whole() const { return Is<uint64_t>() || Is<int64_t>(); }
  bool is_string() const { return Is<std::string>(); }
  bool is_array() const { return Is<std::vector<Json>>(); }
  bool is_object() const { return Is<std::vector<Member>>(); }

  bool truth(bool otherwise = false) const {
    return is_bool() ? std::get<bool>(value_) : otherwise;
  }
  // The nearest value in range.
  int64_t whole(int64_t otherwise = 0) const;
  uint64_t count(uint64_t otherwise = 0) const;
  double number(double otherwise = 0) const;
  // Valid as long as this value.
  std::string_view text(std::string_view otherwise = {}) const {
    return is_string() ? std::string_view(std::get<std::string>(value_)) : otherwise;
  }
  // Empty if this is not an array.
  const std::vector<Json>& items() const;
  // Empty if this is not an object.
  const std::vector<Member>& members() const;

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
  template <typename T>
  bool Is() const {
    return std::holds_alternative<T>(value_);
  }
  void Write(std::optional<size_t> spaces, size_t level, std::string& out) const;

  // An int64_t is negative.
  std::variant<std::nullptr_t, bool, uint64_t, int64_t, double, std::string, std::vector<Json>,
               std::vector<Member>>
      value_;
};

struct Json::Member {
  std::string name;
  Json value;
  friend bool operator==(const Member&, const Member&) = default;
};

}  // namespace headgate::wire

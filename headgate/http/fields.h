// The fields of a message, in the order in which they arrived. Names are compared without regard to
// case, and keep the case in which they were added.
//
// All text is in one buffer, which keeps its memory when it is cleared.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headgate::http {

class Fields {
 public:
  struct Field {
    std::string_view name;
    std::string_view value;
    bool operator==(const Field&) const = default;
  };

  // `name` and `value` must be valid (RFC 9110, 5.1 and 5.5); they are not checked.
  void Add(std::string_view name, std::string_view value);
  // Removes all fields with this name, and returns their number.
  size_t Remove(std::string_view name);
  void Clear();

  // The value of the first field with this name.
  std::optional<std::string_view> Find(std::string_view name) const;
  size_t CountOf(std::string_view name) const;

  // The memory of the buffers.
  size_t held_bytes() const { return text_.capacity() + places_.capacity() * sizeof(Place); }

  bool empty() const { return places_.empty(); }
  size_t size() const { return places_.size(); }
  // The view is valid until the fields change.
  Field operator[](size_t index) const {
    const Place& place = places_[index];
    const std::string_view text = text_;
    return {text.substr(place.begin, place.name_bytes),
            text.substr(size_t{place.begin} + place.name_bytes, place.value_bytes)};
  }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Field;
    using difference_type = std::ptrdiff_t;
    using pointer = const Field*;
    using reference = Field;

    Iterator(const Fields& fields, size_t index) : fields_(&fields), index_(index) {}
    Field operator*() const { return (*fields_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++index_;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const Fields* fields_;
    size_t index_;
  };
  Iterator begin() const { return {*this, 0}; }
  Iterator end() const { return {*this, size()}; }

  bool operator==(const Fields& other) const;

 private:
  // The value follows the name.
  struct Place {
    uint32_t begin;
    uint32_t name_bytes;
    uint32_t value_bytes;
  };
  std::string text_;
  std::vector<Place> places_;
};

inline const Fields kNoFields;

}  // namespace headgate::http

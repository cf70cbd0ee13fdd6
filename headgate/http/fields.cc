#include "headgate/http/fields.h"

#include <algorithm>

#include "headgate/base/text.h"

namespace headgate::http {

void Fields::Add(std::string_view name, std::string_view value) {
  places_.push_back({.begin = static_cast<uint32_t>(text_.size()),
                     .name_bytes = static_cast<uint32_t>(name.size()),
                     .value_bytes = static_cast<uint32_t>(value.size())});
  text_.append(name).append(value);
}

// The text of a removed field stays until the next Clear.
size_t Fields::Remove(std::string_view name) {
  size_t kept = 0;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (!base::EqualsIgnoreCase((*this)[i].name, name)) places_[kept++] = places_[i];
  }
  const size_t removed = places_.size() - kept;
  places_.resize(kept);
  return removed;
}

void Fields::Clear() {
  text_.clear();
  places_.clear();
}

std::optional<std::string_view> Fields::Find(std::string_view name) const {
  for (const auto [field, value] : *this) {
    if (base::EqualsIgnoreCase(field, name)) return value;
  }
  return std::nullopt;
}

size_t Fields::CountOf(std::string_view name) const {
  return static_cast<size_t>(std::count_if(begin(), end(), [&](const Field& field) {
    return base::EqualsIgnoreCase(field.name, name);
  }));
}

bool Fields::operator==(const Fields& other) const {
  return std::equal(begin(), end(), other.begin(), other.end());
}

}  // namespace headgate::http

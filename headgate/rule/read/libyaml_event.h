// Events of libyaml, for both readers of YAML: document.h and edit/source_tree.h.
#pragma once

#include <string>
#include <string_view>

#include <yaml.h>

#include "headgate/rule/read/document.h"

namespace headgate::rule::read {

// A libyaml event that frees itself.
class Event {
 public:
  Event() = default;
  ~Event() { yaml_event_delete(&event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  yaml_event_t* get() { return &event_; }
  const yaml_event_t* operator->() const { return &event_; }
  const yaml_event_t& operator*() const { return event_; }

 private:
  yaml_event_t event_{};
};

inline std::string_view TextOf(const yaml_char_t* text, size_t size) {
  return {static_cast<const char*>(static_cast<const void*>(text)), size};
}

inline std::string TextOf(const yaml_char_t* text) {
  return static_cast<const char*>(static_cast<const void*>(text));
}

// The tag of a scalar event.
inline Tag TagOf(const yaml_event_t& event) {
  const auto& scalar = event.data.scalar;
  if (scalar.tag == nullptr) return scalar.plain_implicit != 0 ? Tag::kNone : Tag::kString;
  const std::string tag = TextOf(scalar.tag);
  if (tag == YAML_NULL_TAG) return Tag::kNull;
  if (tag == YAML_BOOL_TAG) return Tag::kBool;
  if (tag == YAML_INT_TAG) return Tag::kInt;
  if (tag == YAML_FLOAT_TAG) return Tag::kFloat;
  return Tag::kString;
}

}  // namespace headgate::rule::read

#include "headgate/observe/detail_label.h"

#include <algorithm>

namespace headgate::observe {
namespace {

// Removes `text` from the front of `path` if it is a complete component of the path.
bool TakeComponent(std::string_view& path, std::string_view text) {
  if (!path.starts_with(text)) return false;
  if (path.size() == text.size()) {
    path = {};
    return true;
  }
  if (path[text.size()] != '.') return false;
  path.remove_prefix(text.size() + 1);
  return true;
}

// Reads a rule's path component by component, along the entries that it matched.
class PathReader {
 public:
  explicit PathReader(std::string_view path) : path_(path) {}

  // The component that matched `entry`: "key_value", "key", or a pattern. A pattern ends where the
  // next key begins.
  LabelStep Next(const rule::Entry& entry, const rule::Entry* next) {
    std::string_view rest = path_;
    if (rest.starts_with(entry.key)) {
      rest.remove_prefix(entry.key.size());
      if (rest.starts_with('_')) {
        rest.remove_prefix(1);
        if (TakeComponent(rest, entry.value)) {
          path_ = rest;
          return {entry.key, entry.value};
        }
      }
    }
    if (TakeComponent(path_, entry.key)) return {entry.key};
    size_t end = path_.size();
    for (size_t dot = path_.find('.'); next != nullptr && dot != path_.npos;
         dot = path_.find('.', dot + 1)) {
      if (path_.substr(dot + 1).starts_with(next->key)) {
        end = dot;
        break;
      }
    }
    const std::string_view pattern = path_.substr(0, end);
    path_.remove_prefix(std::min(end + 1, path_.size()));
    return {pattern};
  }

 private:
  std::string_view path_;
};

}  // namespace

DetailLabel DetailLabel::Of(const limiter::DecisionEvent& event) {
  DetailLabel label;
  label.step_count = std::min<size_t>(event.match->step_count, event.entries.size());
  PathReader path(event.rule->path);
  for (size_t i = 0; i < label.step_count; ++i) {
    const rule::Entry& entry = event.entries[i];
    const rule::MatchStep& step = event.match->steps[i];
    const LabelStep own =
        path.Next(entry, i + 1 < label.step_count ? &event.entries[i + 1] : nullptr);
    if (step.shared_pattern != nullptr) {
      label.steps[i] = {*step.shared_pattern};
    } else if (event.rule->detailed_metric || step.value_in_metric) {
      label.steps[i] = {entry.key, entry.value};
    } else {
      label.steps[i] = own;
    }
  }
  return label;
}

std::string DetailLabel::Text(size_t bytes_max) const {
  std::string text;
  for (size_t i = 0; i < step_count && text.size() < bytes_max; ++i) {
    if (i > 0) text += '.';
    text += steps[i].text.substr(0, bytes_max);
    if (steps[i].value.has_value()) {
      text += '_';
      text += steps[i].value->substr(0, bytes_max);
    }
  }
  if (text.size() > bytes_max) text.resize(bytes_max);
  return text;
}

}  // namespace headgate::observe

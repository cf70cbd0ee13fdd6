#include "headgate/rule/wildcard_index.h"

#include <algorithm>

namespace headgate::rule {
namespace {

Pattern Split(std::string_view text, uint32_t target) {
  Pattern pattern{.text = std::string(text),
                  .target = target,
                  .middles = {},
                  .suffix = {},
                  .prefix_size = 0,
                  .literal_size = 0};
  size_t star = text.find('*');
  pattern.prefix_size = star;
  pattern.literal_size = star;
  while (true) {
    const size_t begin = star + 1;
    star = text.find('*', begin);
    if (star == std::string_view::npos) {
      pattern.suffix = text.substr(begin);
      pattern.literal_size += pattern.suffix.size();
      return pattern;
    }
    if (star > begin) pattern.middles.emplace_back(text.substr(begin, star - begin));
    pattern.literal_size += star - begin;
  }
}

}  // namespace

bool IsPattern(std::string_view text) { return text.find('*') != std::string_view::npos; }

bool Pattern::MatchesAfterPrefix(const JoinedText& entry) const {
  if (literal_size > entry.size()) return false;
  const size_t end = entry.size() - suffix.size();
  if (!entry.HasAt(end, suffix)) return false;
  size_t position = prefix_size;
  for (const std::string& middle : middles) {
    const size_t found = entry.Find(middle, position, end);
    if (found == JoinedText::kNotFound) return false;
    position = found + middle.size();
  }
  return true;
}

WildcardIndex::WildcardIndex(const std::vector<Source>& patterns) {
  patterns_.reserve(patterns.size());
  for (const auto& [text, target] : patterns) patterns_.push_back(Split(text, target));

  std::vector<uint32_t> order(patterns_.size());
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto prefix_of = [this](uint32_t i) {
    return std::string_view(patterns_[i].text).substr(0, patterns_[i].prefix_size);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return prefix_of(a) < prefix_of(b); });

  for (const uint32_t i : order) {
    const std::string_view text = prefix_of(i);
    if (prefixes_.empty() || prefixes_.back().text != text) {
      // In sorted order, any prefix that this text begins with is the previous one or in the
      // previous one's chain.
      size_t shorter = prefixes_.empty() ? kNone : prefixes_.size() - 1;
      while (shorter != kNone && !text.starts_with(prefixes_[shorter].text))
        shorter = prefixes_[shorter].shorter;
      prefixes_.push_back({.text = std::string(text), .shorter = shorter, .patterns = {}});
    }
    prefixes_.back().patterns.push_back(i);
  }
}

const Pattern* WildcardIndex::FirstMatch(const JoinedText& entry) const {
  const auto after =
      std::partition_point(prefixes_.begin(), prefixes_.end(),
                           [&](const Prefix& prefix) { return !entry.Before(prefix.text); });
  size_t at =
      after == prefixes_.begin() ? kNone : static_cast<size_t>(after - prefixes_.begin()) - 1;
  while (at != kNone && !entry.HasAt(0, prefixes_[at].text)) at = prefixes_[at].shorter;

  uint32_t first = static_cast<uint32_t>(patterns_.size());
  for (; at != kNone; at = prefixes_[at].shorter) {
    for (const uint32_t i : prefixes_[at].patterns) {
      if (i >= first) break;
      if (patterns_[i].MatchesAfterPrefix(entry)) {
        first = i;
        break;
      }
    }
  }
  return first < patterns_.size() ? &patterns_[first] : nullptr;
}

}  // namespace headgate::rule

#include "headgate/rule/edit/same_meaning.h"

#include <algorithm>
#include <array>

#include "absl/container/flat_hash_map.h"
#include "headgate/rule/read/scalar.h"

namespace headgate::rule::edit {

using read::DocumentNode;
using read::NodeKind;
using read::Resolve;
using read::Scalar;
using read::ScalarType;
using read::Tag;

namespace {

// The fields that the loader reads as they are written.
constexpr std::array<std::string_view, 16> kTexts{"algorithm",
                                                  "align",
                                                  "domain",
                                                  "fallback_share",
                                                  "key",
                                                  "max_delay",
                                                  "name",
                                                  "of",
                                                  "on_store_failure",
                                                  "per",
                                                  "period",
                                                  "reserve",
                                                  "sharing",
                                                  "ttl",
                                                  "unit",
                                                  "value"};

const DocumentNode& Target(const DocumentNode& node) { return node; }
const SourceNode& Target(const SourceNode& node) { return node.target(); }

Scalar ScalarOf(Tag tag, std::string_view text) {
  return Resolve({.kind = NodeKind::kScalar, .tag = tag, .mark = {}, .text = text});
}

template <typename Node>
bool SameScalars(const Node& a, const Node& b, bool as_text) {
  const Scalar left = ScalarOf(a.tag, a.text);
  const Scalar right = ScalarOf(b.tag, b.text);
  if (left.type != right.type) return false;
  if (left.type == ScalarType::kNull || a.text == b.text) return true;
  if (as_text) return false;
  if (left.type == ScalarType::kBool) return left.truth == right.truth;
  return left.type == ScalarType::kInt && left.number == right.number;
}

template <typename Node>
bool Same(const Node& first, const Node& second, std::string_view field) {
  const Node& a = Target(first);
  const Node& b = Target(second);
  if (&a == &b) return true;
  if (a.kind != b.kind || a.children.size() != b.children.size()) return false;
  if (a.kind == NodeKind::kScalar)
    return SameScalars(a, b, std::find(kTexts.begin(), kTexts.end(), field) != kTexts.end());
  if (a.kind == NodeKind::kSequence) {
    for (size_t i = 0; i < a.children.size(); ++i) {
      if (!Same(*a.children[i], *b.children[i], {})) return false;
    }
    return true;
  }
  absl::flat_hash_map<std::string_view, size_t> places;
  for (size_t i = 0; i < b.children.size(); i += 2) {
    const Node& key = Target(*b.children[i]);
    // Merges are not expanded here, so a merge counts as different from everything.
    if (key.tag == Tag::kNone && key.text == "<<") return false;
    if (key.kind != NodeKind::kScalar || !places.emplace(key.text, i).second) return false;
  }
  for (size_t i = 0; i < a.children.size(); i += 2) {
    const Node& key = Target(*a.children[i]);
    if (key.kind != NodeKind::kScalar) return false;
    const auto place = places.find(key.text);
    if (place == places.end() || !SameScalars(key, Target(*b.children[place->second]), true) ||
        !Same(*a.children[i + 1], *b.children[place->second + 1], key.text))
      return false;
    places.erase(place);
  }
  return true;
}

}  // namespace

bool SameMeaning(const DocumentNode& a, const DocumentNode& b, std::string_view field) {
  return Same(a, b, field);
}

bool SameMeaning(const SourceNode& a, const SourceNode& b, std::string_view field) {
  return Same(a, b, field);
}

bool SameKey(const SourceNode& a, const SourceNode& b) {
  const SourceNode& left = a.target();
  const SourceNode& right = b.target();
  return left.kind == NodeKind::kScalar && right.kind == NodeKind::kScalar &&
         SameScalars(left, right, true);
}

bool SameNodes(const DocumentNode& a, const DocumentNode& b) {
  return a.kind == b.kind && a.tag == b.tag && a.text == b.text &&
         std::equal(a.children.begin(), a.children.end(), b.children.begin(), b.children.end(),
                    [](const DocumentNode* x, const DocumentNode* y) { return SameNodes(*x, *y); });
}

}  // namespace headgate::rule::edit

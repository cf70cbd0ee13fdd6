#include "headgate/rule/edit/rule_edit_check.h"

#include <algorithm>
#include <array>
#include <vector>

#include "headgate/rule/edit/same_meaning.h"
#include "headgate/rule/read/scalar.h"

namespace headgate::rule::edit {

using read::DocumentNode;
using read::IsNull;
using read::NodeKind;

namespace {

bool Names(const DocumentNode& item, const RuleEntry& entry) {
  return item.kind == NodeKind::kMapping && FieldText(item, "key") == entry.key &&
         FieldText(item, "value") == entry.value.value_or("");
}

absl::Status Wrong(std::string_view what) {
  return absl::InternalError(std::string("the edit would change more than the rule, or not as "
                                         "asked for: ")
                                 .append(what));
}

using Pair = std::pair<const DocumentNode*, const DocumentNode*>;

// The pairs whose field passes `keep`, in order.
template <typename Keep>
std::vector<Pair> PairsOf(const DocumentNode& mapping, Keep keep) {
  std::vector<Pair> pairs;
  for (size_t i = 0; i + 1 < mapping.children.size(); i += 2) {
    if (keep(mapping.children[i]->text))
      pairs.emplace_back(mapping.children[i], mapping.children[i + 1]);
  }
  return pairs;
}

template <typename Keep>
bool SamePairs(const DocumentNode& before, const DocumentNode& after, Keep keep) {
  const std::vector<Pair> old = PairsOf(before, keep);
  const std::vector<Pair> now = PairsOf(after, keep);
  return std::equal(old.begin(), old.end(), now.begin(), now.end(),
                    [](const Pair& a, const Pair& b) {
                      return SameNodes(*a.first, *b.first) && SameNodes(*a.second, *b.second);
                    });
}

bool NotDescriptors(std::string_view field) { return field != "descriptors"; }
bool OfLimit(std::string_view field) { return IsOfLimit(field); }
bool NotOfLimit(std::string_view field) { return !OfLimit(field); }
bool IsName(std::string_view field) { return field == "key" || field == "value"; }
bool NotName(std::string_view field) { return !IsName(field); }

class EditCheck {
 public:
  EditCheck(std::span<const RuleEntry> path, const DocumentNode* rule) : path_(path), rule_(rule) {}

  // `before` is null for a parent that has been added.
  absl::Status Level(const DocumentNode* before, const DocumentNode& after, size_t depth) const {
    if (after.kind != NodeKind::kMapping) return Wrong("a parent is not a mapping");
    if (before != nullptr && !SamePairs(*before, after, NotDescriptors))
      return Wrong("a field above the rule");
    const auto old =
        before == nullptr ? std::span<const DocumentNode* const>() : DescriptorsOf(*before);
    const auto now = DescriptorsOf(after);
    const RuleEntry& entry = path_[depth];
    const auto found = std::find_if(old.begin(), old.end(),
                                    [&](const DocumentNode* item) { return Names(*item, entry); });
    const size_t place = static_cast<size_t>(found - old.begin());
    const bool is_last = depth + 1 == path_.size();
    if (found == old.end() && rule_ == nullptr) return Wrong("the rule did not exist");
    const bool vanishes = is_last && rule_ == nullptr && DescriptorsOf(**found).empty();
    const size_t size = vanishes ? old.size() - 1 : std::max(old.size(), place + 1);
    if (now.size() != size) return Wrong("the number of rules");
    for (size_t i = 0; i < old.size(); ++i) {
      if (i == place) continue;
      if (!SameNodes(*old[i], *now[vanishes && i > place ? i - 1 : i]))
        return Wrong("another rule");
    }
    if (vanishes) return absl::OkStatus();
    const DocumentNode* const item = found == old.end() ? nullptr : *found;
    if (is_last) return rule_ == nullptr ? Stripped(*item, *now[place]) : Put(item, *now[place]);
    if (item == nullptr && !IsNewParent(*now[place], entry)) return Wrong("a parent of the rule");
    return Level(item, *now[place], depth + 1);
  }

 private:
  static bool IsNewParent(const DocumentNode& node, const RuleEntry& entry) {
    const size_t pairs = entry.value.value_or("").empty() ? 2 : 3;
    return Names(node, entry) && node.children.size() == 2 * pairs &&
           FieldOf(node, "descriptors") != nullptr;
  }

  static absl::Status Stripped(const DocumentNode& before, const DocumentNode& after) {
    if (after.kind != NodeKind::kMapping || !SamePairs(before, after, NotOfLimit) ||
        !PairsOf(after, OfLimit).empty())
      return Wrong("the rule without its limit");
    return absl::OkStatus();
  }

  absl::Status Put(const DocumentNode* before, const DocumentNode& after) const {
    if (!Names(after, path_.back())) return Wrong("the name of the rule");
    if (before != nullptr && !SamePairs(*before, after, IsName))
      return Wrong("the name of the rule");
    const DocumentNode* const kept = before != nullptr && FieldOf(*rule_, "descriptors") == nullptr
                                         ? FieldOf(*before, "descriptors")
                                         : nullptr;
    size_t asked = kept == nullptr ? 0 : 1;
    for (const auto& [key, value] : PairsOf(*rule_, NotName)) {
      ++asked;
      const DocumentNode* const now = FieldOf(after, key->text);
      if (now == nullptr || !SameMeaning(*now, *value, key->text))
        return Wrong("a field of the rule");
    }
    if (kept != nullptr) {
      const DocumentNode* const now = FieldOf(after, "descriptors");
      if (now == nullptr || !SameNodes(*now, *kept)) return Wrong("the rules below");
    }
    if (PairsOf(after, NotName).size() != asked) return Wrong("the fields of the rule");
    return absl::OkStatus();
  }

  std::span<const RuleEntry> path_;
  const DocumentNode* rule_;
};

}  // namespace

const DocumentNode* FieldOf(const DocumentNode& mapping, std::string_view field) {
  const DocumentNode* found = nullptr;
  for (size_t i = 0; i + 1 < mapping.children.size(); i += 2) {
    const DocumentNode& key = *mapping.children[i];
    if (key.kind == NodeKind::kScalar && key.text == field) found = mapping.children[i + 1];
  }
  return found;
}

std::string_view FieldText(const DocumentNode& mapping, std::string_view field) {
  const DocumentNode* const value = FieldOf(mapping, field);
  if (value == nullptr || value->kind != NodeKind::kScalar || IsNull(*value)) return {};
  return value->text;
}

std::span<const DocumentNode* const> DescriptorsOf(const DocumentNode& mapping) {
  const DocumentNode* const list = FieldOf(mapping, "descriptors");
  if (list == nullptr || list->kind != NodeKind::kSequence) return {};
  return list->children;
}

bool IsOfLimit(std::string_view field) {
  constexpr std::array<std::string_view, 10> kFields{
      "rate_limit", "rate_limits",       "rollout", "shadow_mode",     "quota_mode",
      "quota_unit", "rate_limit_fields", "refusal", "detailed_metric", "metadata"};
  return std::find(kFields.begin(), kFields.end(), field) != kFields.end();
}

absl::Status CheckEdit(const DocumentNode& before, const DocumentNode& after,
                       std::span<const RuleEntry> path, const DocumentNode* rule) {
  return EditCheck(path, rule).Level(&before, after, 0);
}

}  // namespace headgate::rule::edit

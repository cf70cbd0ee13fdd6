#include "headgate/rule/rollout_edit.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "headgate/rule/node_writer.h"
#include "headgate/rule/source_tree.h"

namespace headgate::rule {
namespace {

constexpr std::string_view kRollout = "rollout";

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A mapping as the fields of a rule that is put: those of `from`, changed step by step.
class FieldList {
 public:
  explicit FieldList(const SourceNode& mapping) {
    for (size_t i = 0; i < mapping.pair_count(); ++i) {
      const SourceNode& key = mapping.key(i);
      fields_.push_back(
          {.name = key.target().text, .text = FlowPair(key, mapping.value(i), Quotes::kIfNeeded)});
    }
  }

  void Remove(std::initializer_list<std::string_view> names) {
    std::erase_if(fields_, [&](const Field& field) { return IsOneOf(field.name, names); });
  }
  void Add(const SourceNode& key, const SourceNode& value) {
    fields_.push_back({.name = key.target().text, .text = FlowPair(key, value, Quotes::kIfNeeded)});
  }
  void Add(std::string_view name, const std::string& value) {
    fields_.push_back({.name = std::string(name), .text = std::string(name) + ": " + value});
  }
  bool Has(std::string_view name) const {
    return std::any_of(fields_.begin(), fields_.end(),
                       [&](const Field& field) { return field.name == name; });
  }
  std::string AsMapping() const {
    std::string text = "{";
    for (const Field& field : fields_) text.append(text.size() > 1 ? ", " : "").append(field.text);
    return text.append("}");
  }

 private:
  struct Field {
    std::string name;
    std::string text;
  };
  std::vector<Field> fields_;
};

const SourceNode* ValueOf(const SourceNode& mapping, std::string_view name) {
  for (size_t i = 0; i < mapping.pair_count(); ++i)
    if (mapping.key(i).target().text == name) return &mapping.value(i).target();
  return nullptr;
}

// The mapping that a text consists of, or that is its only item.
const SourceNode* MappingIn(const SourceTree& tree) {
  const SourceNode* node = tree.root();
  if (node != nullptr && node->kind == NodeKind::kSequence && node->children.size() == 1)
    node = &node->children[0]->target();
  return node != nullptr && node->kind == NodeKind::kMapping ? node : nullptr;
}

// The rule's own fields, without those that PutRule leaves alone.
FieldList FieldsOf(const SourceNode& rule) {
  FieldList fields(rule);
  fields.Remove({"key", "value", "descriptors"});
  return fields;
}

// Calls `change` with the rule's mapping and its roll-out (or null), and puts the fields that it
// returns.
template <typename Change>
absl::StatusOr<std::string> ChangeRule(std::string_view document, std::span<const RuleEntry> path,
                                       const Change& change) {
  HEADGATE_ASSIGN_OR_RETURN(const std::string text, RuleText(document, path));
  HEADGATE_ASSIGN_OR_RETURN(const SourceTree tree, ParseSource(text));
  const SourceNode* const rule = MappingIn(tree);
  if (rule == nullptr) return absl::FailedPreconditionError("the rule is not a mapping");
  const SourceNode* const rollout = ValueOf(*rule, kRollout);
  if (rollout != nullptr && rollout->kind != NodeKind::kMapping)
    return absl::FailedPreconditionError("the rule's rollout is not a mapping");
  HEADGATE_ASSIGN_OR_RETURN(const FieldList fields, change(*rule, rollout));
  return PutRule(document, path, fields.AsMapping());
}

// A limit of a roll-out together with those fields of the rule's own limits that a roll-out cannot
// have. They hold for all limits of a rule, whichever has them.
FieldList WithKept(const SourceNode& limit, const SourceNode& rule) {
  FieldList fields(limit);
  const auto keep = [&fields](const SourceNode& own) {
    for (size_t i = 0; i < own.pair_count(); ++i) {
      const std::string& name = own.key(i).target().text;
      if (IsOneOf(name, {"name", "replaces", "sharing", "strict", "on_store_failure",
                         "fallback_share"}) &&
          !fields.Has(name))
        fields.Add(own.key(i), own.value(i));
    }
  };
  if (const SourceNode* const one = ValueOf(rule, "rate_limit"); one != nullptr) keep(*one);
  if (const SourceNode* const several = ValueOf(rule, "rate_limits"); several != nullptr)
    for (const SourceNode* const item : several->children) keep(item->target());
  return fields;
}

absl::Status NoRollout() { return absl::NotFoundError("no roll-out of this rule is under way"); }

}  // namespace

absl::StatusOr<std::string> PutRollout(std::string_view document, std::span<const RuleEntry> path,
                                       std::string_view rollout) {
  HEADGATE_ASSIGN_OR_RETURN(const SourceTree tree, ParseSource(rollout));
  const SourceNode* const wanted = MappingIn(tree);
  if (wanted == nullptr)
    return absl::InvalidArgumentError(
        "1:1: a roll-out is a mapping: percent or shadow, rate_limit");
  return ChangeRule(
      document, path,
      [&](const SourceNode& rule, const SourceNode* under_way) -> absl::StatusOr<FieldList> {
        FieldList next(*wanted);
        const bool has_limit =
            ValueOf(*wanted, "rate_limit") != nullptr || ValueOf(*wanted, "rate_limits") != nullptr;
        if (!has_limit && under_way != nullptr) {
          for (size_t i = 0; i < under_way->pair_count(); ++i)
            if (IsOneOf(under_way->key(i).target().text, {"rate_limit", "rate_limits"}))
              next.Add(under_way->key(i), under_way->value(i));
        }
        FieldList fields = FieldsOf(rule);
        fields.Remove({kRollout});
        fields.Add(kRollout, next.AsMapping());
        return fields;
      });
}

absl::StatusOr<std::string> PromoteRollout(std::string_view document,
                                           std::span<const RuleEntry> path) {
  return ChangeRule(
      document, path,
      [](const SourceNode& rule, const SourceNode* rollout) -> absl::StatusOr<FieldList> {
        if (rollout == nullptr) return NoRollout();
        FieldList fields = FieldsOf(rule);
        fields.Remove({kRollout, "rate_limit", "rate_limits"});
        if (const SourceNode* const limit = ValueOf(*rollout, "rate_limit")) {
          fields.Add("rate_limit", WithKept(*limit, rule).AsMapping());
        } else if (const SourceNode* const limits = ValueOf(*rollout, "rate_limits")) {
          std::string list;
          for (const SourceNode* const item : limits->children) {
            const FieldList one =
                list.empty() ? WithKept(item->target(), rule) : FieldList(item->target());
            list.append(list.empty() ? "[" : ", ").append(one.AsMapping());
          }
          fields.Add("rate_limits", list + "]");
        }
        return fields;
      });
}

absl::StatusOr<std::string> EndRollout(std::string_view document, std::span<const RuleEntry> path) {
  return ChangeRule(
      document, path,
      [](const SourceNode& rule, const SourceNode* rollout) -> absl::StatusOr<FieldList> {
        if (rollout == nullptr) return NoRollout();
        FieldList fields = FieldsOf(rule);
        fields.Remove({kRollout});
        return fields;
      });
}

std::string DomainOf(std::string_view document) {
  const auto tree = ParseSource(document);
  if (!tree.ok() || tree->root() == nullptr || tree->root()->kind != NodeKind::kMapping) return {};
  const SourceNode* const domain = ValueOf(*tree->root(), "domain");
  return domain != nullptr && domain->kind == NodeKind::kScalar ? domain->text : std::string();
}

}  // namespace headgate::rule

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
  void Add(std::string_view name, const FieldList& value) {
    fields_.push_back(
        {.name = std::string(name), .text = std::string(name) + ": " + value.AsMapping()});
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
        fields.Add(kRollout, next);
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
        fields.Remove({kRollout});
        const SourceNode* const old_limit = ValueOf(rule, "rate_limit");
        const SourceNode* const new_limit = ValueOf(*rollout, "rate_limit");
        if (new_limit != nullptr && old_limit != nullptr && old_limit->kind == NodeKind::kMapping &&
            new_limit->kind == NodeKind::kMapping) {
          // The fields that a roll-out cannot have stay as they were.
          FieldList limit(*new_limit);
          for (size_t i = 0; i < old_limit->pair_count(); ++i) {
            if (IsOneOf(old_limit->key(i).target().text, {"name", "replaces", "sharing", "strict",
                                                          "on_store_failure", "fallback_share"}))
              limit.Add(old_limit->key(i), old_limit->value(i));
          }
          fields.Remove({"rate_limit"});
          fields.Add("rate_limit", limit);
          return fields;
        }
        fields.Remove({"rate_limit", "rate_limits"});
        for (size_t i = 0; i < rollout->pair_count(); ++i)
          if (IsOneOf(rollout->key(i).target().text, {"rate_limit", "rate_limits"}))
            fields.Add(rollout->key(i), rollout->value(i));
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

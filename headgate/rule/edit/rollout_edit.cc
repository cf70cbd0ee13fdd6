#include "headgate/rule/edit/rollout_edit.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "headgate/rule/edit/node_writer.h"
#include "headgate/rule/edit/same_meaning.h"
#include "headgate/rule/edit/source_tree.h"
#include "headgate/rule/quote.h"
#include "headgate/rule/read/document.h"
#include "headgate/rule/read/limit_reader.h"

namespace headgate::rule::edit {

using read::Document;
using read::InheritedBy;
using read::InheritedPlaces;
using read::NodeKind;

namespace {

constexpr std::string_view kRolloutField = "rollout";

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The fields of the rule for PutRule. They begin as a copy of the fields of `from`, and are changed
// step by step.
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

// The mapping that is the whole text, or the only item of a list that is the whole text.
const SourceNode* MappingIn(const SourceTree& tree) {
  const SourceNode* node = tree.root();
  if (node != nullptr && node->kind == NodeKind::kSequence && node->children.size() == 1)
    node = &node->children[0]->target();
  return node != nullptr && node->kind == NodeKind::kMapping ? node : nullptr;
}

// The rule's own fields, without the fields that PutRule leaves alone.
FieldList FieldsOf(const SourceNode& rule) {
  FieldList fields(rule);
  fields.Remove({"key", "value", "descriptors"});
  return fields;
}

absl::Status Unusual() {
  return absl::FailedPreconditionError(
      "the rule has an alias, a merge key (<<) or a field that occurs twice; edit the text by "
      "hand");
}

// Whether the fields of the rule contain a case that Unusual() reports. The rules below it do not
// matter.
bool IsUnusual(const SourceNode& node) {
  if (node.is_alias()) return true;
  if (node.kind == NodeKind::kMapping) {
    std::vector<std::string_view> names;
    for (size_t i = 0; i < node.pair_count(); ++i) {
      const SourceNode& key = node.key(i);
      if (IsUnusual(key) || IsMergeKey(key)) return true;
      names.push_back(key.text);
      if (key.text != "descriptors" && IsUnusual(node.value(i))) return true;
    }
    std::sort(names.begin(), names.end());
    return std::adjacent_find(names.begin(), names.end()) != names.end();
  }
  return std::any_of(node.children.begin(), node.children.end(),
                     [](const SourceNode* child) { return IsUnusual(*child); });
}

// Calls `change` with the rule's mapping and its roll-out (or null), and puts the fields that it
// returns.
template <typename Change>
absl::StatusOr<std::string> ChangeRule(std::string_view document, std::span<const RuleEntry> path,
                                       const Change& change) {
  HEADGATE_ASSIGN_OR_RETURN(const std::string text, RuleText(document, path));
  const auto tree = ParseSource(text);
  // The rule alone cannot be read if it has an alias of another part of the document.
  if (!tree.ok()) return Unusual();
  const SourceNode* const rule = MappingIn(*tree);
  if (rule == nullptr) return absl::FailedPreconditionError("the rule is not a mapping");
  if (IsUnusual(*rule)) return Unusual();
  const SourceNode* const rollout = ValueOf(*rule, kRolloutField);
  if (rollout != nullptr && rollout->kind != NodeKind::kMapping)
    return absl::FailedPreconditionError("the rule's rollout is not a mapping");
  HEADGATE_ASSIGN_OR_RETURN(const FieldList fields, change(*rule, rollout));
  return PutRule(document, path, fields.AsMapping());
}

// The limits of a rule or of a roll-out.
std::vector<const SourceNode*> LimitsOf(const SourceNode& mapping) {
  std::vector<const SourceNode*> limits;
  if (const SourceNode* const one = ValueOf(mapping, "rate_limit"); one != nullptr)
    limits.push_back(one);
  if (const SourceNode* const several = ValueOf(mapping, "rate_limits"); several != nullptr)
    for (const SourceNode* const item : several->children) limits.push_back(&item->target());
  return limits;
}

// Whether the field means the same without this value, once its presence has chosen the defaults.
bool SaysNothing(const SourceNode& value, std::string_view field) {
  SourceNode truth;
  truth.text = "true";
  if (field == "strict") return !SameMeaning(value, truth, field);
  return value.text.empty() || SameMeaning(value, SourceNode(), field);
}

// Turns a limit of a roll-out into a limit of the rule: adds the fields that only a rule's limits
// can have. Each limit gets the fields about stores that it inherited during the roll-out
// (InheritedBy), because they change the defaults of its other fields.
FieldList Promoted(const SourceNode& limit, size_t place, size_t count,
                   std::span<const SourceNode* const> own) {
  FieldList fields(limit);
  std::string replaces;
  const InheritedPlaces from = InheritedBy(place, count, own.size());
  for (size_t from_place = from.first; from_place < from.end; ++from_place) {
    const SourceNode& one = *own[from_place];
    for (size_t i = 0; i < one.pair_count(); ++i) {
      const std::string& name = one.key(i).target().text;
      const bool about_stores =
          IsOneOf(name, {"sharing", "strict", "on_store_failure", "fallback_share"});
      // A limit of the roll-out at a position that the rule does not have takes over no names.
      const bool names = place < own.size() && IsOneOf(name, {"name", "replaces"});
      if (names && name == "replaces") {
        for (const SourceNode* const item : one.value(i).children)
          replaces.append(replaces.empty() ? "" : ", ").append(FlowText(*item, Quotes::kIfNeeded));
      } else if (about_stores || names) {
        if (fields.Has(name) && !SaysNothing(one.value(i), name)) fields.Remove({name});
        if (!fields.Has(name)) fields.Add(one.key(i), one.value(i));
      }
    }
  }
  if (!replaces.empty()) fields.Add("replaces", "[" + replaces + "]");
  return fields;
}

// A text that is one document. A second one would be ignored.
absl::StatusOr<SourceTree> ParseAlone(std::string_view text) {
  const Document::Parsed parsed = Document::Parse(text);
  if (parsed.error) {
    return absl::InvalidArgumentError(fmt::format(
        "{}:{}: {}", parsed.error->mark.line, parsed.error->mark.column, parsed.error->message));
  }
  return ParseSource(text);
}

bool IsPercent(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

absl::Status NoRollout() { return absl::NotFoundError("this rule has no roll-out"); }

}  // namespace

absl::StatusOr<std::string> PutRollout(std::string_view document, std::span<const RuleEntry> path,
                                       std::string_view rollout) {
  HEADGATE_ASSIGN_OR_RETURN(const SourceTree tree, ParseAlone(rollout));
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
        fields.Remove({kRolloutField});
        fields.Add(kRolloutField, next.AsMapping());
        return fields;
      });
}

absl::StatusOr<std::string> RolloutWith(std::string_view limits,
                                        const std::optional<std::string>& percent) {
  if (percent && !IsPercent(*percent)) {
    return absl::InvalidArgumentError(
        fmt::format("{} is not a percentage, such as 5 or 0.1", Quote(*percent)));
  }
  HEADGATE_ASSIGN_OR_RETURN(const SourceTree tree, ParseAlone(limits));
  const SourceNode nothing{.kind = NodeKind::kMapping};
  const SourceNode* const mapping = tree.root() == nullptr ? &nothing : MappingIn(tree);
  if (mapping == nullptr || IsUnusual(*mapping)) {
    return absl::InvalidArgumentError(
        "1:1: limits are a mapping with rate_limit or rate_limits, without aliases");
  }
  for (size_t i = 0; i < mapping->pair_count(); ++i) {
    const std::string& name = mapping->key(i).target().text;
    if (!IsOneOf(name, {"key", "value", "rate_limit", "rate_limits"})) {
      return absl::InvalidArgumentError(fmt::format(
          "1:1: {} cannot be rolled out; the limits are rate_limit or rate_limits", Quote(name)));
    }
  }
  FieldList fields(*mapping);
  fields.Remove({"key", "value"});
  percent ? fields.Add("percent", *percent) : fields.Add("shadow", std::string("true"));
  return fields.AsMapping();
}

absl::StatusOr<std::string> PromoteRollout(std::string_view document,
                                           std::span<const RuleEntry> path) {
  return ChangeRule(
      document, path,
      [](const SourceNode& rule, const SourceNode* rollout) -> absl::StatusOr<FieldList> {
        if (rollout == nullptr) return NoRollout();
        FieldList fields = FieldsOf(rule);
        fields.Remove({kRolloutField, "rate_limit", "rate_limits"});
        const std::vector<const SourceNode*> own = LimitsOf(rule);
        const std::vector<const SourceNode*> tried = LimitsOf(*rollout);
        std::string list;
        for (size_t i = 0; i < tried.size(); ++i)
          list.append(i == 0 ? "" : ", ")
              .append(Promoted(*tried[i], i, tried.size(), own).AsMapping());
        if (ValueOf(*rollout, "rate_limit") != nullptr) {
          fields.Add("rate_limit", list);
        } else {
          fields.Add("rate_limits", "[" + list + "]");
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
        fields.Remove({kRolloutField});
        return fields;
      });
}

std::string DomainOf(std::string_view document) {
  const auto tree = ParseSource(document);
  if (!tree.ok() || tree->root() == nullptr || tree->root()->kind != NodeKind::kMapping) return {};
  const SourceNode* const domain = ValueOf(*tree->root(), "domain");
  return domain != nullptr && domain->kind == NodeKind::kScalar ? domain->text : std::string();
}

}  // namespace headgate::rule::edit

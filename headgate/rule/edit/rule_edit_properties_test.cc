// Random rule files in random styles, and random edits: the result has exactly the expected rules,
// and every line of the other rules is unchanged. A failure prints the seed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "headgate/base/random.h"
#include "headgate/base/text.h"
#include "headgate/rule/edit/rule_edit.h"
#include "headgate/rule/read/document.h"

namespace headgate::rule::edit {
namespace rule_edit_properties_test {

using read::Document;
using read::DocumentNode;
using read::NodeKind;

// A value of a field as YAML, and the pairs of a mapping or the items of a list.
struct Value {
  enum class Kind : uint8_t { kScalar, kMapping, kList } kind = Kind::kScalar;
  std::string text{};                                    // a scalar: as Document reads it
  std::vector<std::pair<std::string, Value>> members{};  // items of a list have no names
};

struct RuleModel {
  int id = 0;
  std::string key;
  std::string value;
  std::vector<std::pair<std::string, Value>> fields;
  std::vector<std::unique_ptr<RuleModel>> children;
};

// A line, and the rule that it belongs to; 0: the file.
struct Line {
  int owner;
  std::string text;
};

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

std::string Canonical(const Value& value) {
  if (value.kind == Value::Kind::kScalar) return Quoted(value.text);
  std::vector<std::string> parts;
  for (const auto& [name, member] : value.members)
    parts.push_back(name.empty() ? Canonical(member) : Quoted(name) + ":" + Canonical(member));
  if (value.kind == Value::Kind::kList) return fmt::format("[{}]", fmt::join(parts, ","));
  std::sort(parts.begin(), parts.end());
  return fmt::format("{{{}}}", fmt::join(parts, ","));
}

std::string Canonical(const RuleModel& rule) {
  std::vector<std::string> parts;
  if (!rule.key.empty()) parts.push_back("\"key\":" + Quoted(rule.key));
  if (!rule.value.empty()) parts.push_back("\"value\":" + Quoted(rule.value));
  for (const auto& [name, value] : rule.fields)
    parts.push_back(Quoted(name) + ":" + Canonical(value));
  std::string children;
  for (const auto& child : rule.children)
    children += (children.empty() ? "" : ",") + Canonical(*child);
  if (!children.empty()) parts.push_back("\"descriptors\":[" + children + "]");
  std::sort(parts.begin(), parts.end());
  return fmt::format("{{{}}}", fmt::join(parts, ","));
}

// An empty list of descriptors is the same as none.
std::string Canonical(const DocumentNode& node) {
  if (node.kind == NodeKind::kScalar) return Quoted(node.text);
  std::vector<std::string> parts;
  if (node.kind == NodeKind::kSequence) {
    for (const DocumentNode* child : node.children) parts.push_back(Canonical(*child));
    return fmt::format("[{}]", fmt::join(parts, ","));
  }
  for (size_t i = 0; i < node.children.size(); i += 2) {
    const DocumentNode& value = *node.children[i + 1];
    if (node.children[i]->text == "descriptors" && value.children.empty()) continue;
    parts.push_back(Quoted(node.children[i]->text) + ":" + Canonical(value));
  }
  std::sort(parts.begin(), parts.end());
  return fmt::format("{{{}}}", fmt::join(parts, ","));
}

class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    json_ = Chance(5);
    flow_file_ = json_ || Chance(5);
    keys_ = 1 + random_.Below(4);
    dashes_ = random_.Below(4);
    item_ = 2 + random_.Below(2);
    trailing_comma_ = !json_ && Chance(3);
    root_.fields.emplace_back("domain", Value{.text = "edge"});
    AddChildren(root_, 0);
  }

  RuleModel& root() { return root_; }
  base::Random& random() { return random_; }
  bool flow_file() const { return flow_file_; }
  bool Chance(uint64_t one_in) { return random_.Below(one_in) == 0; }

  std::string Text() {
    static constexpr std::string_view kTexts[] = {"x",    "gold", "a b",   "yes", "010", "é",
                                                  "a: b", "#",    "\"q\"", "*",   "-",   "{a}"};
    return std::string(kTexts[random_.Below(std::size(kTexts))]);
  }

  std::vector<std::pair<std::string, Value>> Fields() {
    std::vector<std::pair<std::string, Value>> fields;
    const uint64_t limits = random_.Below(4);
    if (limits == 0) {
      Value list{.kind = Value::Kind::kList};
      for (uint64_t i = 0; i <= random_.Below(3); ++i) list.members.emplace_back("", Limit());
      fields.emplace_back("rate_limits", std::move(list));
    } else if (limits < 3) {
      fields.emplace_back("rate_limit", Limit());
    }
    if (Chance(3)) fields.emplace_back("shadow_mode", Value{.text = "true"});
    if (Chance(4)) fields.emplace_back("quota_mode", Value{.text = "false"});
    if (Chance(3)) {
      Value metadata{.kind = Value::Kind::kMapping};
      metadata.members.emplace_back("owner", Value{.text = Text()});
      if (Chance(2)) {
        Value list{.kind = Value::Kind::kList};
        for (uint64_t i = 0; i <= random_.Below(3); ++i)
          list.members.emplace_back("", Value{.text = Text()});
        metadata.members.emplace_back("list", std::move(list));
      }
      fields.emplace_back("metadata", std::move(metadata));
    }
    return fields;
  }

  std::vector<Line> Print() {
    lines_.clear();
    if (flow_file_) {
      PrintFlow(root_, 0, "", "");
    } else {
      if (Chance(2)) Put(0, Comment(0));
      PrintBlock(root_, 0, 0);
    }
    return lines_;
  }

  // YAML in braces; in JSON if `json`.
  std::string Flow(const Value& value, bool json) {
    if (value.kind == Value::Kind::kScalar) return Scalar(value.text, json);
    std::vector<std::string> parts;
    for (const auto& [name, member] : value.members) {
      parts.push_back(name.empty()
                          ? Flow(member, json)
                          : fmt::format("{}: {}", json ? Quoted(name) : name, Flow(member, json)));
    }
    return value.kind == Value::Kind::kList ? fmt::format("[{}]", fmt::join(parts, ", "))
                                            : fmt::format("{{{}}}", fmt::join(parts, ", "));
  }

  // Plain numbers and truths stay, in JSON as well; all other texts are quoted if necessary.
  std::string Scalar(const std::string& text, bool json) {
    const bool number =
        text == "true" || text == "false" ||
        (text.find_first_not_of("0123456789") == std::string::npos && text[0] != '0');
    if (number) return text;
    const bool simple = std::all_of(text.begin(), text.end(),
                                    [](char c) { return base::IsLetterOrDigit(c) || c == '_'; });
    if (simple && text != "yes" && text != "010" && !json && !Chance(4)) return text;
    return Quoted(text);
  }

 private:
  Value Limit() {
    Value limit{.kind = Value::Kind::kMapping};
    limit.members.emplace_back("unit", Value{.text = Chance(2) ? "minute" : "day"});
    limit.members.emplace_back("requests_per_unit",
                               Value{.text = fmt::to_string(1 + random_.Below(3))});
    if (Chance(3)) limit.members.emplace_back("name", Value{.text = Text()});
    return limit;
  }

  void AddChildren(RuleModel& parent, int depth) {
    const uint64_t count = random_.Below(depth == 0 ? 5 : 3);
    for (uint64_t i = 0; i < count; ++i) {
      auto child = std::make_unique<RuleModel>();
      child->id = ++last_id_;
      child->key = fmt::format("k{}", random_.Below(2));
      child->value = fmt::format("k{}{}", child->id, Text());
      if (Chance(3)) {
        child->key = fmt::format("k_{}", child->id);
        child->value.clear();
      }
      child->fields = Fields();
      if (depth < 2 && Chance(2)) AddChildren(*child, depth + 1);
      parent.children.push_back(std::move(child));
    }
  }

  void Put(int owner, std::string text) {
    lines_.push_back({.owner = owner, .text = std::move(text)});
  }

  std::string Comment(size_t column) {
    return fmt::format("{}# c{}\t{}", std::string(column, ' '), ++comments_, Text());
  }
  std::string MaybeComment() {
    return Chance(4) ? fmt::format("  # c{}", ++comments_) : std::string();
  }

  // The fields of a mapping in `column`; the first line follows `lead`.
  void PrintBlock(const RuleModel& rule, size_t column, size_t lead_size) {
    std::vector<std::string> order;
    if (!rule.key.empty()) order.push_back("key");
    if (!rule.value.empty()) order.push_back("value");
    for (const auto& [name, value] : rule.fields) order.push_back(name);
    if (!rule.children.empty()) {
      order.push_back("descriptors");
    }
    if (Chance(5)) std::swap(order[0], order[random_.Below(order.size())]);
    const size_t first = lines_.size();
    for (const std::string& name : order) {
      const std::string start = std::string(column, ' ') + name + ":";
      if (name == "key" || name == "value") {
        Put(rule.id,
            start + " " + Scalar(name == "key" ? rule.key : rule.value, false) + MaybeComment());
      } else if (name == "descriptors") {
        Put(rule.id, start + MaybeComment());
        PrintChildren(rule, column + dashes_);
      } else {
        const auto field = std::find_if(rule.fields.begin(), rule.fields.end(),
                                        [&](const auto& f) { return f.first == name; });
        PrintField(rule.id, name, field->second, column);
      }
      if (Chance(8)) Put(rule.id, "");
      if (Chance(10) && name != order.back()) Put(rule.id, Comment(column));
    }
    if (lead_size > 0) {
      lines_[first].text = std::string(column - lead_size, ' ') + "-" +
                           std::string(lead_size - 1, ' ') + lines_[first].text.substr(column);
    }
  }

  void PrintChildren(const RuleModel& rule, size_t column) {
    for (const auto& child : rule.children) {
      if (Chance(5)) Put(child->id, "");
      if (Chance(3)) Put(child->id, Comment(column));
      if (Chance(4) && child->children.empty()) {
        Put(child->id, std::string(column, ' ') + "-" + std::string(item_ - 1, ' ') +
                           Flow(AsValue(*child), Chance(3)) + MaybeComment());
      } else {
        PrintBlock(*child, column + item_, item_);
        if (Chance(6)) Put(child->id, Comment(column + 1));
      }
    }
  }

  void PrintField(int owner, const std::string& name, const Value& value, size_t column) {
    const std::string start = std::string(column, ' ') + name + ":";
    if (value.kind == Value::Kind::kScalar || Chance(3)) {
      Put(owner, start + " " + Flow(value, Chance(4)) + MaybeComment());
      return;
    }
    Put(owner, start + MaybeComment());
    if (value.kind == Value::Kind::kMapping) {
      for (const auto& [member, inner] : value.members)
        PrintField(owner, member, inner, column + keys_);
      return;
    }
    for (const auto& [none, item] : value.members) {
      if (Chance(5)) Put(owner, Comment(column + dashes_));
      Put(owner, std::string(column + dashes_, ' ') + "- " + Flow(item, false) + MaybeComment());
    }
  }

  static Value AsValue(const RuleModel& rule) {
    Value value{.kind = Value::Kind::kMapping};
    value.members.emplace_back("key", Value{.text = rule.key});
    if (!rule.value.empty()) value.members.emplace_back("value", Value{.text = rule.value});
    for (const auto& field : rule.fields) value.members.push_back(field);
    return value;
  }

  // A file in braces, with a line for each field.
  void PrintFlow(const RuleModel& rule, size_t column, const std::string& lead,
                 const std::string& tail) {
    const auto comment = [&] { return json_ ? std::string() : MaybeComment(); };
    Put(rule.id, std::string(column, ' ') + lead + "{" + comment());
    Value value = AsValue(rule);
    if (rule.key.empty()) value.members = {{"domain", Value{.text = "edge"}}};
    for (size_t i = 0; i < value.members.size(); ++i) {
      const auto& [name, member] = value.members[i];
      if (!json_ && Chance(8)) Put(rule.id, Comment(column + 2));
      const bool more = i + 1 < value.members.size() || !rule.children.empty() || trailing_comma_;
      Put(rule.id,
          fmt::format("{}{}: {}{}{}", std::string(column + 2, ' '), json_ ? Quoted(name) : name,
                      Flow(member, json_), more ? "," : "", comment()));
    }
    if (!rule.children.empty()) {
      Put(rule.id, fmt::format("{}{}: [{}", std::string(column + 2, ' '),
                               json_ ? "\"descriptors\"" : "descriptors", comment()));
      for (const auto& child : rule.children) {
        if (!json_ && Chance(4)) Put(child->id, Comment(column + 4));
        PrintFlow(*child, column + 4, "",
                  child != rule.children.back() || trailing_comma_ ? "," : "");
      }
      Put(rule.id, std::string(column + 2, ' ') + "]" + (trailing_comma_ ? "," : ""));
    }
    Put(rule.id, std::string(column, ' ') + "}" + tail);
  }

  base::Random random_;
  RuleModel root_;
  std::vector<Line> lines_;
  int last_id_ = 0;
  int comments_ = 0;
  bool json_ = false;
  bool flow_file_ = false;
  bool trailing_comma_ = false;
  size_t keys_ = 2;
  size_t dashes_ = 2;
  size_t item_ = 2;
};

std::vector<std::string> LinesOf(std::string_view text, std::string_view line_break) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find(line_break), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + line_break.size(), text.size()));
  }
  return lines;
}

// In braces, a comma may come or go.
std::string WithoutComma(std::string text, bool flow_file) {
  const size_t comment = text.find("  # c");
  std::string tail = comment == std::string::npos ? "" : text.substr(comment);
  text.resize(std::min(comment, text.size()));
  if (flow_file && text.ends_with(',')) text.pop_back();
  return text + tail;
}

// The first line of another rule that is missing, or is not in order; empty if there is none.
std::string FirstLost(const std::vector<Line>& before, const std::vector<std::string>& after,
                      const std::vector<int>& edited, int parent, bool flow_file) {
  size_t at = 0;
  for (const Line& line : before) {
    if (std::find(edited.begin(), edited.end(), line.owner) != edited.end()) continue;
    if (line.text.empty()) continue;
    const std::string text = WithoutComma(line.text, flow_file);
    // The list of the edited rule may become empty, or begin.
    const bool of_list = line.text.find("descriptors") != std::string::npos ||
                         line.text.find(']') != std::string::npos;
    if (line.owner == parent && of_list) continue;
    while (at < after.size() && WithoutComma(after[at], flow_file) != text) ++at;
    if (at == after.size()) return line.text;
    ++at;
  }
  return {};
}

void CollectIds(const RuleModel& rule, std::vector<int>& ids) {
  ids.push_back(rule.id);
  for (const auto& child : rule.children) CollectIds(*child, ids);
}

struct Step {
  std::vector<RuleEntry> path;
  RuleModel* parent;
  size_t index;  // the number of children: a rule that does not exist
};

// A random rule, or place for a new one.
Step RandomStep(World& world) {
  Step step{.path = {}, .parent = &world.root(), .index = 0};
  while (true) {
    step.index = world.random().Below(step.parent->children.size() + 1);
    if (step.index == step.parent->children.size()) {
      const std::string text = world.Text();
      step.path.push_back({.key = "k_new", .value = text});
      return step;
    }
    const RuleModel& rule = *step.parent->children[step.index];
    step.path.push_back({.key = rule.key});
    if (!rule.value.empty()) step.path.back().value = rule.value;
    if (rule.children.empty() || world.Chance(2)) return step;
    step.parent = step.parent->children[step.index].get();
  }
}

void RunSeed(uint64_t seed) {
  World world(seed);
  const std::vector<Line> lines = world.Print();
  const std::string line_break = lines.size() > 1 && world.Chance(3) ? "\r\n" : "\n";
  std::string text;
  for (const Line& line : lines) text += line.text + line_break;
  if (world.Chance(4)) text.resize(text.size() - line_break.size());
  SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
  const Document::Parsed parsed = Document::Parse(text);
  ASSERT_FALSE(parsed.error.has_value()) << parsed.error->message;
  ASSERT_EQ(Canonical(*parsed.document->root()), Canonical(world.root()));

  const Step step = RandomStep(world);
  RuleModel& parent = *step.parent;
  const bool exists = step.index < parent.children.size();
  std::vector<int> edited;
  absl::StatusOr<std::string> result;
  if (exists && world.Chance(3)) {
    RuleModel& rule = *parent.children[step.index];
    edited = {rule.id};
    result = RemoveRule(text, step.path);
    if (rule.children.empty()) {
      parent.children.erase(parent.children.begin() + static_cast<ptrdiff_t>(step.index));
    } else if (rule.fields.empty()) {
      ASSERT_EQ(result.status().code(), absl::StatusCode::kNotFound) << result.status();
      return;
    } else {
      rule.fields.clear();
    }
  } else {
    const auto fields = world.Fields();
    if (!exists) {
      parent.children.push_back(std::make_unique<RuleModel>());
      parent.children.back()->id = -1;
      parent.children.back()->key = step.path.back().key;
      parent.children.back()->value = *step.path.back().value;
    }
    RuleModel& rule = *parent.children[step.index];
    rule.fields = fields;
    Value wanted{.kind = Value::Kind::kMapping, .members = fields};
    edited = {rule.id};
    if (world.Chance(6)) {
      CollectIds(rule, edited);
      rule.children.clear();
      wanted.members.emplace_back("descriptors", Value{.kind = Value::Kind::kList});
    }
    const std::string fragment = world.Flow(wanted, world.Chance(2));
    SCOPED_TRACE(fragment);
    result = PutRule(text, step.path, fragment);
    ASSERT_TRUE(result.ok()) << result.status();
    ASSERT_EQ(PutRule(*result, step.path, fragment).value_or("refused"), *result);
    // The rule's own text says the same again.
    const auto shown = RuleText(*result, step.path);
    ASSERT_TRUE(shown.ok()) << shown.status();
    ASSERT_EQ(PutRule(*result, step.path, *shown).value_or("refused"), *result) << *shown;
  }
  ASSERT_TRUE(result.ok()) << result.status();
  SCOPED_TRACE("result:\n" + *result);
  const Document::Parsed after = Document::Parse(*result);
  ASSERT_FALSE(after.error.has_value());
  ASSERT_EQ(Canonical(*after.document->root()), Canonical(world.root()));
  ASSERT_EQ(FirstLost(lines, LinesOf(*result, line_break), edited, parent.id, world.flow_file()),
            "");
  ASSERT_TRUE(result->ends_with(line_break) || !text.ends_with(line_break));
}

TEST(RuleEditProperties, OnlyTheEditedRuleChanges) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    RunSeed(seed);
    if (HasFatalFailure()) return;
  }
}

}  // namespace rule_edit_properties_test
}  // namespace headgate::rule::edit

#include "headgate/rule/rule_tree.h"

#include <limits>
#include <map>

#include "headgate/base/check.h"

namespace headgate::rule {
namespace {

constexpr size_t kSlotsMin = 16;  // a power of two, as all sizes of the table

}  // namespace

RuleTree::RuleTree() : slots_(kSlotsMin), nodes_(kAlign) {}

bool RuleTree::Find(std::string_view domain, std::span<const Entry> entries, Match& match) const {
  match.rule = nullptr;
  match.step_count = 0;
  NodeId level = FindDomain(domain);
  if (level == kNoNode) return false;
  if (entries.size() > kEntriesMax) return true;

  for (const Entry& entry : entries) {
    const JoinedText joined(entry.key, entry.value);
    NodeId found = Child(level, joined);
    const uint32_t extra = At(level).extra;
    if (found == kNoNode && extra != kNone && extras_[extra].patterns) {
      const Pattern* pattern = extras_[extra].patterns->FirstMatch(joined);
      if (pattern != nullptr) found = pattern->node;
    }
    if (found == kNoNode) found = Child(level, JoinedText(entry.key));
    if (found == kNoNode) return true;

    const Node& node = At(found);
    MatchStep& step = match.steps[match.step_count++];
    step.value_in_metric = (node.flags & kValueInMetric) != 0;
    step.shared_pattern = nullptr;
    if (node.extra != kNone && extras_[node.extra].shared) step.shared_pattern = &*extras_[node.extra].shared;
    if (match.step_count == entries.size()) {
      if (node.rule != kNone) match.rule = &rules_[node.rule];
      return true;
    }
    if ((node.flags & kHasChildren) == 0) return true;
    level = found;
  }
  return true;
}

bool RuleTree::AllOrNothing(std::string_view domain) const {
  const NodeId node = FindDomain(domain);
  return node != kNoNode && (At(node).flags & kAllOrNothing) != 0;
}

NodeId RuleTree::Child(NodeId level, const JoinedText& text) const {
  const uint64_t hash = Hash(level, text);
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const Slot slot = slots_[i];
    if (slot.node == kNoNode) return kNoNode;
    if (slot.hash_high != hash >> 32) continue;
    if (At(slot.node).parent == level && text == this->text(slot.node)) return slot.node;
  }
}

const WildcardIndex* RuleTree::Patterns(NodeId level) const {
  const uint32_t extra = At(level).extra;
  return extra != kNone && extras_[extra].patterns ? &*extras_[extra].patterns : nullptr;
}

std::string_view RuleTree::text(NodeId node) const {
  const Node& found = At(node);
  return {static_cast<const char*>(static_cast<const void*>(&found + 1)), found.text_size};
}

const Rule* RuleTree::rule(NodeId node) const {
  const uint32_t index = At(node).rule;
  return index == kNone ? nullptr : &rules_[index];
}

std::vector<std::string_view> RuleTree::ChildTexts(NodeId level, size_t count) const {
  std::vector<std::string_view> texts;
  NodeId node = 1;
  for (uint32_t i = 0; i < node_count_ && texts.size() < count; ++i, node = Next(node)) {
    if (At(node).parent == level) texts.push_back(text(node));
  }
  return texts;
}

NodeId RuleTree::Next(NodeId node) const {
  const size_t size = sizeof(Node) + At(node).text_size;
  return node + static_cast<NodeId>((size + kAlign - 1) / kAlign);
}

void RuleTree::Insert(uint64_t hash, NodeId node) {
  const size_t mask = slots_.size() - 1;
  size_t i = hash & mask;
  while (slots_[i].node != kNoNode) i = (i + 1) & mask;
  slots_[i] = {.hash_high = static_cast<uint32_t>(hash >> 32), .node = node};
}

void RuleTree::Grow() {
  slots_.assign(slots_.size() * 2, Slot{});
  NodeId node = 1;
  for (uint32_t i = 0; i < node_count_; ++i, node = Next(node)) {
    Insert(Hash(At(node).parent, JoinedText(text(node))), node);
  }
}

RuleTreeBuilder::RuleTreeBuilder() : tree_(new RuleTree) {}

NodeId RuleTreeBuilder::Domain(std::string_view domain) {
  const NodeId found = tree_->FindDomain(domain);
  return found != kNoNode ? found : Append(kNoNode, JoinedText(domain));
}

void RuleTreeBuilder::SetAllOrNothing(NodeId domain) { tree_->At(domain).flags |= RuleTree::kAllOrNothing; }

RuleTreeBuilder::Addition RuleTreeBuilder::AddChild(NodeId parent, std::string_view key, std::string_view value) {
  HEADGATE_CHECK(parent != kNoNode);
  const JoinedText text = value.empty() ? JoinedText(key) : JoinedText(key, value);
  if (const NodeId found = tree_->Child(parent, text); found != kNoNode) return {.node = found, .added = false};
  const NodeId node = Append(parent, text);
  tree_->At(parent).flags |= RuleTree::kHasChildren;
  if (IsPattern(tree_->text(node))) pattern_nodes_.push_back(node);
  return {.node = node, .added = true};
}

void RuleTreeBuilder::SetShareThreshold(NodeId node) { ExtraOf(node).shared = std::string(tree_->text(node)); }

void RuleTreeBuilder::SetValueInMetric(NodeId node) { tree_->At(node).flags |= RuleTree::kValueInMetric; }

void RuleTreeBuilder::SetRule(NodeId node, Rule rule) {
  HEADGATE_CHECK(tree_->At(node).rule == RuleTree::kNone);
  rule.index = static_cast<uint32_t>(tree_->rules_.size());
  tree_->At(node).rule = rule.index;
  tree_->rules_.push_back(std::move(rule));
}

std::shared_ptr<const RuleTree> RuleTreeBuilder::Build() && {
  std::map<NodeId, std::vector<WildcardIndex::Source>> patterns;
  for (const NodeId node : pattern_nodes_) {
    patterns[tree_->At(node).parent].push_back({.text = tree_->text(node), .node = node});
  }
  for (const auto& [parent, sources] : patterns) ExtraOf(parent).patterns.emplace(sources);
  tree_->nodes_.shrink_to_fit();
  tree_->rules_.shrink_to_fit();
  return std::move(tree_);
}

NodeId RuleTreeBuilder::Append(NodeId parent, const JoinedText& text) {
  RuleTree& tree = *tree_;
  const size_t begin = tree.nodes_.size();
  const size_t end =
      (begin + sizeof(RuleTree::Node) + text.size() + RuleTree::kAlign - 1) / RuleTree::kAlign * RuleTree::kAlign;
  HEADGATE_CHECK(end / RuleTree::kAlign <= std::numeric_limits<NodeId>::max());
  HEADGATE_CHECK(text.size() <= std::numeric_limits<uint32_t>::max());
  tree.nodes_.resize(end);
  const auto node = static_cast<NodeId>(begin / RuleTree::kAlign);
  new (tree.nodes_.data() + begin) RuleTree::Node{.parent = parent,
                                                  .rule = RuleTree::kNone,
                                                  .extra = RuleTree::kNone,
                                                  .flags = 0,
                                                  .text_size = static_cast<uint32_t>(text.size())};
  void* const behind = tree.nodes_.data() + begin + sizeof(RuleTree::Node);
  text.Copy(0, static_cast<char*>(behind), text.size());
  ++tree.node_count_;
  if (size_t{tree.node_count_} * 2 > tree.slots_.size()) {
    tree.Grow();
  } else {
    tree.Insert(Hash(parent, text), node);
  }
  return node;
}

RuleTree::Extra& RuleTreeBuilder::ExtraOf(NodeId node) {
  uint32_t& extra = tree_->At(node).extra;
  if (extra == RuleTree::kNone) {
    extra = static_cast<uint32_t>(tree_->extras_.size());
    tree_->extras_.emplace_back();
  }
  return tree_->extras_[extra];
}

}  // namespace headgate::rule

#include "headgate/rule/rule_tree.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <new>
#include <numeric>
#include <optional>

#include "headgate/base/check.h"
#include "headgate/rule/rule_names.h"

namespace headgate::rule {
namespace {

constexpr size_t kIndexMin = 16;
constexpr size_t kHugePage = size_t{2} << 20;

// Windows of the calendar have no period of their own.
base::Duration LengthOf(const algorithm::LimitSpec& spec) {
  const std::optional<Unit> unit = UnitOf(spec);
  return unit ? PeriodOf(*unit) : spec.period;
}

// A limit's index in the list is the number of its bucket. If another limit is added to a rule, or
// comes with its roll-out, the limit with the longer period keeps its bucket, and its use stays
// counted.
void LongestPeriodFirst(std::vector<RuleLimit>& limits) {
  std::stable_sort(limits.begin(), limits.end(), [](const RuleLimit& a, const RuleLimit& b) {
    return LengthOf(a.limit.spec()) > LengthOf(b.limit.spec());
  });
}

}  // namespace

RuleTree::RuleTree(size_t node_count)
    : mask_(std::bit_ceil(std::max(kIndexMin, 2 * node_count)) - 1) {
  const size_t size = (mask_ + 1) * sizeof(TreeNode);
  const bool huge = size >= kHugePage;
  void* const memory = std::aligned_alloc(huge ? kHugePage : alignof(TreeNode), size);
  if (memory == nullptr) throw std::bad_alloc();
  // Without huge pages, a step in a large table misses the TLB, which doubles its cost. This is
  // only advice, so a failure is ignored.
  if (huge) (void)madvise(memory, size, MADV_HUGEPAGE);
  table_.reset(new (memory) TreeNode[mask_ + 1]);
}

void RuleTree::FreeTable::operator()(TreeNode* table) const { std::free(table); }

bool RuleTree::Find(std::string_view domain, std::span<const Entry> entries, Match& match) const {
  match.rule = nullptr;
  match.step_count = 0;
  match.all_or_nothing = false;
  const TreeNode* level = FindDomain(domain);
  if (level == nullptr) return false;
  match.all_or_nothing = (level->flags_ & TreeNode::kAllOrNothing) != 0;
  if (entries.size() > kEntriesMax) return true;

  for (const Entry& entry : entries) {
    const JoinedText joined(entry.key, entry.value);
    const TreeNode* found = Child(*level, joined);
    if (found == nullptr) found = ChildByPattern(*level, joined);
    if (found == nullptr) found = Child(*level, JoinedText(entry.key));
    if (found == nullptr) return true;

    MatchStep& step = match.steps[match.step_count++];
    step.value_in_metric = (found->flags_ & TreeNode::kValueInMetric) != 0;
    step.shared_pattern = nullptr;
    if (found->extra_ != TreeNode::kNone) {
      const Extra& extra = extras_[found->extra_];
      if (extra.shared) step.shared_pattern = &*extra.shared;
    }
    if (match.step_count == entries.size()) {
      match.rule = rule(*found);
      return true;
    }
    if (!found->has_children()) return true;
    level = found;
  }
  return true;
}

const TreeNode* RuleTree::Search(NodeId parent, const JoinedText& text) const {
  const uint64_t hash = Hash(parent, text);
  for (size_t i = hash & mask_;; i = (i + 1) & mask_) {
    const TreeNode& node = table_[i];
    if (node.id_ == kNoNode) return nullptr;
    if (node.hash_high_ == hash >> 32 && node.parent_ == parent && text == this->text(node))
      return &node;
  }
}

const TreeNode* RuleTree::ChildByPattern(const TreeNode& level, const JoinedText& text) const {
  const WildcardIndex* const patterns = Patterns(level);
  if (patterns == nullptr) return nullptr;
  const Pattern* const pattern = patterns->FirstMatch(text);
  return pattern == nullptr ? nullptr : &table_[pattern->target];
}

const WildcardIndex* RuleTree::Patterns(const TreeNode& level) const {
  if (level.extra_ == TreeNode::kNone) return nullptr;
  const Extra& extra = extras_[level.extra_];
  return extra.patterns ? &*extra.patterns : nullptr;
}

std::string_view RuleTree::text(const TreeNode& node) const {
  if (node.text_size_ <= TreeNode::kInline) return {node.text_.data(), node.text_size_};
  size_t begin;
  std::memcpy(&begin, node.text_.data(), sizeof begin);
  return std::string_view(long_texts_).substr(begin, node.text_size_);
}

const Rule* RuleTree::rule(const TreeNode& node) const {
  return node.rule_ == TreeNode::kNone ? nullptr : &rules_[node.rule_];
}

std::vector<std::string_view> RuleTree::ChildTexts(const TreeNode& level, size_t count) const {
  std::map<NodeId, std::string_view> children;
  for (size_t i = 0; i <= mask_; ++i) {
    const TreeNode& node = table_[i];
    if (node.id_ == kNoNode || node.parent_ != level.id_) continue;
    children.emplace(node.id_, text(node));
    if (children.size() > count) children.erase(std::prev(children.end()));
  }
  std::vector<std::string_view> texts;
  for (const auto& [id, text] : children) texts.push_back(text);
  return texts;
}

TreeNode& RuleTree::Insert(NodeId parent, NodeId id, const JoinedText& text) {
  const uint64_t hash = Hash(parent, text);
  size_t i = hash & mask_;
  while (table_[i].id_ != kNoNode) i = (i + 1) & mask_;
  TreeNode& node = table_[i];
  node.hash_high_ = static_cast<uint32_t>(hash >> 32);
  node.parent_ = parent;
  node.id_ = id;
  node.text_size_ = static_cast<uint16_t>(text.size());
  if (text.size() <= TreeNode::kInline) {
    text.Copy(0, node.text_.data(), text.size());
    return node;
  }
  const size_t begin = long_texts_.size();
  std::memcpy(node.text_.data(), &begin, sizeof begin);
  long_texts_.resize(begin + text.size());
  text.Copy(0, long_texts_.data() + begin, text.size());
  return node;
}

RuleTreeBuilder::RuleTreeBuilder() : nodes_(1), index_(kIndexMin, kNoNode) {}

NodeId RuleTreeBuilder::Domain(std::string_view domain) {
  const NodeId found = Search(kNoNode, JoinedText(domain));
  return found != kNoNode ? found : Append(kNoNode, JoinedText(domain));
}

void RuleTreeBuilder::SetAllOrNothing(NodeId domain) {
  nodes_[domain].flags |= TreeNode::kAllOrNothing;
}

RuleTreeBuilder::Addition RuleTreeBuilder::AddChild(NodeId parent, std::string_view key,
                                                    std::string_view value) {
  HEADGATE_CHECK(parent != kNoNode);
  const JoinedText text = value.empty() ? JoinedText(key) : JoinedText(key, value);
  if (const NodeId found = Search(parent, text); found != kNoNode)
    return {.node = found, .added = false};
  nodes_[parent].flags |= TreeNode::kHasChildren;
  nodes_[parent].child_sizes |= TreeNode::SizeBit(text.size());
  return {.node = Append(parent, text), .added = true};
}

void RuleTreeBuilder::SetShareThreshold(NodeId node) { nodes_[node].shared = true; }

void RuleTreeBuilder::SetValueInMetric(NodeId node) {
  nodes_[node].flags |= TreeNode::kValueInMetric;
}

void RuleTreeBuilder::SetRule(NodeId node, Rule rule) {
  HEADGATE_CHECK(!has_rule(node));
  LongestPeriodFirst(rule.limits);
  if (rule.rollout != nullptr) {
    auto rollout = std::make_shared<Rollout>(*rule.rollout);
    LongestPeriodFirst(rollout->limits);
    rule.rollout = std::move(rollout);
  }
  rule.index = static_cast<uint32_t>(rules_.size());
  nodes_[node].rule = rule.index;
  rules_.push_back(std::move(rule));
}

std::shared_ptr<const RuleTree> RuleTreeBuilder::Build() && {
  std::unique_ptr<RuleTree> tree(new RuleTree(nodes_.size() - 1));
  const auto extra_of = [&](TreeNode& node) -> RuleTree::Extra& {
    if (node.extra_ == TreeNode::kNone) {
      node.extra_ = static_cast<uint32_t>(tree->extras_.size());
      tree->extras_.emplace_back();
    }
    return tree->extras_[node.extra_];
  };
  const auto place_of = [&](const TreeNode& node) {
    return static_cast<uint32_t>(&node - tree->table_.get());
  };

  std::map<NodeId, std::vector<WildcardIndex::Source>> patterns;  // by parent, in file order
  std::map<NodeId, uint32_t> places;  // slots of the parents of patterns
  for (NodeId id = 1; id < nodes_.size(); ++id) {
    if (nodes_[id].parent != kNoNode && IsPattern(text(id))) places[nodes_[id].parent] = 0;
  }
  std::vector<NodeId> domain_of(nodes_.size());
  std::iota(domain_of.begin(), domain_of.end(), NodeId{0});
  for (NodeId id = 1; id < nodes_.size(); ++id) {
    const Node& made = nodes_[id];
    TreeNode& node = tree->Insert(made.parent, id, JoinedText(text(id)));
    node.rule_ = made.rule;
    node.flags_ = made.flags;
    node.child_sizes_ = made.child_sizes;
    if (made.parent != kNoNode) domain_of[id] = domain_of[made.parent];
    if (made.rule != TreeNode::kNone)
      rules_[made.rule].all_or_nothing =
          (nodes_[domain_of[id]].flags & TreeNode::kAllOrNothing) != 0;
    if (made.shared) extra_of(node).shared = std::string(text(id));
    if (const auto parent = places.find(id); parent != places.end())
      parent->second = place_of(node);
    if (made.parent != kNoNode && IsPattern(text(id))) {
      patterns[made.parent].push_back({.text = text(id), .target = place_of(node)});
    }
  }
  for (const auto& [parent, sources] : patterns)
    extra_of(tree->table_[places[parent]]).patterns.emplace(sources);
  tree->rules_ = std::move(rules_);
  tree->rules_.shrink_to_fit();
  return tree;
}

NodeId RuleTreeBuilder::Search(NodeId parent, const JoinedText& text) const {
  const size_t mask = index_.size() - 1;
  for (size_t i = Hash(parent, text) & mask;; i = (i + 1) & mask) {
    const NodeId node = index_[i];
    if (node == kNoNode || (nodes_[node].parent == parent && text == this->text(node))) return node;
  }
}

NodeId RuleTreeBuilder::Append(NodeId parent, const JoinedText& text) {
  HEADGATE_CHECK(text.size() <= kNodeTextMax);
  HEADGATE_CHECK(nodes_.size() < TreeNode::kNone);
  const auto node = static_cast<NodeId>(nodes_.size());
  const size_t begin = texts_.size();
  texts_.resize(begin + text.size());
  text.Copy(0, texts_.data() + begin, text.size());
  nodes_.push_back(
      {.parent = parent, .text_size = static_cast<uint16_t>(text.size()), .text_begin = begin});
  if (nodes_.size() * 2 <= index_.size()) {
    Index(node);
  } else {
    index_.assign(index_.size() * 2, kNoNode);
    for (NodeId id = 1; id < nodes_.size(); ++id) Index(id);
  }
  return node;
}

void RuleTreeBuilder::Index(NodeId node) {
  const size_t mask = index_.size() - 1;
  size_t i = Hash(nodes_[node].parent, JoinedText(text(node))) & mask;
  while (index_[i] != kNoNode) i = (i + 1) & mask;
  index_[i] = node;
}

}  // namespace headgate::rule

// The tree of all domains, laid out for matching: one hash table for every exact or key-only child
// of every node, plus the patterns of the nodes that have them. The time of a match does not depend
// on the number of rules: each step down the tree reads one cache line.
//
//   TreeNode   64 bytes: {hash, parent, number, rule, …} and a text of up to 36 bytes;
//              longer texts are stored separately
//   table_     open addressing over TreeNodes, at most half full
//
// A child is found by its parent and its composite text, "key_value" or "key", as in the file
// format. A domain is a child of no node.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/rule/joined_text.h"
#include "headgate/rule/rule_set.h"
#include "headgate/rule/wildcard_index.h"

namespace headgate::rule {

// The number of a node of one tree, in order of creation, from 1. A domain is a node too.
using NodeId = uint32_t;
inline constexpr NodeId kNoNode = 0;

// The longest text of a node, "key_value".
inline constexpr size_t kNodeTextMax = 65'535;

class alignas(64) TreeNode {
 public:
  NodeId id() const { return id_; }
  bool has_children() const { return (flags_ & kHasChildren) != 0; }

 private:
  friend class RuleTree;
  friend class RuleTreeBuilder;

  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr uint16_t kHasChildren = 1;
  static constexpr uint16_t kValueInMetric = 2;
  static constexpr uint16_t kAllOrNothing = 4;  // domains only
  static constexpr size_t kInline = 36;

  // A set of sizes of texts, modulo 32. Most texts that are not among the children differ from them
  // in size.
  static constexpr uint32_t SizeBit(size_t size) { return uint32_t{1} << size % 32; }

  uint32_t hash_high_ = 0;
  NodeId parent_ = kNoNode;
  NodeId id_ = kNoNode;     // kNoNode: an empty slot of the table
  uint32_t rule_ = kNone;   // index into rules_
  uint32_t extra_ = kNone;  // index into extras_
  uint16_t flags_ = 0;
  uint16_t text_size_ = 0;
  uint32_t child_sizes_ = 0;          // SizeBit of each child
  std::array<char, kInline> text_{};  // for a longer text: its offset in long_texts_
};
static_assert(sizeof(TreeNode) == 64);

class RuleTree final : public RuleSet {
 public:
  bool Find(std::string_view domain, std::span<const Entry> entries, Match& match) const override;
  std::span<const Rule> rules() const override { return rules_; }

  // ---- The steps of Find, for Explain. Each returns null if there is no such node.
  const TreeNode* FindDomain(std::string_view domain) const {
    return Search(kNoNode, JoinedText(domain));
  }
  // The child with exactly this text.
  const TreeNode* Child(const TreeNode& level, const JoinedText& text) const {
    const bool may_exist = (level.child_sizes_ & TreeNode::SizeBit(text.size())) != 0;
    return may_exist ? Search(level.id_, text) : nullptr;
  }
  // The first pattern among the children that matches.
  const TreeNode* ChildByPattern(const TreeNode& level, const JoinedText& text) const;
  const WildcardIndex* Patterns(const TreeNode& level) const;
  std::string_view text(const TreeNode& node) const;
  const Rule* rule(const TreeNode& node) const;
  // Up to `count` texts of children, in file order. Scans all nodes.
  std::vector<std::string_view> ChildTexts(const TreeNode& level, size_t count) const;

 private:
  friend class RuleTreeBuilder;

  // Members that few nodes need.
  struct Extra {
    std::optional<WildcardIndex> patterns;  // of the children; refers to their slots in table_
    std::optional<std::string> shared;      // this node's pattern, if it has share_threshold
  };
  struct FreeTable {
    void operator()(TreeNode* table) const;
  };

  explicit RuleTree(size_t node_count);
  const TreeNode* Search(NodeId parent, const JoinedText& text) const;
  TreeNode& Insert(NodeId parent, NodeId id, const JoinedText& text);

  size_t mask_;
  std::unique_ptr<TreeNode[], FreeTable> table_;
  std::string long_texts_;
  std::deque<Extra> extras_;
  std::vector<Rule> rules_;
};

// Builds a RuleTree. Parents must be added before their children.
class RuleTreeBuilder {
 public:
  RuleTreeBuilder();

  // Returns the domain's node, and makes it if necessary.
  NodeId Domain(std::string_view domain);
  void SetAllOrNothing(NodeId domain);

  // Adds a child to a node. If a child with the same composite text exists, `added` is false and
  // `node` is the existing one. An empty value means no value. The composite text may have at most
  // kNodeTextMax bytes.
  struct Addition {
    NodeId node;
    bool added;
  };
  Addition AddChild(NodeId parent, std::string_view key, std::string_view value);

  // The node's pattern names one bucket for all values that match it.
  void SetShareThreshold(NodeId node);
  void SetValueInMetric(NodeId node);

  // Sets the rule of a node, and the rule's index. At most one rule per node.
  void SetRule(NodeId node, Rule rule);
  bool has_rule(NodeId node) const { return nodes_[node].rule != TreeNode::kNone; }

  // Builds the tree. Call it once, last.
  std::shared_ptr<const RuleTree> Build() &&;

 private:
  struct Node {
    NodeId parent = kNoNode;
    uint32_t rule = TreeNode::kNone;
    uint16_t flags = 0;
    uint16_t text_size = 0;
    uint32_t child_sizes = 0;
    bool shared = false;
    size_t text_begin = 0;  // offset in texts_
  };

  std::string_view text(NodeId node) const {
    return std::string_view(texts_).substr(nodes_[node].text_begin, nodes_[node].text_size);
  }
  NodeId Search(NodeId parent, const JoinedText& text) const;
  NodeId Append(NodeId parent, const JoinedText& text);
  void Index(NodeId node);

  std::vector<Node> nodes_;  // the first element stands for kNoNode
  std::string texts_;
  std::vector<NodeId> index_;  // open addressing; a power of two
  std::vector<Rule> rules_;
};

}  // namespace headgate::rule

// The tree of all domains, laid out for matching: one hash table for every exact and key-only child of every node, and
// beside it the patterns of those nodes that have some. How long a match takes does not depend on how many rules there
// are.
//
//   slots_   open addressing: {upper half of the hash, node}; 8 bytes, at most half of them used
//   nodes_   {parent, rule, …} and its text right behind it, so that a step reads two places in memory
//
// A child is found by its parent and its composite text, "key_value" or "key", as the file format has it; a domain is
// the child of no node.
#pragma once

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

// Names a node of one RuleTree; a domain is a node too.
using NodeId = uint32_t;
inline constexpr NodeId kNoNode = 0;

class RuleTree final : public RuleSet {
 public:
  bool Find(std::string_view domain, std::span<const Entry> entries, Match& match) const override;
  bool AllOrNothing(std::string_view domain) const override;
  std::span<const Rule> rules() const override { return rules_; }

  // ---- What Find does, step by step, for those who explain it.
  NodeId FindDomain(std::string_view domain) const { return Child(kNoNode, JoinedText(domain)); }
  // The child of exactly this text, or kNoNode.
  NodeId Child(NodeId level, const JoinedText& text) const;
  // Null where the level has no patterns.
  const WildcardIndex* Patterns(NodeId level) const;
  std::string_view text(NodeId node) const;
  const Rule* rule(NodeId node) const;
  bool has_children(NodeId node) const { return (At(node).flags & kHasChildren) != 0; }
  // Up to `count` texts of children, in file order. Reads all nodes.
  std::vector<std::string_view> ChildTexts(NodeId level, size_t count) const;

 private:
  friend class RuleTreeBuilder;

  static constexpr uint32_t kNone = ~uint32_t{0};
  static constexpr uint32_t kHasChildren = 1;
  static constexpr uint32_t kValueInMetric = 2;
  static constexpr uint32_t kAllOrNothing = 4;  // of a domain

  struct Node {
    NodeId parent;
    uint32_t rule;   // in rules_, or kNone
    uint32_t extra;  // in extras_, or kNone
    uint32_t flags;
    uint32_t text_size;
  };
  // What few nodes have.
  struct Extra {
    std::optional<WildcardIndex> patterns;  // of the children
    std::optional<std::string> shared;      // this node's pattern, where it has share_threshold
  };
  struct Slot {
    uint32_t hash_high;
    NodeId node;  // kNoNode: empty
  };

  // Nodes begin at multiples of this, which is what their ids count; the first place is kNoNode's.
  static constexpr size_t kAlign = 8;

  RuleTree();
  const Node& At(NodeId node) const {
    return *static_cast<const Node*>(static_cast<const void*>(nodes_.data() + size_t{node} * kAlign));
  }
  Node& At(NodeId node) { return const_cast<Node&>(std::as_const(*this).At(node)); }
  NodeId Next(NodeId node) const;
  void Insert(uint64_t hash, NodeId node);
  void Grow();

  std::vector<Slot> slots_;
  std::vector<std::byte> nodes_;
  std::deque<Extra> extras_;
  std::vector<Rule> rules_;
  uint32_t node_count_ = 0;
};

// Builds a RuleTree, parents first.
class RuleTreeBuilder {
 public:
  RuleTreeBuilder();

  // The domain's node, which is made where there is none yet.
  NodeId Domain(std::string_view domain);
  void SetAllOrNothing(NodeId domain);

  // A new child of a node. `added` is false, and `node` the older one, where there is one of the same composite text.
  // An empty value is none.
  struct Addition {
    NodeId node;
    bool added;
  };
  Addition AddChild(NodeId parent, std::string_view key, std::string_view value);

  // The node's pattern names the buckets of all values that match it.
  void SetShareThreshold(NodeId node);
  void SetValueInMetric(NodeId node);

  // At most one rule a node. Sets its index.
  void SetRule(NodeId node, Rule rule);

  // Once, last.
  std::shared_ptr<const RuleTree> Build() &&;

 private:
  NodeId Append(NodeId parent, const JoinedText& text);
  RuleTree::Extra& ExtraOf(NodeId node);

  std::unique_ptr<RuleTree> tree_;
  std::vector<NodeId> pattern_nodes_;  // in file order
};

}  // namespace headgate::rule

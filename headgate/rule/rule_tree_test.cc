#include "headgate/rule/rule_tree.h"

#include <map>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "headgate/rule/builder.h"
#include "headgate/testing/count_allocations.h"

namespace headgate::rule {
namespace rule_tree_test {

// The definition of matching (docs/reference/rules.md), implemented as simply as possible.
struct ModelNode {
  std::map<std::string, std::unique_ptr<ModelNode>> children;
  std::vector<std::string> patterns;  // in file order
  std::string name;                   // name of its rule; empty: none
  std::string shared;                 // its pattern, if it has share_threshold
};

bool MatchesPattern(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] != '*') {
    return !text.empty() && text[0] == pattern[0] &&
           MatchesPattern(pattern.substr(1), text.substr(1));
  }
  for (size_t i = 0; i <= text.size(); ++i) {
    if (MatchesPattern(pattern.substr(1), text.substr(i))) return true;
  }
  return false;
}

struct ModelMatch {
  std::string name;
  std::vector<std::string> shared;
};

ModelMatch ModelFind(const ModelNode& root,
                     const std::vector<std::pair<std::string, std::string>>& entries) {
  ModelMatch match;
  const ModelNode* level = &root;
  for (size_t i = 0; i < entries.size(); ++i) {
    const std::string joined = entries[i].first + "_" + entries[i].second;
    const ModelNode* next = nullptr;
    if (const auto exact = level->children.find(joined); exact != level->children.end())
      next = exact->second.get();
    for (size_t p = 0; next == nullptr && p < level->patterns.size(); ++p) {
      if (MatchesPattern(level->patterns[p], joined))
        next = level->children.at(level->patterns[p]).get();
    }
    if (next == nullptr) {
      if (const auto key = level->children.find(entries[i].first); key != level->children.end())
        next = key->second.get();
    }
    if (next != nullptr) match.shared.push_back(next->shared);
    if (next != nullptr && !next->name.empty() && i + 1 == entries.size()) match.name = next->name;
    if (next == nullptr || next->children.empty()) break;
    level = next;
  }
  return match;
}

// A random tree in both forms, with few different letters, so that many texts collide.
class RandomTree {
 public:
  explicit RandomTree(uint64_t seed) : random_(seed) {
    Fill(root_, builder_.Domain("d"), 0);
    tree_ = std::move(builder_).Build();
  }

  std::string Text(std::string_view letters, size_t size_min, size_t size_max) {
    std::string out;
    for (size_t size = size_min + random_() % (size_max - size_min + 1); out.size() < size;) {
      out += letters[random_() % letters.size()];
    }
    return out;
  }

  // Mostly follows existing nodes, so that some entries match.
  std::vector<std::pair<std::string, std::string>> RandomEntries() {
    std::vector<std::pair<std::string, std::string>> entries(1 + random_() % 4);
    const ModelNode* level = &root_;
    for (auto& [key, value] : entries) {
      key = Text("ab_", 1, 3);
      value = Text("ab_*", 0, 3);
      if (level == nullptr || level->children.empty() || random_() % 8 == 0) continue;
      const auto child =
          std::next(level->children.begin(), static_cast<long>(random_() % level->children.size()));
      level = child->second.get();
      std::string text;
      for (const char c : child->first) text += c == '*' ? Text("ab_", 0, 2) : std::string(1, c);
      const size_t split = text.find('_', 1);
      key = text.substr(0, split);
      if (split != std::string::npos) value = text.substr(split + 1);
    }
    return entries;
  }

  const RuleTree& tree() const { return *tree_; }
  const ModelNode& model() const { return root_; }

 private:
  void Fill(ModelNode& model, NodeId node, int depth) {
    for (size_t count = random_() % (depth == 0 ? 16 : 7); count > 0 && depth < 4; --count) {
      const std::string key = Text(random_() % 8 == 0 ? "ab_*" : "ab_", 1, 3);
      const std::string value = Text(random_() % 2 == 0 ? "ab*_" : "ab", 0, 3);
      const std::string joined = value.empty() ? key : key + "_" + value;
      const auto [child, added] = builder_.AddChild(node, key, value);
      ASSERT_EQ(added, !model.children.contains(joined));
      if (!added) continue;
      auto& made = model.children[joined];
      made = std::make_unique<ModelNode>();
      const bool is_pattern = joined.find('*') != std::string::npos;
      if (is_pattern) model.patterns.push_back(joined);
      if (is_pattern && random_() % 2 == 0) {
        made->shared = joined;
        builder_.SetShareThreshold(child);
      }
      if (random_() % 4 != 0) {
        made->name = std::to_string(++rules_);
        Rule rule;
        rule.name = made->name;
        builder_.SetRule(child, std::move(rule));
      }
      Fill(*made, child, depth + 1);
    }
  }

  std::mt19937_64 random_;
  ModelNode root_;
  RuleTreeBuilder builder_;
  std::shared_ptr<const RuleTree> tree_;
  int rules_ = 0;
};

TEST(RuleTree, FindsWhatTheDefinitionFindsInRandomTrees) {
  int found = 0;
  int shared = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    RandomTree random(seed);
    for (int i = 0; i < 500; ++i) {
      const auto texts = random.RandomEntries();
      std::vector<Entry> entries;
      for (const auto& [key, value] : texts) entries.push_back({.key = key, .value = value});
      const ModelMatch expected = ModelFind(random.model(), texts);
      Match match;
      ASSERT_TRUE(random.tree().Find("d", entries, match));
      ASSERT_EQ(match.rule == nullptr ? "" : match.rule->name, expected.name)
          << "seed " << seed << " lookup " << i;
      ASSERT_EQ(match.step_count, expected.shared.size()) << "seed " << seed << " lookup " << i;
      for (size_t k = 0; k < expected.shared.size(); ++k) {
        const std::string* const pattern = match.steps[k].shared_pattern;
        ASSERT_EQ(pattern == nullptr ? "" : *pattern, expected.shared[k])
            << "seed " << seed << " lookup " << i;
        shared += pattern != nullptr ? 1 : 0;
      }
      found += match.rule != nullptr ? 1 : 0;
    }
  }
  EXPECT_GT(found, 40'000);
  EXPECT_GT(shared, 20'000);
}

// A tree with one domain, "d". Its rules are named after their texts, such as "a_1" or "a_1.b".
class Tree {
 public:
  NodeId Add(std::string_view key, std::string_view value = {}, NodeId parent = kNoNode) {
    if (parent == kNoNode) parent = builder_.Domain("d");
    const auto [node, added] = builder_.AddChild(parent, key, value);
    EXPECT_TRUE(added);
    Rule rule;
    rule.name = value.empty() ? std::string(key) : std::string(key) + "_" + std::string(value);
    builder_.SetRule(node, std::move(rule));
    return node;
  }

  std::string Find(std::vector<Entry> entries, std::string_view domain = "d") {
    if (tree_ == nullptr) tree_ = std::move(builder_).Build();
    Match match;
    if (!tree_->Find(domain, entries, match)) return "(no domain)";
    return match.rule == nullptr ? "(no rule)" : match.rule->name;
  }

  RuleTreeBuilder& builder() { return builder_; }

 private:
  RuleTreeBuilder builder_;
  std::shared_ptr<const RuleTree> tree_;
};

TEST(RuleTree, FindsWithoutAllocating) {
  RuleTreeBuilder builder;
  const std::string long_value(10'000, 'v');
  const NodeId first = builder.AddChild(builder.Domain("d"), "k", long_value + "*").node;
  builder.SetShareThreshold(first);
  builder.SetRule(builder.AddChild(first, "j", {}).node, {});
  const auto tree = std::move(builder).Build();
  const std::string request_value = std::string(20'000, 'v');
  const std::vector<Entry> entries{{"k", request_value}, {"j", long_value}};
  Match match;
  const uint64_t before = testing::allocation_count;
  tree->Find("d", entries, match);
  EXPECT_EQ(testing::allocation_count, before);
  EXPECT_NE(match.rule, nullptr);
}

TEST(RuleTree, PrefersTheExactValueThenThePatternThenTheKey) {
  Tree tree;
  tree.Add("k");
  tree.Add("k", "v*");
  tree.Add("k", "v1");
  EXPECT_EQ(tree.Find({{"k", "v1"}}), "k_v1");
  EXPECT_EQ(tree.Find({{"k", "v2"}}), "k_v*");
  EXPECT_EQ(tree.Find({{"k", "w"}}), "k");
  EXPECT_EQ(tree.Find({{"k", ""}}), "k");
  EXPECT_EQ(tree.Find({{"j", "v1"}}), "(no rule)");
}

TEST(RuleTree, NeverGoesBackToAnotherBranch) {
  Tree tree;
  tree.Add("k", "exact");
  tree.Add("path", {}, tree.Add("k"));
  EXPECT_EQ(tree.Find({{"k", "any"}, {"path", "x"}}), "path");
  EXPECT_EQ(tree.Find({{"k", "exact"}, {"path", "x"}}), "(no rule)");
}

TEST(RuleTree, AppliesARuleOnlyAtItsOwnDepth) {
  Tree tree;
  tree.Add("b", {}, tree.Add("a"));
  EXPECT_EQ(tree.Find({{"a", "1"}}), "a");
  EXPECT_EQ(tree.Find({{"a", "1"}, {"b", "2"}}), "b");
  EXPECT_EQ(tree.Find({{"a", "1"}, {"b", "2"}, {"c", "3"}}), "(no rule)");
  EXPECT_EQ(tree.Find({{"b", "2"}, {"a", "1"}}), "(no rule)");
  EXPECT_EQ(tree.Find({}), "(no rule)");
}

TEST(RuleTree, ComparesKeyAndValueAsOneText) {
  Tree tree;
  tree.Add("a", "b_c");
  EXPECT_FALSE(tree.builder().AddChild(tree.builder().Domain("d"), "a_b", "c").added);
  EXPECT_EQ(tree.Find({{"a_b", "c"}}), "a_b_c");
}

TEST(RuleTree, FindsAPatternByItsOwnSpelling) {
  Tree tree;
  tree.Add("k", "a*");
  tree.Add("k", "ab*");
  EXPECT_EQ(tree.Find({{"k", "ab*"}}), "k_ab*");
  EXPECT_EQ(tree.Find({{"k", "abc"}}), "k_a*");
}

TEST(RuleTree, TellsAnUnknownDomainFromNoRule) {
  Tree tree;
  tree.Add("k");
  EXPECT_EQ(tree.Find({{"k", "v"}}, "other"), "(no domain)");
  EXPECT_EQ(tree.Find({{"k", "v"}}, ""), "(no domain)");
  EXPECT_EQ(tree.Find({{"j", "v"}}), "(no rule)");
}

TEST(RuleTree, FindsNoRuleForMoreEntriesThanAnyRequestHas) {
  RuleTreeBuilder builder;
  NodeId node = builder.Domain("d");
  for (size_t i = 0; i < kEntriesMax + 1; ++i) {
    node = builder.AddChild(node, "k", {}).node;
    builder.SetRule(node, {});
  }
  const auto tree = std::move(builder).Build();
  Match match;
  std::vector<Entry> entries(kEntriesMax, Entry{.key = "k", .value = "v"});
  EXPECT_TRUE(tree->Find("d", entries, match));
  EXPECT_EQ(match.rule, &tree->rules()[kEntriesMax - 1]);
  entries.push_back({.key = "k", .value = "v"});
  EXPECT_TRUE(tree->Find("d", entries, match));
  EXPECT_EQ(match.rule, nullptr);
}

TEST(RuleTree, KeepsAllOrNothingByDomain) {
  RuleTreeBuilder builder;
  builder.SetAllOrNothing(builder.Domain("all"));
  builder.Domain("each");
  const auto tree = std::move(builder).Build();
  for (const std::string_view domain : {"all", "each", "unknown"}) {
    Match match;
    match.all_or_nothing = domain != "all";
    (void)tree->Find(domain, {}, match);
    EXPECT_EQ(match.all_or_nothing, domain == "all") << domain;
  }
}

TEST(RuleTree, MarksTheStepsWhoseValueIsInTheMetric) {
  RuleTreeBuilder builder;
  const NodeId first = builder.AddChild(builder.Domain("d"), "a", {}).node;
  const NodeId second = builder.AddChild(first, "b", {}).node;
  builder.SetValueInMetric(second);
  builder.SetRule(second, {});
  const auto tree = std::move(builder).Build();
  Match match;
  EXPECT_TRUE(tree->Find("d", std::vector<Entry>{{"a", "1"}, {"b", "2"}}, match));
  ASSERT_EQ(match.step_count, 2u);
  EXPECT_FALSE(match.steps[0].value_in_metric);
  EXPECT_TRUE(match.steps[1].value_in_metric);
}

TEST(BuildRules, MakesOneRuleAKey) {
  const auto limit = algorithm::Limit::Make({.requests = 5, .period = std::chrono::minutes(1)});
  const auto rules =
      BuildRules(std::vector<PlainRule>{{.domain = "d", .key = "login", .limits = {*limit}}});
  ASSERT_TRUE(rules.ok());
  Match match;
  EXPECT_TRUE((*rules)->Find("d", std::vector<Entry>{{"login", "ann"}}, match));
  ASSERT_NE(match.rule, nullptr);
  EXPECT_EQ(match.rule->label(), "login");
  EXPECT_EQ(match.rule->limits[0].limit.spec(), limit->spec());
  EXPECT_EQ(match.rule->limits[0].unit, Unit::kMinute);
}

TEST(BuildRules, RefusesWhatNoFileCouldSay) {
  const algorithm::Limit limit;
  const auto error = [](std::vector<PlainRule> rules) {
    return std::string(BuildRules(rules).status().message());
  };
  EXPECT_EQ(error({{"", "k", {limit}}}), "a rule needs a domain and a key");
  EXPECT_EQ(error({{"d", "", {limit}}}), "a rule needs a domain and a key");
  EXPECT_EQ(error({{"d", "k", {}}}), "rule \"k\" needs 1 to 16 limits, not 0");
  EXPECT_EQ(error({{"d", "k", {limit}}, {"d", "k", {limit}}}),
            "rule \"k\" occurs twice in domain \"d\"");
}

}  // namespace rule_tree_test
}  // namespace headgate::rule

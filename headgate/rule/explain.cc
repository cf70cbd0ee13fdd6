#include "headgate/rule/explain.h"

#include <fmt/format.h>

#include <set>

#include "headgate/rule/concurrency.h"
#include "headgate/rule/limit_text.h"
#include "headgate/rule/quote.h"

namespace headgate::rule {
namespace {

constexpr size_t kOthersMax = 5;  // of each kind, per step

std::string EntryText(const Entry& entry) {
  return entry.value.empty() ? std::string(entry.key)
                             : fmt::format("{}={}", entry.key, entry.value);
}

std::string JoinedOf(const Entry& entry) { return fmt::format("{}_{}", entry.key, entry.value); }

std::string MoreOf(size_t count, std::string_view what) {
  return count <= kOthersMax ? std::string()
                             : fmt::format("… and {} more {}", count - kOthersMax, what);
}

class Walk {
 public:
  Walk(const RuleTree& rules, std::span<const Entry> entries, Explanation& out)
      : rules_(rules), entries_(entries), out_(out) {}

  void Run(const TreeNode& domain) {
    if (entries_.empty()) return Conclude("the descriptor has no entries: no limit");
    if (entries_.size() > kEntriesMax) {
      return Conclude(
          fmt::format("the descriptor has more than {} entries: no limit", kEntriesMax));
    }
    const TreeNode* level = &domain;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const TreeNode* node = Step(*level, entries_[i]);
      const bool is_last = i + 1 == entries_.size();
      if (node == nullptr) return Conclude(NothingMatched(*level, entries_[i]));
      if (is_last) return ConcludeAt(*node);
      if (!node->has_children()) {
        return Conclude(
            fmt::format("the descriptor is deeper than the rules: nothing is below {}, and {} more "
                        "{}: no limit",
                        Quote(rules_.text(*node)), entries_.size() - i - 1,
                        entries_.size() - i - 1 == 1 ? "entry follows" : "entries follow"));
      }
      level = node;
    }
  }

 private:
  void Conclude(std::string verdict) { out_.verdict = std::move(verdict); }

  // Finds the child that matches the entry, and lists the alternatives.
  const TreeNode* Step(const TreeNode& level, const Entry& entry) {
    const JoinedText joined(entry.key, entry.value);
    const TreeNode* const exact = rules_.Child(level, joined);
    const TreeNode* const pattern = rules_.ChildByPattern(level, joined);
    const TreeNode* const key = rules_.Child(level, JoinedText(entry.key));

    ExplainedStep step;
    step.entry = EntryText(entry);
    const TreeNode* const found = exact != nullptr ? exact : pattern != nullptr ? pattern : key;
    if (found != nullptr) {
      step.matched_by = found == exact     ? MatchedBy::kExact
                        : found == pattern ? MatchedBy::kPattern
                                           : MatchedBy::kKey;
      step.node = rules_.text(*found);
      step.has_limit = rules_.rule(*found) != nullptr;
    }
    if (exact == nullptr)
      step.others.push_back(fmt::format("{} has no rule", Quote(JoinedOf(entry))));
    ExplainPatterns(level, joined, found, exact != nullptr, step);
    if (key != nullptr && key != found) {
      step.others.push_back(
          fmt::format("{} (the key alone) comes after an exact value and after patterns",
                      Quote(rules_.text(*key))));
    } else if (key == nullptr) {
      step.others.push_back(fmt::format("{} (the key alone) has no rule", Quote(entry.key)));
    }
    NoteNoBacktracking(step, found, {exact, pattern, key});
    out_.steps.push_back(std::move(step));
    return found;
  }

  void ExplainPatterns(const TreeNode& level, const JoinedText& joined, const TreeNode* found,
                       bool has_exact, ExplainedStep& step) {
    const WildcardIndex* const patterns = rules_.Patterns(level);
    if (patterns == nullptr) return;
    size_t others = 0;
    for (const Pattern& pattern : patterns->patterns()) {
      if (found != nullptr && rules_.text(*found) == pattern.text) continue;
      const bool matches =
          joined.HasAt(0, std::string_view(pattern.text).substr(0, pattern.prefix_size)) &&
          pattern.MatchesAfterPrefix(joined);
      if (++others > kOthersMax) continue;
      const std::string_view why = !matches    ? "does not match"
                                   : has_exact ? "matches, but an exact value comes before patterns"
                                               : "matches too, but comes later in the file";
      step.others.push_back(fmt::format("pattern {} {}", Quote(pattern.text), why));
    }
    if (std::string more = MoreOf(others, "patterns"); !more.empty())
      step.others.push_back(std::move(more));
  }

  // Notes if the descriptor has more entries and only a sibling of the chosen node has children.
  void NoteNoBacktracking(ExplainedStep& step, const TreeNode* found,
                          std::initializer_list<const TreeNode*> candidates) {
    const size_t next = out_.steps.size() + 1;
    if (found == nullptr || next >= entries_.size() || Leads(*found, entries_[next])) return;
    for (const TreeNode* candidate : candidates) {
      if (candidate == nullptr || candidate == found || !Leads(*candidate, entries_[next]))
        continue;
      step.others.push_back(
          fmt::format("{} would lead to {}, but the search does not go back once {} has matched",
                      Quote(rules_.text(*candidate)), Quote(EntryText(entries_[next])),
                      Quote(rules_.text(*found))));
      return;
    }
  }

  bool Leads(const TreeNode& node, const Entry& entry) const {
    const JoinedText joined(entry.key, entry.value);
    return rules_.Child(node, joined) != nullptr ||
           rules_.ChildByPattern(node, joined) != nullptr ||
           rules_.Child(node, JoinedText(entry.key)) != nullptr;
  }

  std::string NothingMatched(const TreeNode& level, const Entry& entry) const {
    const auto children = rules_.ChildTexts(level, kOthersMax + 1);
    std::string list;
    for (size_t i = 0; i < children.size() && i < kOthersMax; ++i) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ", Quote(children[i]));
    }
    const std::string_view here = out_.steps.size() == 1 ? "in the domain" : "at this level";
    return fmt::format("nothing {} matches {}{}{}: no limit", here, Quote(EntryText(entry)),
                       list.empty() ? "" : fmt::format("; there is {}", list),
                       children.size() > kOthersMax ? ", …" : "");
  }

  void ConcludeAt(const TreeNode& node) {
    out_.rule = rules_.rule(node);
    if (out_.rule == nullptr) {
      return Conclude(
          fmt::format("{} has no rate_limit of its own, only descriptors below it: no limit",
                      Quote(rules_.text(node))));
    }
    if (out_.rule->unlimited)
      return Conclude(fmt::format("rule {} is unlimited", Quote(out_.rule->label())));
    Conclude(fmt::format("rule {} applies", Quote(out_.rule->label())));
    Match match;
    rules_.Find(out_.domain, entries_, match);
    out_.bucket = out_.domain;
    for (size_t i = 0; i < match.step_count; ++i) {
      const std::string* const shared = match.steps[i].shared_pattern;
      out_.bucket += shared == nullptr
                         ? fmt::format(", {}", EntryText(entries_[i]))
                         : fmt::format(", {} (one for all values that match)", *shared);
    }
  }

  const RuleTree& rules_;
  const std::span<const Entry> entries_;
  Explanation& out_;
};

// "; there is "edge", "login", …", or an empty string.
std::string OtherDomains(const RuleTree& rules) {
  std::set<std::string_view> domains;
  for (const Rule& rule : rules.rules()) domains.insert(rule.domain);
  if (domains.empty()) return {};
  std::string list;
  size_t count = 0;
  for (const std::string_view domain : domains) {
    if (++count > kOthersMax) break;
    list += fmt::format("{}{}", list.empty() ? "" : ", ", Quote(domain));
  }
  return fmt::format("; there is {}{}", list, domains.size() > kOthersMax ? ", …" : "");
}

void DescribeRule(const Rule& rule, std::string& out) {
  out += fmt::format("rule      {}{}\n", Printable(rule.path),
                     rule.name.empty() ? "" : fmt::format(" (name {})", Quote(rule.name)));
  for (const RuleLimit& limit : rule.limits) {
    const std::string_view nothing = NothingPasses(limit) ? ": nothing passes" : "";
    out += fmt::format("limit     {}{}\n", Describe(limit), nothing);
  }
  if (rule.concurrency) {
    out += fmt::format("limit     {}{}\n", Describe(*rule.concurrency),
                       rule.concurrency->max == 0 ? ": nothing passes" : "");
  }
  if (rule.unlimited) out += "limit     none: unlimited\n";
  if (rule.rollout != nullptr) {
    for (const RuleLimit& limit : rule.rollout->limits)
      out += fmt::format("roll-out  {}, {}\n", Describe(limit), DescribeReach(*rule.rollout));
  }
  if (rule.shadow_mode) out += "shadow    decides and counts, but allows every request\n";
  if (rule.quota_mode) out += "quota     quota_mode\n";
  if (rule.quota_unit != base::QuotaUnit::kRequests)
    out += fmt::format("counts    {}\n", base::Name(rule.quota_unit));
  if (rule.rate_limit_fields)
    out += fmt::format("fields    {}\n", base::Name(*rule.rate_limit_fields));
  if (rule.refusal) out += fmt::format("refusal   {}\n", Printable(rule.refusal->content_type()));
  for (const std::string& name : rule.replaces) out += fmt::format("replaces  {}\n", Quote(name));
}

}  // namespace

std::string_view Describe(MatchedBy matched_by) {
  switch (matched_by) {
    case MatchedBy::kExact:
      return "exact";
    case MatchedBy::kPattern:
      return "first pattern in the file's order that matches";
    case MatchedBy::kKey:
      return "the key alone, for every value";
    case MatchedBy::kNothing:
      return "nothing";
  }
  return "nothing";
}

bool NothingPasses(const RuleLimit& limit) { return limit.limit.spec().requests == 0; }

Explanation Explain(const RuleTree& rules, std::string_view domain,
                    std::span<const Entry> entries) {
  Explanation explanation;
  explanation.domain = domain;
  const TreeNode* const root = rules.FindDomain(domain);
  explanation.domain_known = root != nullptr;
  if (root == nullptr) {
    explanation.verdict = fmt::format("no rule file has the domain {}{}: no limit", Quote(domain),
                                      OtherDomains(rules));
  } else {
    Walk(rules, entries, explanation).Run(*root);
  }
  return explanation;
}

std::string Describe(const Explanation& explanation) {
  std::string out = fmt::format("domain    {}\n", Printable(explanation.domain));
  for (size_t i = 0; i < explanation.steps.size(); ++i) {
    const ExplainedStep& step = explanation.steps[i];
    out += fmt::format("step {:<4} {}\n", i + 1, Printable(step.entry));
    if (step.matched_by == MatchedBy::kNothing) {
      out += "          matched nothing\n";
    } else {
      out += fmt::format("          matched {}: {}\n", Quote(step.node), Describe(step.matched_by));
    }
    for (const std::string& other : step.others) out += fmt::format("          not: {}\n", other);
  }
  if (explanation.rule != nullptr) DescribeRule(*explanation.rule, out);
  if (!explanation.bucket.empty())
    out += fmt::format("bucket    {}\n", Printable(explanation.bucket));
  return out + fmt::format("so        {}\n", explanation.verdict);
}

}  // namespace headgate::rule

// The rules as the limiter reads them: immutable, complete, and shared between threads.
//
// The rules of a domain form a tree. A request's descriptor walks down the tree entry by entry,
// exactly as in Envoy's rate limit service: an exact key_value first, then the first pattern in
// file order, then the key alone. There is no backtracking, and only the rule at the descriptor's
// own depth applies. See docs/reference/rules.md. RuleTree (rule_tree.h) is the implementation;
// LoadRules (read/load.h) makes one from text.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/algorithm/limit.h"
#include "headgate/base/rate_limit_form.h"
#include "headgate/base/time.h"
#include "headgate/rule/descriptor.h"
#include "headgate/rule/given_limit.h"
#include "headgate/rule/refusal.h"
#include "headgate/rule/size_cost.h"

namespace headgate::rule {

// The most limits of one node.
inline constexpr size_t kLimitsPerRuleMax = 16;

// A limit as its rule file states it.
struct RuleLimit {
  algorithm::Limit limit;
  // For Envoy's protocol; absent if the period is not one of Envoy's units.
  std::optional<Unit> unit;
  // Set if the cost is the size of the body, or depends on the status of the answer. Sidecar only;
  // a stated cost wins over the size.
  std::optional<SizeCost> cost{};
  // The limits that requests may bring instead; null: none.
  std::shared_ptr<const GivenLimits> given{};
};

// How instances share a rule's buckets. If the rule does not set it, the store's default applies.
enum class Sharing : uint8_t {
  kExact,
  kLeased,
  kStrict,
  kLocked,  // strict, one instance after the other, by a lock of the key
};

// How a rule decides while its store is unreachable.
enum class OnStoreFailure : uint8_t { kAllow, kDeny, kLocal };

// At most this many requests of a key are in flight at the same time. See permit/permit.h.
struct ConcurrencyLimit {
  uint32_t max = 0;       // at most permit::kPermitsPerKeyMax
  base::Duration ttl{0};  // after which a permit that nobody has given back ends

  bool operator==(const ConcurrencyLimit&) const = default;
};

// Limits that will replace those of a rule, while they are tried out on a part of the traffic.
struct Rollout {
  std::vector<RuleLimit> limits;  // as in Rule; never empty
  // The part of the keys that these limits hold for, in millionths. The same keys on every
  // instance; a larger part contains the smaller one. 0: in shadow: these limits are evaluated too,
  // with buckets of their own, but only the rule's limits decide.
  uint32_t keys_ppm = 0;

  bool shadow() const { return keys_ppm == 0; }
};

// The limits of one node of the tree and how they are handled.
struct Rule {
  uint32_t index = 0;  // dense, 0 .. RuleSet::rules().size() − 1
  std::string domain;
  std::string name;  // `name` of the rule file, or empty
  std::string
      path;  // keys and configured values: "api_key_gold.path"; shown if the rule has no name
  std::string identity;  // unambiguous; stays the same for the same rule across versions of the
                         // file
  // All limits must allow. At most kLimitsPerRuleMax; empty only if the rule is unlimited, or
  // limits concurrency alone. In a rule set, limits with longer periods come first; the index is
  // the number of the bucket.
  std::vector<RuleLimit> limits;
  std::optional<ConcurrencyLimit> concurrency;  // must allow too
  bool unlimited = false;
  bool shadow_mode = false;
  bool quota_mode = false;
  bool all_or_nothing = false;   // as Match says for its domain
  bool detailed_metric = false;  // metrics are labelled with the request's own values
  bool value_to_metric = false;
  std::vector<std::string> replaces;  // names of rules that do not apply when this one matches
  std::string metadata_json;          // `metadata` as a JSON object, or empty
  // How answers describe the rule's limits. Absent or null: as the mapping or the listener says.
  std::optional<base::RateLimitDialect> rate_limit_fields;
  std::shared_ptr<const Refusal> refusal;
  // The unit of the costs. A limit of sizes or of concurrency has a unit of its own.
  base::QuotaUnit quota_unit = base::QuotaUnit::kRequests;
  std::shared_ptr<const Rollout> rollout;  // null: there is none
  // For stores that several machines share.
  std::optional<Sharing> sharing;
  std::optional<OnStoreFailure> on_store_failure;
  std::optional<uint32_t> fallback_share_ppm;  // part of the limit in millionths: 1 .. 1,000,000

  // The name that people see: the name, or the path if it has none. Never a value that a client
  // sent.
  std::string_view label() const {
    return name.empty() ? std::string_view(path) : std::string_view(name);
  }
};

// One step of a match: the text that names the bucket at this entry.
struct MatchStep {
  // Set if the node has share_threshold: its pattern stands for all values that match it.
  const std::string* shared_pattern = nullptr;
  bool value_in_metric = false;
};

struct Match {
  const Rule* rule = nullptr;  // null: no limit applies
  // Whether a request to this domain must be allowed by all of its descriptors before it consumes
  // from any of them.
  bool all_or_nothing = false;
  std::array<MatchStep, kEntriesMax> steps;
  uint32_t step_count = 0;
};

class RuleSet {
 public:
  virtual ~RuleSet() = default;

  // Returns false if no rule file has this domain. Does not allocate. Sets `match` in either case.
  virtual bool Find(std::string_view domain, std::span<const Entry> entries,
                    Match& match) const = 0;

  virtual std::span<const Rule> rules() const = 0;
};

}  // namespace headgate::rule

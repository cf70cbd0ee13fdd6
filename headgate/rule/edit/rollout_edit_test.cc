#include "headgate/rule/edit/rollout_edit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "headgate/base/random.h"
#include "headgate/rule/read/load.h"

namespace headgate::rule::edit {
namespace rollout_edit_test {

using read::LoadResult;
using read::LoadRules;
using read::RuleFile;

constexpr std::string_view kFile = R"(# The shop's limits.
domain: shop
descriptors:
  - key: user   # each user
    rate_limit:
      unit: minute
      requests_per_unit: 10   # as in the contract
      name: per_user
    descriptors:
      - key: path
        rate_limit: {unit: second, requests_per_unit: 1}
)";

const std::vector<RuleEntry> kUser{{.key = "user"}};
const std::vector<RuleEntry> kPath{{.key = "user"}, {.key = "path"}};

std::shared_ptr<const RuleTree> Load(const absl::StatusOr<std::string>& text) {
  EXPECT_TRUE(text.ok()) << text.status();
  if (!text.ok()) return nullptr;
  const RuleFile file{.name = "f", .text = *text};
  LoadResult result = LoadRules({&file, 1});
  EXPECT_TRUE(result.ok()) << *text << Describe(result.problems);
  return result.rules;
}

constexpr std::string_view kFivePercent =
    R"({"percent": 5, "rate_limit": {"unit": "minute", "requests_per_unit": 20}})";

TEST(RolloutEdit, BeginsBesideTheRulesOwnLimit) {
  const auto text = PutRollout(kFile, kUser, kFivePercent);
  const auto rules = Load(text);
  ASSERT_NE(rules, nullptr);
  const Rule& rule = rules->rules()[0];
  EXPECT_EQ(rule.limits[0].limit.spec().requests, 10u);
  ASSERT_NE(rule.rollout, nullptr);
  EXPECT_EQ(rule.rollout->keys_ppm, 50'000u);
  EXPECT_EQ(rule.rollout->limits[0].limit.spec().requests, 20u);
  EXPECT_NE(text->find("requests_per_unit: 10   # as in the contract\n"), std::string::npos);
  EXPECT_NE(text->find("- key: user   # each user\n"), std::string::npos);
}

TEST(RolloutEdit, AnotherPercentageKeepsTheLimit) {
  const auto begun = PutRollout(kFile, kUser, kFivePercent);
  ASSERT_TRUE(begun.ok());
  const auto rules = Load(PutRollout(*begun, kUser, "{percent: 50}"));
  ASSERT_NE(rules, nullptr);
  EXPECT_EQ(rules->rules()[0].rollout->keys_ppm, 500'000u);
  EXPECT_EQ(rules->rules()[0].rollout->limits[0].limit.spec().requests, 20u);
}

TEST(RolloutEdit, TheLimitsOfAFileMayBeWrittenInAnyStyle) {
  const std::string block = "rate_limit:\n  unit: minute\n  requests_per_unit: 20\n";
  std::string indented = "\n  # the new limit\n";
  for (const char* line : {"rate_limit:\n", "  unit: minute\n", "  requests_per_unit: 20\n"})
    indented.append("  ").append(line);
  for (const std::string& limits :
       {block, "---\n" + block, "\xEF\xBB\xBF" + block, indented,
        std::string(R"({"rate_limit": {"unit": "minute", "requests_per_unit": 20}})"),
        std::string("- key: user\n  rate_limit: {unit: minute, requests_per_unit: 20}\n"),
        std::string("key: user\nvalue: x\nrate_limit: {unit: minute, requests_per_unit: 20}\n")}) {
    const auto text = RolloutWith(limits, "5");
    ASSERT_TRUE(text.ok()) << text.status() << limits;
    const auto rules = Load(PutRollout(kFile, kUser, *text));
    ASSERT_NE(rules, nullptr) << limits;
    EXPECT_EQ(rules->rules()[0].rollout->keys_ppm, 50'000u) << limits;
    EXPECT_EQ(rules->rules()[0].rollout->limits[0].limit.spec().requests, 20u) << limits;
  }
}

TEST(RolloutEdit, WithoutLimitsThoseUnderWayAreKept) {
  const auto begun = PutRollout(kFile, kUser, kFivePercent);
  ASSERT_TRUE(begun.ok());
  for (const std::string_view limits : {"", "# nothing\n", "{}"}) {
    const auto rules = Load(PutRollout(*begun, kUser, *RolloutWith(limits, std::nullopt)));
    ASSERT_NE(rules, nullptr);
    EXPECT_TRUE(rules->rules()[0].rollout->shadow());
    EXPECT_EQ(rules->rules()[0].rollout->limits[0].limit.spec().requests, 20u);
  }
}

TEST(RolloutEdit, OtherThingsThanLimitsAreRefused) {
  const std::string_view limit = "rate_limit: {unit: minute, requests_per_unit: 20}\n";
  for (const std::string limits :
       {"5", "- 1\n- 2\n", "[{}, {}]", "percent: 5\n", "shadow_mode: true\n",
        "a: &x {}\nrate_limit: *x\n", "rate_limit: [\n"}) {
    EXPECT_EQ(RolloutWith(limits, "5").status().code(), absl::StatusCode::kInvalidArgument)
        << limits;
  }
  const std::string two = fmt::format("{}---\n{}", limit, limit);
  EXPECT_EQ(RolloutWith(two, "5").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(PutRollout(kFile, kUser, "percent: 5\n" + two).status().code(),
            absl::StatusCode::kInvalidArgument);
  for (const char* percent : {"", "5%", "-5", "5, rate_limit: {}", "five"}) {
    EXPECT_EQ(RolloutWith(limit, percent).status().code(), absl::StatusCode::kInvalidArgument)
        << percent;
  }
}

TEST(RolloutEdit, IsPromotedWithTheNameOfTheRule) {
  const auto begun = PutRollout(kFile, kUser, kFivePercent);
  ASSERT_TRUE(begun.ok());
  const auto text = PromoteRollout(*begun, kUser);
  const auto rules = Load(text);
  ASSERT_NE(rules, nullptr);
  EXPECT_EQ(rules->rules()[0].rollout, nullptr);
  EXPECT_EQ(rules->rules()[0].limits[0].limit.spec().requests, 20u);
  EXPECT_EQ(rules->rules()[0].name, "per_user");
  EXPECT_NE(text->find("requests_per_unit: 20   # as in the contract\n"), std::string::npos)
      << *text;
  EXPECT_EQ(rules->rules()[1].limits[0].limit.spec().requests, 1u);
}

TEST(RolloutEdit, TakenBackTheFileIsAsItWas) {
  const auto begun = PutRollout(kFile, kUser, kFivePercent);
  ASSERT_TRUE(begun.ok());
  const auto text = EndRollout(*begun, kUser);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, kFile);
}

TEST(RolloutEdit, SeveralLimitsReplaceOneAndTheOtherWayRound) {
  const auto begun =
      PutRollout(kFile, kPath,
                 "{shadow: true, rate_limits: [{unit: second, requests_per_unit: 2}, {unit: day, "
                 "requests_per_unit: 3}]}");
  ASSERT_TRUE(begun.ok()) << begun.status();
  const auto several = PromoteRollout(*begun, kPath);
  auto rules = Load(several);
  ASSERT_NE(rules, nullptr);
  EXPECT_EQ(rules->rules()[1].limits.size(), 2u);
  const auto again =
      PutRollout(*several, kPath, "{shadow: true, rate_limit: {unit: day, requests_per_unit: 9}}");
  ASSERT_TRUE(again.ok()) << again.status();
  rules = Load(PromoteRollout(*again, kPath));
  ASSERT_NE(rules, nullptr);
  ASSERT_EQ(rules->rules()[1].limits.size(), 1u);
  EXPECT_EQ(rules->rules()[1].limits[0].limit.spec().requests, 9u);
}

TEST(RolloutEdit, PromotedToSeveralLimitsTheRuleKeepsItsOwnFields) {
  const auto begun = PutRollout(kFile, kUser,
                                "{shadow: true, rate_limits: [{unit: second, requests_per_unit: "
                                "2}, {unit: day, requests_per_unit: 3}]}");
  ASSERT_TRUE(begun.ok()) << begun.status();
  const auto several = PromoteRollout(*begun, kUser);
  auto rules = Load(several);
  ASSERT_NE(rules, nullptr);
  EXPECT_EQ(rules->rules()[0].limits.size(), 2u);
  EXPECT_EQ(rules->rules()[0].name, "per_user");
  const auto again =
      PutRollout(*several, kUser, "{percent: 1, rate_limit: {unit: day, requests_per_unit: 9}}");
  ASSERT_TRUE(again.ok()) << again.status();
  rules = Load(PromoteRollout(*again, kUser));
  ASSERT_NE(rules, nullptr);
  EXPECT_EQ(rules->rules()[0].limits.size(), 1u);
  EXPECT_EQ(rules->rules()[0].name, "per_user");
}

TEST(RolloutEdit, TheFieldsAboutStoresChooseTheDefaultsOfTheRolloutToo) {
  for (const char* field : {"strict: true", "sharing: exact", "on_store_failure: deny",
                            "fallback_share: 0.5", "strict: false"}) {
    const std::string file = fmt::format(
        "domain: d\ndescriptors:\n- key: u\n  rate_limit: {{unit: minute, requests_per_unit: 100, "
        "{}}}\n  rollout: {{percent: 100, rate_limit: {{unit: minute, requests_per_unit: 120}}}}\n",
        field);
    const auto before = Load(file);
    const auto after = Load(PromoteRollout(file, std::vector<RuleEntry>{{.key = "u"}}));
    ASSERT_NE(before, nullptr);
    ASSERT_NE(after, nullptr);
    const algorithm::LimitSpec tried = before->rules()[0].rollout->limits[0].limit.spec();
    EXPECT_EQ(tried.algorithm, algorithm::Algorithm::kTokenBucket) << field;
    EXPECT_EQ(tried, after->rules()[0].limits[0].limit.spec()) << field;
  }
}

// Rules and roll-outs with any mix of fields.
class RandomRollout {
 public:
  explicit RandomRollout(uint64_t seed) : random_(seed) {}

  bool Chance(uint64_t one_in) { return random_.Below(one_in) == 0; }

  // The numbers of a limit, with Envoy's fields only or with some of ours.
  std::string Numbers() {
    std::string limit = fmt::format("unit: {}, requests_per_unit: {}", Chance(2) ? "minute" : "day",
                                    1 + random_.Below(100));
    switch (random_.Below(5)) {
      case 0:
        return limit + ", algorithm: sliding_window_counter, count_denied: true";
      case 1:
        return limit + ", burst: 7";
      default:
        return limit;
    }
  }

  // The fields that only the rule's own limits have; equal ones in all limits of the rule.
  std::string OwnFields() {
    std::string fields;
    if (Chance(4)) fields += ", sharing: strict";
    if (Chance(4)) fields += Chance(3) ? ", strict: false" : ", strict: true";
    if (Chance(4)) fields += ", on_store_failure: deny";
    if (Chance(4)) fields += ", fallback_share: 0.25";
    if (Chance(3)) fields += ", name: n";
    if (Chance(4)) fields += fmt::format(", replaces: [{{name: r{}}}]", random_.Below(3));
    return fields;
  }

  std::vector<std::string> Several(bool own) {
    std::vector<std::string> limits(1 + (Chance(2) ? 0 : random_.Below(4)));
    for (std::string& limit : limits) limit = "{" + Numbers() + (own ? OwnFields() : "") + "}";
    return limits;
  }

  std::string Field(const std::vector<std::string>& limits) {
    if (limits.size() == 1 && Chance(2)) return "rate_limit: " + limits[0];
    return fmt::format("rate_limits: [{}]", fmt::join(limits, ", "));
  }

 private:
  base::Random random_;
};

std::vector<algorithm::LimitSpec> SpecsOf(const std::vector<RuleLimit>& limits) {
  std::vector<algorithm::LimitSpec> specs;
  for (const RuleLimit& limit : limits) specs.push_back(limit.limit.spec());
  return specs;
}

TEST(RolloutEdit, PromotionChangesNothingOfWhatWasTried) {
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    RandomRollout made(seed);
    const std::string file = fmt::format(
        "domain: d\ndescriptors:\n- key: u\n  {}\n  rollout: {{{}, {}}}\n",
        made.Field(made.Several(true)), made.Chance(2) ? "percent: 100" : "shadow: true",
        made.Field(made.Several(false)));
    const auto before = Load(file);
    const auto promoted = PromoteRollout(file, std::vector<RuleEntry>{{.key = "u"}});
    const auto after = Load(promoted);
    ASSERT_TRUE(before != nullptr && after != nullptr) << file;
    const Rule& old = before->rules()[0];
    const Rule& now = after->rules()[0];
    ASSERT_EQ(SpecsOf(now.limits), SpecsOf(old.rollout->limits)) << file << *promoted;
    ASSERT_EQ(now.rollout, nullptr);
    ASSERT_EQ(now.name, old.name) << file << *promoted;
    ASSERT_EQ(now.replaces, old.replaces) << file << *promoted;
    ASSERT_EQ(now.sharing, old.sharing) << file << *promoted;
    ASSERT_EQ(now.on_store_failure, old.on_store_failure) << file << *promoted;
    ASSERT_EQ(now.fallback_share_ppm, old.fallback_share_ppm) << file << *promoted;
  }
}

TEST(RolloutEdit, TheNumbersOfTheRuleAsARolloutAreTheSameLimits) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    RandomRollout made(seed);
    std::vector<std::string> own = made.Several(false);
    const std::string rollout = made.Field(own);
    for (std::string& limit : own) limit.insert(limit.size() - 1, made.OwnFields());
    const std::string file =
        fmt::format("domain: d\ndescriptors:\n- key: u\n  {}\n  rollout: {{percent: 100, {}}}\n",
                    made.Field(own), rollout);
    const auto rules = Load(file);
    ASSERT_NE(rules, nullptr) << file;
    ASSERT_EQ(SpecsOf(rules->rules()[0].limits), SpecsOf(rules->rules()[0].rollout->limits))
        << file;
  }
}

TEST(RolloutEdit, LeavesARuleWithAliasesToPeople) {
  const std::vector<RuleEntry> u{{.key = "u"}};
  for (const char* rule :
       {"  rate_limit: {unit: day, requests_per_unit: 10}\n"
        "  rollout: {percent: 5, rate_limit: *l}\n",
        "  rate_limit: *l\n  rollout: {percent: 5, rate_limit: {unit: day, requests_per_unit: "
        "3}}\n",
        "  rate_limit: {unit: day, requests_per_unit: 10}\n"
        "  rollout: {percent: 5, rate_limit: {<<: *l, requests_per_unit: 8}}\n",
        "  rate_limit: &own {unit: day, requests_per_unit: 10}\n"
        "  rollout: {percent: 5, rate_limit: {<<: *own, requests_per_unit: 8}}\n",
        "  rate_limit: {unit: day}\n  rate_limit: {requests_per_unit: 10}\n"
        "  rollout: {percent: 5, rate_limit: {unit: day, requests_per_unit: 20}}\n"}) {
    const std::string file =
        "domain: d\ndescriptors:\n- key: v\n  rate_limit: &l {unit: day, requests_per_unit: 9}\n"
        "- key: u\n" +
        std::string(rule);
    ASSERT_NE(Load(file), nullptr);
    for (const auto& text :
         {PutRollout(file, u, "{percent: 50}"), PromoteRollout(file, u), EndRollout(file, u)}) {
      EXPECT_TRUE(absl::IsFailedPrecondition(text.status())) << file << text.status();
      EXPECT_NE(text.status().message().find("edit the text by hand"), std::string::npos);
    }
  }
}

TEST(RolloutEdit, ARuleWithRulesBelowItIsRemovedWithItsRollout) {
  const auto begun = PutRollout(kFile, kUser, kFivePercent);
  ASSERT_TRUE(begun.ok());
  const auto rules = Load(RemoveRule(*begun, kUser));
  ASSERT_NE(rules, nullptr);
  EXPECT_EQ(rules->rules().size(), 1u);
}

TEST(RolloutEdit, SaysWhatIsMissing) {
  EXPECT_TRUE(absl::IsNotFound(PromoteRollout(kFile, kUser).status()));
  EXPECT_TRUE(absl::IsNotFound(EndRollout(kFile, kUser).status()));
  const std::vector<RuleEntry> nobody{{.key = "nobody"}};
  EXPECT_TRUE(absl::IsNotFound(PutRollout(kFile, nobody, kFivePercent).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(PutRollout(kFile, kUser, "5").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(PutRollout(kFile, kUser, "{").status()));
}

TEST(DomainOfText, IsTheDomainOfTheFile) {
  EXPECT_EQ(DomainOf(kFile), "shop");
  EXPECT_EQ(DomainOf("descriptors: []"), "");
  EXPECT_EQ(DomainOf("domain: ["), "");
  EXPECT_EQ(DomainOf(""), "");
}

}  // namespace rollout_edit_test
}  // namespace headgate::rule::edit

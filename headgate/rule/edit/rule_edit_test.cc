// rule_edit_properties_test.cc edits random documents.
#include "headgate/rule/edit/rule_edit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "headgate/rule/read/load.h"

namespace headgate::rule::edit {
namespace rule_edit_test {

using read::LoadResult;
using read::LoadRules;
using read::RuleFile;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Path = std::vector<RuleEntry>;

const Path kGold{{.key = "api_key", .value = "gold"}};
const Path kSearch{{.key = "api_key"}, {.key = "path", .value = "/search"}};

std::string Shown(const absl::StatusOr<std::string>& result) {
  return result.ok() ? *result : result.status().ToString();
}

std::string Put(std::string_view document, const Path& path, std::string_view rule) {
  return Shown(PutRule(document, path, rule));
}

std::string Remove(std::string_view document, const Path& path) {
  return Shown(RemoveRule(document, path));
}

std::string Text(std::string_view document, const Path& path) {
  return Shown(RuleText(document, path));
}

// Written by hand, with everything that an edit could disturb.
constexpr std::string_view kFile = R"(# Limits of the edge.	With a tab.
domain: edge   # the name that Envoy sends

descriptors:
  # Every key.
  - key: api_key
    rate_limit: {unit: minute, requests_per_unit: 100}   # default
    descriptors:
      # Search is expensive.
      - key: path
        value: /search
        rate_limit:
          period: "20s"        # not a unit
          requests_per_unit: 10
          burst: 30

  # Paying customers, see café contract.
  - key: api_key
    value: gold
    rate_limit:
      # per minute
      unit: minute
      requests_per_unit: 0x10  # sixteen
    # end of gold
  # - key: old
  #   value: commented out

  - "key": 'remote_address'
    shadow_mode: yes
    rate_limit: {unit: second, requests_per_unit: 5}
)";

std::string Replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out(text);
  const size_t at = out.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) out.replace(at, from.size(), to);
  EXPECT_EQ(out.find(from, at + to.size()), std::string::npos) << from << " occurs twice";
  return out;
}

TEST(RuleEdit, AnEqualRuleChangesNoByte) {
  EXPECT_EQ(Put(kFile, kGold, R"({"rate_limit": {"requests_per_unit": 16, "unit": "minute"}})"),
            kFile);
  EXPECT_EQ(Put(kFile, {{.key = "remote_address"}},
                "rate_limit: {unit: second, requests_per_unit: 5}\nshadow_mode: true"),
            kFile);
}

TEST(RuleEdit, ChangesOnlyTheNumberThatDiffers) {
  EXPECT_EQ(Put(kFile, kGold, R"({"rate_limit": {"unit": "minute", "requests_per_unit": 200}})"),
            Replaced(kFile, "0x10  #", "200  #"));
  EXPECT_EQ(Put(kFile, {{.key = "api_key"}}, "rate_limit: {unit: hour, requests_per_unit: 100}"),
            Replaced(kFile, "{unit: minute,", "{unit: hour,"));
}

TEST(RuleEdit, AddsAndRemovesFields) {
  EXPECT_EQ(Put(kFile, kSearch, "rate_limit: {period: 20s, requests_per_unit: 10}"),
            Replaced(kFile, "          burst: 30\n", ""));
  EXPECT_EQ(Put(kFile, kSearch,
                "rate_limit: {period: 20s, requests_per_unit: 10, burst: 30, sharing: exact}\n"
                "shadow_mode: true"),
            Replaced(kFile, "          burst: 30\n",
                     "          burst: 30\n          sharing: exact\n        shadow_mode: true\n"));
  // The same in braces, and with rules below.
  EXPECT_EQ(
      Put(kFile, {{.key = "api_key"}},
          "rate_limit: {unit: minute, requests_per_unit: 100, burst: 5}\nquota_mode: true"),
      Replaced(kFile, "100}   # default\n", "100, burst: 5}   # default\n    quota_mode: true\n"));
  EXPECT_EQ(Put(kFile, {{.key = "api_key"}}, "rate_limit: {requests_per_unit: 100, period: 3s}"),
            Replaced(kFile, "{unit: minute, requests_per_unit: 100}",
                     "{requests_per_unit: 100, period: 3s}"));
}

TEST(RuleEdit, AddsARuleBehindItsSiblings) {
  EXPECT_EQ(Put(kFile, {{.key = "api_key", .value = "bronze-*"}},
                R"({"rate_limit": {"unit": "hour", "requests_per_unit": 7}})"),
            std::string(kFile) +
                "  - key: api_key\n"
                "    value: bronze-*\n"
                "    rate_limit: {unit: hour, requests_per_unit: 7}\n");
  EXPECT_EQ(Put(kFile, {{.key = "api_key"}, {.key = "path", .value = "/x: #"}},
                R"({"rate_limit": {"unit": "hour", "requests_per_unit": 7}})"),
            Replaced(kFile, "          burst: 30\n",
                     "          burst: 30\n"
                     "      - key: path\n"
                     "        value: \"/x: #\"\n"
                     "        rate_limit:\n"
                     "          unit: hour\n"
                     "          requests_per_unit: 7\n"));
}

TEST(RuleEdit, AddsMissingParents) {
  EXPECT_EQ(Put(kFile, {{.key = "api_key", .value = "gold"}, {.key = "path"}, {.key = "method"}},
                "rate_limit: {unit: day, requests_per_unit: 1}"),
            Replaced(kFile, "    # end of gold\n",
                     "    descriptors:\n"
                     "      - key: path\n"
                     "        descriptors:\n"
                     "          - key: method\n"
                     "            rate_limit: {unit: day, requests_per_unit: 1}\n"
                     "    # end of gold\n"));
}

TEST(RuleEdit, RemovesARuleWithItsOwnComments) {
  const std::string without = Remove(kFile, kGold);
  std::string expected(kFile);
  const size_t begin = expected.find("  # Paying");
  expected.erase(begin, expected.find("  # - key: old") - begin);
  EXPECT_EQ(without, expected);
}

TEST(RuleEdit, RemovingARuleWithRulesBelowRemovesItsLimitOnly) {
  EXPECT_EQ(
      Remove(kFile, {{.key = "api_key"}}),
      Replaced(kFile, "    rate_limit: {unit: minute, requests_per_unit: 100}   # default\n", ""));
  const std::string bare = Remove(kFile, {{.key = "api_key"}});
  EXPECT_THAT(Remove(bare, {{.key = "api_key"}}), StartsWith("NOT_FOUND: "));
}

TEST(RuleEdit, RemovingTheLastRuleLeavesAnEmptyList) {
  EXPECT_EQ(Remove("domain: d\ndescriptors:  # all\n  # a\n  - key: a\n# end\n", {{.key = "a"}}),
            "domain: d\ndescriptors: []  # all\n# end\n");
  EXPECT_EQ(Remove("{domain: d, descriptors: [{key: a}]}", {{.key = "a"}}),
            "{domain: d, descriptors: []}");
}

TEST(RuleEdit, ShowsARuleAsItIsWritten) {
  EXPECT_EQ(Text(kFile, kGold),
            "# Paying customers, see café contract.\n"
            "key: api_key\n"
            "value: gold\n"
            "rate_limit:\n"
            "  # per minute\n"
            "  unit: minute\n"
            "  requests_per_unit: 0x10  # sixteen\n"
            "# end of gold\n");
  EXPECT_EQ(Text(kFile, kSearch),
            "# Search is expensive.\n"
            "key: path\n"
            "value: /search\n"
            "rate_limit:\n"
            "  period: \"20s\"        # not a unit\n"
            "  requests_per_unit: 10\n"
            "  burst: 30\n");
  EXPECT_EQ(Text("{domain: d, descriptors: [\n  {key: a,\n   value: b}]}", {{"a", "b"}}),
            "{key: a,\n value: b}\n");
  EXPECT_THAT(Text(kFile, {{.key = "nobody"}}),
              "NOT_FOUND: the document has no rule \"nobody\" at level 1");
}

TEST(RuleEdit, ItsOwnTextPutAgainChangesNothing) {
  for (const Path& path : {kGold, kSearch, Path{{.key = "api_key"}}, Path{{"remote_address"}}}) {
    EXPECT_EQ(Put(kFile, path, Text(kFile, path)), kFile);
  }
}

TEST(RuleEdit, TakesTheIndentationOfItsNeighbours) {
  EXPECT_EQ(Put("domain: d\ndescriptors:\n- key: a\n  rate_limit:\n     unit: day\n",
                {{.key = "b"}, {.key = "c"}}, "rate_limit: {unit: day}"),
            "domain: d\ndescriptors:\n- key: a\n  rate_limit:\n     unit: day\n"
            "- key: b\n  descriptors:\n  - key: c\n    rate_limit:\n       unit: day\n");
  EXPECT_EQ(Put("domain: d\ndescriptors:\n    -   key: a\n", {{.key = "b"}}, "shadow_mode: true"),
            "domain: d\ndescriptors:\n    -   key: a\n    -   key: b\n        shadow_mode: true\n");
}

TEST(RuleEdit, KeepsCrLfAndAMissingEndOfLine) {
  EXPECT_EQ(Put("domain: d\r\ndescriptors:\r\n  - key: a # x\r\n", {{.key = "b"}}, "{}"),
            "domain: d\r\ndescriptors:\r\n  - key: a # x\r\n  - key: b\r\n");
  EXPECT_EQ(Put("domain: d\ndescriptors:\n  - key: a", {{.key = "b"}}, "shadow_mode: true"),
            "domain: d\ndescriptors:\n  - key: a\n  - key: b\n    shadow_mode: true");
  EXPECT_EQ(Remove("domain: d\ndescriptors:\n  - key: a\n  - key: b", {{.key = "b"}}),
            "domain: d\ndescriptors:\n  - key: a");
}

TEST(RuleEdit, MakesTheFirstListOfADocument) {
  const std::string rule = "  - key: a\n    rate_limit:\n      unit: day\n";
  for (const std::string_view list : {"descriptors: []", "descriptors:", "descriptors: ~"}) {
    EXPECT_EQ(Put(fmt::format("domain: d\n{}  # none\nall_or_nothing: true\n", list),
                  {{.key = "a"}}, "rate_limit: {unit: day}"),
              fmt::format("domain: d\ndescriptors:  # none\n{}all_or_nothing: true\n", rule));
  }
  EXPECT_EQ(Put("domain: d", {{.key = "a"}}, "rate_limit: {unit: day}"),
            "domain: d\ndescriptors:\n  - key: a\n    rate_limit:\n      unit: day");
  EXPECT_EQ(Put("{domain: d}", {{.key = "a"}}, "rate_limit: {unit: day}"),
            "{domain: d, descriptors: [{key: a, rate_limit: {unit: day}}]}");
}

TEST(RuleEdit, EditsJson) {
  constexpr std::string_view kJson = R"({
  "domain": "d",
  "descriptors": [
    {"key": "a", "rate_limit": {"unit": "day", "requests_per_unit": 1}},
    {
      "key": "b",
      "rate_limit": {
        "unit": "day",
        "requests_per_unit": 2
      }
    }
  ]
}
)";
  EXPECT_EQ(Put(kJson, {{.key = "b"}}, R"({"rate_limit": {"unit": "hour"}})"),
            Replaced(kJson, "\"day\",\n        \"requests_per_unit\": 2\n", "\"hour\"\n"));
  EXPECT_EQ(Put(kJson, {{.key = "b"}},
                R"({"rate_limit": {"unit": "day", "requests_per_unit": 2, "name": "n"}})"),
            Replaced(kJson, "_unit\": 2\n", "_unit\": 2,\n        \"name\": \"n\"\n"));
  EXPECT_EQ(Put(kJson, {{"c", "x\"y"}}, "rate_limit: {unit: day}"),
            Replaced(kJson, "    }\n  ]",
                     "    },\n    {\"key\": \"c\", \"value\": \"x\\\"y\", \"rate_limit\": "
                     "{\"unit\": \"day\"}}\n  ]"));
  EXPECT_EQ(Remove(kJson, {{.key = "b"}}),
            "{\n  \"domain\": \"d\",\n  \"descriptors\": [\n"
            "    {\"key\": \"a\", \"rate_limit\": {\"unit\": \"day\", \"requests_per_unit\": 1}}\n"
            "  ]\n}\n");
  EXPECT_EQ(Remove(kJson, {{.key = "a"}}),
            Replaced(kJson,
                     "    {\"key\": \"a\", \"rate_limit\": {\"unit\": \"day\", "
                     "\"requests_per_unit\": 1}},\n",
                     ""));
}

TEST(RuleEdit, EditsListsInBracesWithCommentsAndTrailingCommas) {
  constexpr std::string_view kFlow =
      "domain: d\n"
      "descriptors: [\n"
      "  {key: a},  # about a\n"
      "  # about b\n"
      "  {key: b},  # too\n"
      "]\n";
  EXPECT_EQ(Put(kFlow, {{.key = "c"}}, "{}"),
            Replaced(kFlow, "  # too\n", "  # too\n  {key: c},\n"));
  EXPECT_EQ(Remove(kFlow, {{.key = "b"}}),
            "domain: d\ndescriptors: [\n  {key: a},  # about a\n]\n");
  EXPECT_EQ(Remove("{descriptors: [{key: a}, {key: b}, {key: c}], domain: d}", {{.key = "b"}}),
            "{descriptors: [{key: a}, {key: c}], domain: d}");
  EXPECT_EQ(Remove("{descriptors: [{key: a}, {key: b}], domain: d}", {{.key = "b"}}),
            "{descriptors: [{key: a}], domain: d}");
}

TEST(RuleEdit, EditsOneOfSeveralLimits) {
  constexpr std::string_view kLimits =
      "domain: d\n"
      "descriptors:\n"
      "- key: a\n"
      "  rate_limits:\n"
      "  - {period: 1s, requests_per_unit: 10}   # a second\n"
      "  - period: hour                          # an hour\n"
      "    requests_per_unit: 1000\n";
  EXPECT_EQ(Put(kLimits, {{.key = "a"}},
                "rate_limits: [{period: 1s, requests_per_unit: 10}, "
                "{period: hour, requests_per_unit: 2000}]"),
            Replaced(kLimits, "1000", "2000"));
  EXPECT_EQ(Put(kLimits, {{.key = "a"}}, "rate_limits: [{period: hour, requests_per_unit: 1000}]"),
            Replaced(kLimits, "  - {period: 1s, requests_per_unit: 10}   # a second\n", ""));
  EXPECT_EQ(Put(kLimits, {{.key = "a"}}, "rate_limit: {unit: day, requests_per_unit: 1}"),
            "domain: d\ndescriptors:\n- key: a\n  rate_limit:\n    unit: day\n"
            "    requests_per_unit: 1\n");
}

TEST(RuleEdit, ReplacesTheRulesBelowIfAsked) {
  EXPECT_EQ(Put(kFile, {{.key = "api_key"}},
                "rate_limit: {unit: minute, requests_per_unit: 100}\n"
                "descriptors:\n"
                "- {key: path, value: /a}\n"
                "- {key: path, value: /search, rate_limit: {period: 20s, requests_per_unit: 10, "
                "burst: 31}}\n"
                "- {key: path, value: /b}\n"),
            Replaced(Replaced(kFile, "      # Search is",
                              "      - key: path\n        value: /a\n      # Search is"),
                     "          burst: 30\n",
                     "          burst: 31\n      - key: path\n        value: /b\n"));
}

TEST(RuleEdit, ReplacesTextsOfWholeLines) {
  constexpr std::string_view kText =
      "domain: d\n"
      "descriptors:\n"
      "  - key: a\n"
      "    metadata:\n"
      "      note: |  # kept\n"
      "        # not a comment\n"
      "        two\n"
      "\n"
      "    shadow_mode: true\n";
  EXPECT_EQ(Put(kText, {{.key = "a"}}, "metadata: {note: one}\nshadow_mode: true"),
            "domain: d\ndescriptors:\n  - key: a\n    metadata:\n      note: one\n\n"
            "    shadow_mode: true\n");
  EXPECT_EQ(Put(kText, {{.key = "a"}},
                R"({"metadata": {"note": "# not a comment\ntwo\n", "more": "a\nb"}})"),
            Replaced(Replaced(kText, "    shadow_mode: true\n", ""), "        two\n",
                     "        two\n      more: \"a\\nb\"\n"));
}

TEST(RuleEdit, QuotesWhatYamlWouldReadAsSomethingElse) {
  for (const std::string_view value :
       {"010", "yes",  "null", "~",    "",       "a: b",   "a #b",    "- a", "*x",   "&x",
        "!x",  "{a}",  "[a]",  "a,b",  "'a'",    "\"a\"",  "\\a",     " a ", "%a",   "@a",
        "`a`", "a\nb", "a\tb", "\x7f", "\u0085", "\u2028", "\uFEFFx", "é",   "漢字", "😀",
        "1e3", "=",    "<<",   "?",    "a:",     ":",      "-",       "---", "..."}) {
    const Path path{{.key = "k", .value = std::string(value)}};
    for (const std::string_view document : {"domain: d\n", "{domain: d}", "{\"domain\": \"d\"}"}) {
      const std::string text = Put(document, path, "rate_limit: {unit: day, requests_per_unit: 1}");
      const std::vector<RuleFile> files{{.name = "f", .text = text}};
      const LoadResult loaded = LoadRules(files);
      ASSERT_TRUE(loaded.ok()) << text << Describe(loaded.problems);
      EXPECT_EQ(loaded.rules->rules()[0].path, value.empty() ? "k" : fmt::format("k_{}", value))
          << text;
      EXPECT_EQ(Put(text, path, "rate_limit: {unit: day, requests_per_unit: 1}"), text);
    }
  }
}

TEST(RuleEdit, RefusesWhatWouldChangeOtherRules) {
  constexpr std::string_view kAliases =
      "domain: d\n"
      "descriptors:\n"
      "  - key: a\n"
      "    rate_limit: &limit\n"
      "      unit: day\n"
      "  - key: b\n"
      "    rate_limit: *limit\n"
      "  - &c\n"
      "    key: c\n"
      "    descriptors:\n"
      "      - *c2\n";
  const std::string document = Replaced(kAliases, "    descriptors:\n      - *c2\n", "");
  EXPECT_EQ(Put(document, {{.key = "a"}}, "rate_limit: {unit: hour}"),
            "FAILED_PRECONDITION: line 4: other parts are aliases of this one and would change "
            "too; edit the text by hand");
  EXPECT_THAT(Remove(document, {{.key = "a"}}), StartsWith("FAILED_PRECONDITION: line 4: "));
  // Another field of the same rule does not touch the anchor. An alias can be replaced.
  EXPECT_EQ(Put(document, {{.key = "a"}}, "rate_limit: {unit: day}\nshadow_mode: true"),
            Replaced(document, "unit: day\n", "unit: day\n    shadow_mode: true\n"));
  EXPECT_EQ(Put(document, {{.key = "b"}}, "rate_limit: {unit: day}"), document);
  EXPECT_EQ(Put(document, {{.key = "b"}}, "rate_limit: {unit: hour}"),
            Replaced(document, "    rate_limit: *limit\n", "    rate_limit:\n      unit: hour\n"));
  EXPECT_EQ(Put(document, {{.key = "c"}}, "shadow_mode: true"),
            document + "    shadow_mode: true\n");
}

TEST(RuleEdit, RefusesMergeKeysAndAliasesOnItsPath) {
  constexpr std::string_view kMerge =
      "domain: d\n"
      "descriptors:\n"
      "  - &a {key: a, shadow_mode: true}\n"
      "  - <<: *a\n"
      "    key: b\n"
      "  - key: c\n"
      "    descriptors: [*a]\n";
  EXPECT_THAT(Put(kMerge, {{.key = "b"}}, "{}"), HasSubstr("line 4: a rule uses a merge key"));
  EXPECT_THAT(Put(kMerge, {{.key = "a"}}, "{}"), HasSubstr("line 3: other parts are aliases"));
  EXPECT_THAT(Put(kMerge, {{.key = "c"}, {.key = "a"}}, "{}"),
              HasSubstr("line 7: this is an alias"));
  EXPECT_EQ(Put(kMerge, {{.key = "c"}}, "shadow_mode: true"),
            Replaced(kMerge, "- key: c\n", "- key: c\n    shadow_mode: true\n"));
}

TEST(RuleEdit, RefusesDuplicates) {
  constexpr std::string_view kTwice =
      "domain: d\ndescriptors:\n  - key: a\n    value: b_c\n  - key: a_b\n    value: c\n";
  EXPECT_THAT(Put(kTwice, {{"a", "b_c"}}, "{}"), HasSubstr("line 5: duplicate rule"));
  EXPECT_THAT(Put("domain: d\ndescriptors:\n  - key: a\n    value: b_c\n", {{"a_b", "c"}}, "{}"),
              HasSubstr("line 3: this rule matches the same requests as \"a_b\": \"c\""));
  EXPECT_THAT(
      Put("domain: d\ndescriptors:\n  - key: a\n    name: x\n    name: y\n", {{.key = "a"}}, "{}"),
      HasSubstr("line 5: 'name' occurs twice"));
}

TEST(RuleEdit, RefusesWrongRulesWithTheirPlace) {
  const auto problem = [](std::string_view rule) { return Put(kFile, kGold, rule); };
  EXPECT_THAT(problem("- a"), StartsWith("INVALID_ARGUMENT: 1:1: a rule is a mapping"));
  EXPECT_THAT(problem(""), StartsWith("INVALID_ARGUMENT: 1:1: the rule is empty"));
  EXPECT_THAT(problem("a: {\nb"), StartsWith("INVALID_ARGUMENT: 3:1: "));
  EXPECT_THAT(problem("a: 1\n--- {}"), StartsWith("INVALID_ARGUMENT: 2:1: "));
  EXPECT_THAT(problem("{}\n# é\n---\n"), StartsWith("INVALID_ARGUMENT: 3:1: "));
  EXPECT_THAT(problem("é: &x 1\nb: *x"), StartsWith("INVALID_ARGUMENT: 2:4: write the value"));
  EXPECT_THAT(problem("{<<: {a: 1}}"), StartsWith("INVALID_ARGUMENT: 1:2: write the fields"));
  EXPECT_THAT(problem("a: 1\na: 2"), StartsWith("INVALID_ARGUMENT: 2:1: \"a\" occurs twice"));
  EXPECT_EQ(problem("descriptors: {key: a}"),
            "INVALID_ARGUMENT: 1:14: 'descriptors' is a list of rules");
  EXPECT_EQ(problem("key: api_key\nvalue: silver"),
            "INVALID_ARGUMENT: 2:8: the rule has value \"silver\", but its path says \"gold\"");
  EXPECT_THAT(Put(kFile, {}, "{}"), StartsWith("INVALID_ARGUMENT: the path of a rule has 1 to"));
  EXPECT_THAT(Put(kFile, {{.key = ""}}, "{}"), StartsWith("INVALID_ARGUMENT: "));
  EXPECT_THAT(Put(kFile, {{.key = "\xff"}}, "{}"), StartsWith("INVALID_ARGUMENT: "));
}

TEST(RuleEdit, RefusesWhatIsNoRuleFile) {
  for (const std::string_view document :
       {"", "# nothing", "- a", "a: [", "x", "{}", "domain: d\ndescriptors: x\n",
        "domain: d\ndescriptors: []\ndescriptors: []\n", "? domain\n: d\n",
        "\xFF\xFE"
        "a"}) {
    EXPECT_THAT(Put(document, kGold, "{}"), StartsWith("FAILED_PRECONDITION: ")) << document;
  }
}

TEST(RuleEdit, KeepsTheMarksOfADocument) {
  constexpr std::string_view kMarked =
      "%YAML 1.1\n---\ndomain: d\ndescriptors:\n  - key: a\n...\n# rest\n";
  EXPECT_EQ(Put(kMarked, {{.key = "b"}}, "{}"),
            Replaced(kMarked, "key: a\n", "key: a\n  - key: b\n"));
  EXPECT_EQ(Put("\xEF\xBB\xBF# é\ndomain: é # ü\ndescriptors: [{key: a}]", {{.key = "b"}}, "{}"),
            "\xEF\xBB\xBF# é\ndomain: é # ü\ndescriptors: [{key: a}, {key: b}]");
}

TEST(RuleEdit, RemovesAFieldBehindTheDash) {
  EXPECT_EQ(Put("domain: d\ndescriptors:\n  - shadow_mode: true\n    # k\n    key: a\n",
                {{.key = "a"}}, "{}"),
            "domain: d\ndescriptors:\n  -\n    # k\n    key: a\n");
  EXPECT_EQ(Text("domain: d\ndescriptors:\n  -  # d\n    # k\n    key: a\n", {{.key = "a"}}),
            "# d\n# k\nkey: a\n");
  EXPECT_EQ(Put("domain: d\ndescriptors:\n  - shadow_mode: true\n    key: a\n", {{.key = "a"}},
                "quota_mode: true"),
            "domain: d\ndescriptors:\n  - key: a\n    quota_mode: true\n");
}

}  // namespace rule_edit_test
}  // namespace headgate::rule::edit

// All problems that a rule file can have, with their exact messages. One file because it is one
// list.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "headgate/rule/read/load.h"

namespace headgate::rule::read {
namespace load_problems_test {

std::string ProblemsOf(std::string_view text) {
  const std::vector<RuleFile> files{{.name = "f.yaml", .text = std::string(text)}};
  const LoadResult result = LoadRules(files);
  EXPECT_EQ(result.ok(), result.problems.empty());
  return Describe(result.problems);
}

// A descriptor `key: k` whose rate_limit has these words.
std::string LimitFile(std::string_view words) {
  return fmt::format("domain: d\ndescriptors:\n- key: k\n  rate_limit: {{{}}}\n", words);
}

struct Case {
  std::string_view text;
  std::string_view expected;
};

// The file begins with "domain: d\ndescriptors:\n", so the case's text begins on line 3.
class BadDescriptors : public ::testing::TestWithParam<Case> {};
TEST_P(BadDescriptors, AreReportedAtTheirPlaceWithAHint) {
  EXPECT_EQ(ProblemsOf(fmt::format("domain: d\ndescriptors:\n{}", GetParam().text)),
            GetParam().expected);
}

TEST(BadTimezone, IsReportedWithAHint) {
  const auto problem_of = [](std::string_view words) {
    const std::string all = ProblemsOf(LimitFile(words));
    return all.substr(0, all.find('\n'));
  };
  EXPECT_EQ(ProblemsOf(LimitFile("timezone: Europe/Berlim, requests_per_unit: 1, period: day, "
                                 "algorithm: fixed_window")),
            "f.yaml:4:26: invalid timezone 'Europe/Berlim': this system has no such time zone\n"
            "  hint: write a name of the IANA database, such as Europe/Berlin; Debian's package "
            "tzdata has them\n");
  EXPECT_EQ(problem_of("timezone: ../x, requests_per_unit: 1, period: day, "
                       "algorithm: fixed_window"),
            "f.yaml:4:26: invalid timezone '../x': no name of a time zone");
  // Neither Envoy's unit, nor other lengths, algorithms or alignments.
  for (const std::string_view words :
       {"unit: day, algorithm: fixed_window", "period: 24h, algorithm: fixed_window",
        "period: hour, algorithm: fixed_window", "period: day",
        "period: day, algorithm: sliding_window_counter",
        "period: day, algorithm: fixed_window, align: first_hit"}) {
    EXPECT_EQ(problem_of(fmt::format("timezone: UTC, requests_per_unit: 1, {}", words)),
              "f.yaml:4:26: a time zone is for a fixed_window whose period is day, week, month or "
              "year");
  }
}

INSTANTIATE_TEST_SUITE_P(
    InEnvoysWords, BadDescriptors,
    ::testing::Values(
        Case{"- value: v\n",
             "f.yaml:3:3: descriptor has empty key\n"
             "  hint: add \"key: NAME\"\n"},
        Case{"- key: ''\n",
             "f.yaml:3:8: descriptor has empty key\n"
             "  hint: add \"key: NAME\"\n"},
        Case{"- key: ~\n",
             "f.yaml:3:8: descriptor has empty key\n"
             "  hint: add \"key: NAME\"\n"},
        Case{"- key: key\n  value: val\n- key: key\n  value: val\n",
             "f.yaml:5:8: duplicate descriptor composite key 'd.key_val'\n"
             "  hint: it is in f.yaml:3:8 too; put both into one descriptor\n"},
        Case{"- key: key_val\n- key: key\n  value: val\n",
             "f.yaml:4:8: duplicate descriptor composite key 'd.key_val'\n"
             "  hint: it is in f.yaml:3:8 too; put both into one descriptor\n"},
        Case{"- key: a\n  descriptors:\n  - key: b\n    value: v\n  - key: b\n    value: v\n",
             "f.yaml:7:10: duplicate descriptor composite key 'd.a.b_v'\n"
             "  hint: it is in f.yaml:5:10 too; put both into one descriptor\n"},
        Case{"- key: k\n  rate_limit: {unit: foo, requests_per_unit: 1}\n",
             "f.yaml:4:22: invalid rate limit unit 'foo'\n"
             "  hint: unit: second, minute, hour, day, week, month or year; other lengths as "
             "period: 20s\n"},
        Case{"- key: k\n  rate_limit: {unit: minutes, requests_per_unit: 1}\n",
             "f.yaml:4:22: invalid rate limit unit 'minutes'\n"
             "  hint: did you mean 'minute'?\n"},
        Case{"- key: k\n  rate_limit: {unit: unknown, requests_per_unit: 1}\n",
             "f.yaml:4:22: invalid rate limit unit 'unknown'\n"
             "  hint: unit: second, minute, hour, day, week, month or year; other lengths as "
             "period: 20s\n"},
        Case{"- key: k\n  rate_limit: {requests_per_unit: 1}\n",
             "f.yaml:4:15: invalid rate limit unit ''\n"
             "  hint: unit: second, minute, hour, day, week, month or year; other lengths as "
             "period: 20s\n"},
        Case{"- key: k\n  rate_limit: {unlimited: true, unit: day}\n",
             "f.yaml:4:39: should not specify rate limit unit when unlimited\n"
             "  hint: leave out unit, or unlimited\n"},
        Case{"- key: k\n  rate_limit: {unit: day, requests_per_unit: 1, replaces: [{}]}\n",
             "f.yaml:4:60: should not have an empty replaces entry\n"
             "  hint: write the name of another rule: \"- name: …\"\n"},
        Case{"- key: k\n  rate_limit: {unit: day, requests_per_unit: 1, name: n, replaces: [{name: "
             "n}]}\n",
             "f.yaml:4:76: replaces should not contain name of same descriptor\n"
             "  hint: name another rule, or leave the entry out\n"},
        Case{"- key: k\n  ratelimit: {unit: day}\n",
             "f.yaml:4:3: config error, unknown key 'ratelimit'\n"
             "  hint: did you mean 'rate_limit'?\n"},
        Case{"- key: k\n  rate_limit: {unit: day, requests: 1}\n",
             "f.yaml:4:37: requests belongs to algorithm: concurrency\n"
             "  hint: did you mean 'requests_per_unit'?\n"},
        Case{"- key: k\n  colour: blue\n",
             "f.yaml:4:3: config error, unknown key 'colour'\n"
             "  hint: see docs/reference/rules.md for the words of a rule file\n"},
        Case{"- key: k\n  0.25: x\n",
             "f.yaml:4:3: config error, key is not of type string: 0.25\n"
             "  hint: keys are text; put the key in quotes if it is meant as text\n"},
        Case{"- key: k\n  yes: x\n",
             "f.yaml:4:3: config error, key is not of type string: true\n"
             "  hint: keys are text; put the key in quotes if it is meant as text\n"},
        Case{"- key: k\n  ? [a, 0x10]\n  : x\n",
             "f.yaml:4:5: config error, key is not of type string: [a 16]\n"
             "  hint: keys are text; put the key in quotes if it is meant as text\n"},
        Case{"- a\n- key: k\n",
             "f.yaml:3:3: config error, yaml file contains list of type other than map: a\n"
             "  hint: each item of a list is a mapping, such as \"- key: api_key\"\n"},
        Case{"- key: k\n  descriptors: [~]\n",
             "f.yaml:4:17: config error, yaml file contains list of type other than map: <nil>\n"
             "  hint: each item of a list is a mapping, such as \"- key: api_key\"\n"},
        Case{"- key: k\n  rate_limit: {unit: day, requests_per_unit: 0.5}\n",
             "f.yaml:4:46: error checking config: requests_per_unit is 0.5, a fraction or a number "
             "that is too large\n"
             "  hint: write a whole number, and a longer unit or period for less than one: 1 with "
             "period: 2s is half of "
             "one a second\n"},
        Case{"- key: k\n  rate_limit: {unit: day, requests_per_unit: 1, burst: 0.5}\n",
             "f.yaml:4:56: error checking config: burst is 0.5, a fraction or a number that is too "
             "large\n"
             "  hint: write a whole number\n"},
        Case{"- key: k\n  rate_limit: {unit: day, requests_per_unit: 9223372036854775808}\n",
             "f.yaml:4:46: error checking config: requests_per_unit is 9223372036854775808, a "
             "fraction or a number that "
             "is "
             "too large\n"
             "  hint: write a whole number, and a longer unit or period for less than one: 1 with "
             "period: 2s is half of "
             "one a second\n"},
        Case{"- key: k\n  value: 1.5\n",
             "f.yaml:4:10: error checking config: value is 1.5, a fraction or a number that is too "
             "large\n"
             "  hint: put the value in quotes if it is meant as text\n"},
        Case{"- key: k\n  value: v\n  share_threshold: true\n",
             "f.yaml:5:20: share_threshold can only be used with wildcard values (containing '*'), "
             "but found key 'k_v'\n"
             "  hint: without a '*' there is nothing to share; leave it out\n"},
        Case{"- key: k\n  rate_limit_fields: opneai\n",
             "f.yaml:4:22: invalid rate_limit_fields 'opneai'\n"
             "  hint: one of all, draft, draft-7, draft-6, draft-3, github, twitter, openai, "
             "anthropic or none\n"},
        Case{"- key: k\n  quota_unit: token\n",
             "f.yaml:4:15: invalid quota_unit 'token'\n  hint: did you mean 'tokens'?\n"},
        Case{"- key: k\n  refusal: {body: '${x}'}\n",
             "f.yaml:4:19: body has an unknown placeholder \"x\"\n"
             "  hint: the placeholders are ${limit}, ${seconds} and ${rule}; $${ stands for ${ "
             "itself\n"},
        Case{"- key: k\n  refusal: no\n",
             "f.yaml:4:12: refusal is not a mapping\n"
             "  hint: refusal: {content_type: application/json, body: "
             "'{\"retry_after\":${seconds}}'}\n"},
        Case{"- key: k\n  rate_limit: {unit: day, requests_per_unit: 1, quota_unit: tokens}\n",
             "f.yaml:4:49: config error, misplaced key 'quota_unit'\n"
             "  hint: 'quota_unit' belongs in a descriptor, next to its key\n"},
        Case{"- key: k\n  metadata: {a: .nan}\n",
             "f.yaml:4:13: error parsing metadata: .nan is no number in JSON\n"
             "  hint: metadata must be convertible to a JSON object\n"},
        Case{"- key: k\n  metadata: [a]\n",
             "f.yaml:4:13: error loading config file: yaml: unmarshal errors: line 4: cannot "
             "unmarshal !!seq into "
             "map[string]interface {}\n"
             "  hint: 'metadata' is a mapping\n"},
        Case{
            "- key: k\n  rate_limit: {unit: day, requests_per_unit: '10'}\n",
            "f.yaml:4:46: error loading config file: yaml: unmarshal errors: line 4: cannot "
            "unmarshal !!str `10` into "
            "uint32\n"
            "  hint: 'requests_per_unit' is a whole number from 0 to 4294967295, without quotes\n"},
        Case{
            "- key: k\n  rate_limit: {unit: day, requests_per_unit: -1}\n",
            "f.yaml:4:46: error loading config file: yaml: unmarshal errors: line 4: cannot "
            "unmarshal !!int `-1` into "
            "uint32\n"
            "  hint: 'requests_per_unit' is a whole number from 0 to 4294967295, without quotes\n"},
        Case{
            "- key: k\n  rate_limit: {unit: day, requests_per_unit: 4294967296}\n",
            "f.yaml:4:46: error loading config file: yaml: unmarshal errors: line 4: cannot "
            "unmarshal !!int "
            "`4294967296` "
            "into uint32\n"
            "  hint: 'requests_per_unit' is a whole number from 0 to 4294967295, without quotes\n"},
        Case{"- key: k\n  shadow_mode: 'true'\n",
             "f.yaml:4:16: error loading config file: yaml: unmarshal errors: line 4: cannot "
             "unmarshal !!str `true` "
             "into "
             "bool\n"
             "  hint: 'shadow_mode' is true or false, without quotes\n"},
        Case{"- key: k\n  shadow_mode: certainly not\n",
             "f.yaml:4:16: error loading config file: yaml: unmarshal errors: line 4: cannot "
             "unmarshal !!str "
             "`certain...` "
             "into bool\n"
             "  hint: 'shadow_mode' is true or false, without quotes\n"},
        Case{"- key: {domain: x}\n",
             "f.yaml:3:8: error loading config file: yaml: unmarshal errors: line 3: cannot "
             "unmarshal !!map into "
             "string\n"
             "  hint: 'key' is one text\n"},
        Case{"- key: {colour: x}\n",
             "f.yaml:3:9: config error, unknown key 'colour'\n"
             "  hint: see docs/reference/rules.md for the words of a rule file\n"},
        Case{"- key: [x]\n",
             "f.yaml:3:9: config error, yaml file contains list of type other than map: x\n"
             "  hint: each item of a list is a mapping, such as \"- key: api_key\"\n"},
        Case{"- key: k\n  rate_limit: 10\n",
             "f.yaml:4:15: error loading config file: yaml: unmarshal errors: line 4: cannot "
             "unmarshal !!int `10` into "
             "config.YamlRateLimit\n"
             "  hint: 'rate_limit' is a mapping: unit, requests_per_unit, …\n"},
        Case{"- key: k\n  descriptors: {key: x}\n",
             "f.yaml:4:16: error loading config file: yaml: unmarshal errors: line 4: cannot "
             "unmarshal !!map into "
             "[]config.YamlDescriptor\n"
             "  hint: 'descriptors' is a list: begin each item with \"- \"\n"},
        Case{"- key: !!int k\n",
             "f.yaml:3:8: error loading config file: yaml: cannot decode `k` as its tag says\n"
             "  hint: leave out the tag\n"}));

INSTANTIATE_TEST_SUITE_P(
    InOurWords, BadDescriptors,
    ::testing::Values(
        Case{"- key: k\n  burst: 5\n  rate_limit: {unit: day, requests_per_unit: 1}\n",
             "f.yaml:4:3: config error, misplaced key 'burst'\n"
             "  hint: 'burst' belongs under rate_limit\n"},
        Case{"- key: k\n  rate_limits: []\n",
             "f.yaml:4:16: rate_limits has 0 limits; it may have 1 to 16\n"
             "  hint: leave rate_limits out if there is no limit\n"},
        Case{"- key: k\n  rate_limits: [ten]\n",
             "f.yaml:4:17: config error, yaml file contains list of type other than map: ten\n"
             "  hint: each item of a list is a mapping, such as \"- key: api_key\"\n"},
        Case{"- key: k\n  rate_limit: {unit: day, requests_per_unit: 1}\n  rate_limits: [{unit: "
             "day, "
             "requests_per_unit: 1}]\n",
             "f.yaml:5:16: should not specify both rate_limit and rate_limits\n"
             "  hint: move the one limit into the list\n"},
        Case{"- key: k\n  rate_limits: [{unlimited: true}]\n",
             "f.yaml:4:29: unlimited cannot be one of several limits\n"
             "  hint: use rate_limit with unlimited: true, without rate_limits\n"},
        Case{"- key: k\n  rate_limits: [{unit: day, requests_per_unit: 1, name: a}, {unit: hour, "
             "requests_per_unit: 1, name: b}]\n",
             "f.yaml:4:102: the rule has another name already: 'a'\n"
             "  hint: all limits of one rule share one name\n"},
        Case{"- key: k\n  rate_limits: [{unit: day, requests_per_unit: 1, sharing: exact}, {unit: "
             "hour, "
             "requests_per_unit: 1, "
             "sharing: leased}]\n",
             "f.yaml:4:112: sharing differs from that of another limit of this rule\n"
             "  hint: all limits of a rule share one value\n"}));

// The words are in braces that begin on line 4, column 15, so the first word is in column 16.
class BadLimits : public ::testing::TestWithParam<Case> {};
TEST_P(BadLimits, AreReportedAtTheirPlaceWithAHint) {
  EXPECT_EQ(ProblemsOf(LimitFile(GetParam().text)), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(
    InOurWords, BadLimits,
    ::testing::Values(
        Case{"unit: day, requests_per_unit: 9, block: 1m, count: {status: [401]}",
             "f.yaml:4:56: block does not go with count, nor with a cost by size\n"
             "  hint: requests in progress count for more than they may cost in the end, and a "
             "denial "
             "because of them is no violation; block by a limit without them\n"},
        Case{"unit: day, period: 20s, requests_per_unit: 1",
             "f.yaml:4:35: should not specify both unit and period\n"
             "  hint: leave out one of them\n"},
        Case{"period: 20, requests_per_unit: 1",
             "f.yaml:4:24: invalid period: \"20\" is not a duration: the unit is missing; use ns, "
             "us, "
             "ms, s, m, h or d, as in 20s\n"
             "  hint: a period is a unit (minute, month, …) or a duration such as 20s\n"},
        Case{"period: fortnight, requests_per_unit: 1",
             "f.yaml:4:24: invalid period: \"fortnight\" is not a period: write second, minute, "
             "hour, "
             "day, week, month, "
             "year "
             "or a duration such as 20s\n"
             "  hint: a period is a unit (minute, month, …) or a duration such as 20s\n"},
        Case{"period: 0s, requests_per_unit: 1",
             "f.yaml:4:24: the period must be longer than 0\n"
             "  hint: docs/reference/rules.md lists the words that can be combined\n"},
        Case{"burst: 5, requests_per_unit: 1",
             "f.yaml:4:15: invalid rate limit unit ''\n"
             "  hint: unit: second, minute, hour, day, week, month or year; other lengths as "
             "period: 20s\n"},
        Case{"unit: day, requests_per_unit: 1, algorithm: tokn_bucket",
             "f.yaml:4:60: invalid algorithm 'tokn_bucket'\n"
             "  hint: did you mean 'token_bucket'?\n"},
        Case{"unit: day, requests_per_unit: 1, algorithm: magic",
             "f.yaml:4:60: invalid algorithm 'magic'\n"
             "  hint: one of token_bucket, gcra, leaky_bucket, fixed_window, "
             "sliding_window_counter, "
             "sliding_window_log, concurrency\n"},
        Case{"unit: day, requests_per_unit: 1, algorithm: concurency",
             "f.yaml:4:60: invalid algorithm 'concurency'\n"
             "  hint: did you mean 'concurrency'?\n"},
        Case{"unit: day, requests_per_unit: 1, burst: 0",
             "f.yaml:4:56: burst must be 1 or more (0 is for a queue that holds nobody)\n"
             "  hint: docs/reference/rules.md lists the words that can be combined\n"},
        Case{"unit: day, requests_per_unit: 1, burst: many",
             "f.yaml:4:56: error loading config file: yaml: unmarshal errors: line 4: cannot "
             "unmarshal !!str `many` "
             "into "
             "uint64\n"
             "  hint: 'burst' is a whole number from 0 to 9223372036854775807, without quotes\n"},
        Case{"unit: day, requests_per_unit: 1, burst: 5, algorithm: fixed_window",
             "f.yaml:4:56: burst has no meaning for fixed_window: a window's size is its requests\n"
             "  hint: docs/reference/rules.md lists the words that can be combined\n"},
        Case{"unit: day, requests_per_unit: 1, align: first_hit",
             "f.yaml:4:56: only fixed_window can be aligned to its first hit or to the calendar, "
             "not token_bucket\n"
             "  hint: docs/reference/rules.md lists the words that can be combined\n"},
        Case{"unit: day, requests_per_unit: 1, algorithm: fixed_window, align: epoc",
             "f.yaml:4:81: invalid align 'epoc'\n"
             "  hint: did you mean 'epoch'?\n"},
        Case{"unit: day, requests_per_unit: 1, count_denied: true",
             "f.yaml:4:63: count_denied belongs to fixed_window and sliding_window_counter, not "
             "token_bucket\n"
             "  hint: docs/reference/rules.md lists the words that can be combined\n"},
        Case{"unit: day, requests_per_unit: 1, queue: true, overdraw: true",
             "f.yaml:4:72: a queue cannot be overdrawn: each request waits for its turn\n"
             "  hint: docs/reference/rules.md lists the words that can be combined\n"},
        Case{"unit: day, requests_per_unit: 1, block: 500ms",
             "f.yaml:4:56: invalid block: a block lasts whole seconds, from 1s to 365d, not 500ms\n"
             "  hint: a duration such as 10m, or up to 6 that do not get shorter: [1m, 10m, 1h]\n"},
        Case{"unit: day, requests_per_unit: 1, block: [1h, 10m]",
             "f.yaml:4:56: invalid block: 10m is shorter than the block before it\n"
             "  hint: a duration such as 10m, or up to 6 that do not get shorter: [1m, 10m, 1h]\n"},
        Case{"unit: day, requests_per_unit: 1, overdraw: true, block: 10m",
             "f.yaml:4:72: block and overdraw contradict each other: an overdrawn bucket denies "
             "until time has paid for it\n"
             "  hint: docs/reference/rules.md lists the words that can be combined\n"},
        Case{"algorithm: concurrency, requests: 3, ttl: 30s, block: 10m",
             "f.yaml:4:70: block does not apply to concurrency\n"
             "  hint: leave it out, as in rate_limit: {algorithm: concurrency, requests: 20, ttl: "
             "30s}\n"},
        Case{"unit: day, requests_per_unit: 1, algorithm: fixed_window, queue: true",
             "f.yaml:4:81: queue belongs to leaky_bucket, not fixed_window\n"
             "  hint: docs/reference/rules.md lists the words that can be combined\n"},
        Case{"unit: day, requests_per_unit: 1, max_delay: 5s",
             "f.yaml:4:60: max_delay is for queues only: the longest time that a request may wait\n"
             "  hint: docs/reference/rules.md lists the words that can be combined\n"},
        Case{
            "unit: day, requests_per_unit: 1, queue: true, max_delay: soon",
            "f.yaml:4:73: invalid max_delay: \"soon\" is not a duration: a number must come before "
            "each unit, as in 20s "
            "or "
            "1h30m\n"
            "  hint: a duration is a number with a unit, such as 500ms, 20s or 1h30m\n"},
        Case{"unit: day, requests_per_unit: 200000, algorithm: sliding_window_log",
             "f.yaml:4:46: sliding_window_log keeps every hit, so at most 100000 requests, not "
             "200000; "
             "sliding_window_counter has no such bound\n"
             "  hint: docs/reference/rules.md lists the words that can be combined\n"},
        Case{"period: 14000d, requests_per_unit: 1, algorithm: fixed_window",
             "f.yaml:4:24: a window lasts at most 36 years\n"
             "  hint: docs/reference/rules.md lists the words that can be combined\n"},
        Case{"unlimited: true, burst: 5",
             "f.yaml:4:40: should not specify burst when unlimited\n"
             "  hint: leave out burst, or unlimited\n"},
        Case{"unit: day, requests_per_unit: 1, sharing: eager",
             "f.yaml:4:58: invalid sharing 'eager'\n"
             "  hint: one of exact, leased, strict\n"},
        Case{"unit: day, requests_per_unit: 1, sharing: exact, strict: true",
             "f.yaml:4:73: strict: true contradicts sharing\n"
             "  hint: leave out one of them\n"},
        Case{"unit: day, requests_per_unit: 1, sharing: leased, strict: lock",
             "f.yaml:4:74: strict: lock contradicts sharing\n"
             "  hint: leave out one of them\n"},
        Case{"unit: day, requests_per_unit: 1, strict: lock, on_store_failure: local",
             "f.yaml:4:81: on_store_failure contradicts strict: lock, which refuses what it cannot "
             "decide\n"
             "  hint: leave out on_store_failure, or strict: lock\n"},
        Case{"unit: day, requests_per_unit: 1, strict: locked",
             "f.yaml:4:57: error loading config file: yaml: unmarshal errors: line 4: cannot "
             "unmarshal !!str `locked` into bool\n"
             "  hint: 'strict' is true, false or lock, without quotes\n"},
        Case{"unit: day, requests_per_unit: 1, on_store_failure: alow",
             "f.yaml:4:67: invalid on_store_failure 'alow'\n"
             "  hint: did you mean 'allow'?\n"},
        Case{"unit: day, requests_per_unit: 1, fallback_share: 1.5",
             "f.yaml:4:65: invalid fallback_share '1.5'\n"
             "  hint: the share of the limit that one machine may use alone: above 0, at most 1, "
             "such as 0.25\n"}));

struct FileCase {
  std::string text;
  std::string_view expected;
};
class BadFiles : public ::testing::TestWithParam<FileCase> {};
TEST_P(BadFiles, AreRefusedWithTheReason) {
  EXPECT_EQ(ProblemsOf(GetParam().text), GetParam().expected);
}

constexpr std::string_view kNoDomain =
    "f.yaml:1:1: config file cannot have empty domain\n  hint: begin the file with \"domain: "
    "NAME\"\n";

INSTANTIATE_TEST_SUITE_P(
    Domain, BadFiles,
    ::testing::Values(
        FileCase{"", kNoDomain}, FileCase{"# nothing\n", kNoDomain}, FileCase{"~", kNoDomain},
        FileCase{"descriptors: []\n", kNoDomain},
        FileCase{"domain: \n",
                 "f.yaml:1:8: config file cannot have empty domain\n"
                 "  hint: begin the file with \"domain: NAME\"\n"},
        FileCase{"text",
                 "f.yaml:1:1: error loading config file: yaml: unmarshal errors: line "
                 "1: cannot unmarshal !!str "
                 "`text` into map[interface {}]interface {}\n"
                 "  hint: begin the file with \"domain: NAME\"\n"},
        FileCase{"- domain: x\n",
                 "f.yaml:1:1: error loading config file: yaml: unmarshal errors: line "
                 "1: cannot unmarshal !!seq "
                 "into map[interface {}]interface {}\n"
                 "  hint: begin the file with \"domain: NAME\"\n"},
        FileCase{"domain: " + std::string(4097, 'x'),
                 "f.yaml:1:9: domain is longer than 4096 bytes\n"
                 "  hint: use a shorter one, or a pattern with '*'\n"},
        FileCase{"domain: d\nall_or_nothing: 1\n",
                 "f.yaml:2:17: error loading config file: yaml: unmarshal errors: line "
                 "2: cannot unmarshal !!int "
                 "`1` into bool\n"
                 "  hint: 'all_or_nothing' is true or false, without quotes\n"}));

// "a: &a [x, x]", "b: &b [*a, *a]", …: a few lines expand to 2^depth texts.
std::string AliasBomb(int depth) {
  std::string text = "domain: d\nl0: &l0 [x, x]\n";
  for (int i = 1; i < depth; ++i)
    text += fmt::format("l{}: &l{} [*l{}, *l{}]\n", i, i, i - 1, i - 1);
  return text;
}

std::string MergeBomb(int depth) {
  std::string text = "l0: &l0 {a: 1, b: 2}\n";
  for (int i = 1; i < depth; ++i)
    text += fmt::format("l{}: &l{} {{<<: [*l{}, *l{}]}}\n", i, i, i - 1, i - 1);
  return text;
}

std::string Repeated(std::string_view text, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += text;
  return out;
}

constexpr std::string_view kYamlHint =
    "the file is not valid YAML; check this line and the lines above it";
constexpr std::string_view kTooMany =
    "error loading config file: yaml: document contains excessive aliasing or more than 4000000 "
    "values";
constexpr std::string_view kTooDeep =
    "error loading config file: yaml: document is nested deeper than 100 levels";

struct YamlCase {
  std::string text;
  std::string place;
  std::string_view expected;
  std::string_view hint = kYamlHint;
};
class InvalidYaml : public ::testing::TestWithParam<YamlCase> {};
TEST_P(InvalidYaml, IsRefusedWithTheReason) {
  EXPECT_EQ(ProblemsOf(GetParam().text),
            fmt::format("f.yaml:{}: {}\n  hint: {}\n", GetParam().place, GetParam().expected,
                        GetParam().hint));
}

INSTANTIATE_TEST_SUITE_P(
    Syntax, InvalidYaml,
    ::testing::Values(
        YamlCase{"domain: d\ndescriptors: [\n", "3:1",
                 "error loading config file: yaml: did not find expected node content"},
        YamlCase{"domain: \"d\n", "2:1",
                 "error loading config file: yaml: found unexpected end of stream"},
        YamlCase{"domain: d\n\tkey: x\n", "2:1",
                 "error loading config file: yaml: found a tab character that violates indentation",
                 "YAML is indented with spaces: replace the tab"},
        YamlCase{"domain: d\n  key: x\n", "2:6",
                 "error loading config file: yaml: mapping values are not allowed in this context",
                 "a text with a colon and a space needs quotes; or this line is indented too far"},
        YamlCase{"domain: *nobody\n", "1:9",
                 "error loading config file: yaml: unknown anchor 'nobody' referenced",
                 "a text that begins with * needs quotes: \"*\""},
        YamlCase{"domain: &d [*d]\n", "1:13",
                 "error loading config file: yaml: anchor 'd' value contains itself"},
        YamlCase{"domain: {<<: 5}\n", "1:14",
                 "error loading config file: yaml: map merge requires map or sequence of maps as "
                 "the value"},
        YamlCase{"domain: d\nkey: \xff\n", "2:6",
                 "error loading config file: yaml: invalid leading UTF-8 octet",
                 "save the file in the encoding UTF-8"},
        YamlCase{std::string("domain: d\0", 10), "1:10",
                 "error loading config file: yaml: control characters are not allowed",
                 "remove this character"}));

// One test with all of them: as parameters, every run of this binary would make these texts.
TEST(YamlBomb, IsRefusedWithTheReason) {
  const std::vector<YamlCase> bombs{
      {AliasBomb(30), "22:6", kTooMany},
      {MergeBomb(30), "20:6", kTooMany},
      {Repeated("[", 1'000'000), "1:101", kTooDeep},
      {"a: " + Repeated("{a: ", 100'000), "1:400", kTooDeep},
      {Repeated("- ", 100'000), "1:201", kTooDeep},
      {Repeated("? ", 100'000), "1:201", kTooDeep},
      // Each level is shallow by itself; the alias makes the tree deep.
      {"a: &a " + Repeated("[", 60) + Repeated("]", 60) + "\nb: " + Repeated("[", 60) + "*a" +
           Repeated("]", 60) + "\n",
       "2:23", kTooDeep},
      {"[" + Repeated("a,", 4'000'001) + "]", "1:8000000", kTooMany},
      {std::string((size_t{64} << 20) + 1, ' '), "1:1",
       "error loading config file: yaml: 67108865 bytes are more than 67108864", "split the file"}};
  for (const YamlCase& bomb : bombs) {
    EXPECT_EQ(ProblemsOf(bomb.text),
              fmt::format("f.yaml:{}: {}\n  hint: {}\n", bomb.place, bomb.expected, bomb.hint));
  }
}

TEST(LoadRules, ReportsAllProblemsOfAllFilesInTheirOrder) {
  const std::vector<RuleFile> files{
      {.name = "a.yaml",
       .text = "domain: a\ndescriptors:\n- key: k\n  rate_limit: {unit: sekond, requests_per_unit: "
               "x}\n  shadowmode: "
               "true\n"},
      {.name = "b.yaml",
       .text = "domain: b\ndescriptors:\n- key: ''\n  descriptors:\n  - vlaue: v\n"},
      {.name = "c.yaml", .text = "domain: a\n"}};
  const LoadResult result = LoadRules(files);
  EXPECT_FALSE(result.ok());
  EXPECT_EQ(Describe(result.problems),
            "a.yaml:4:22: invalid rate limit unit 'sekond'\n"
            "  hint: did you mean 'second'?\n"
            "a.yaml:4:49: error loading config file: yaml: unmarshal errors: line 4: cannot "
            "unmarshal !!str `x` into uint32\n"
            "  hint: 'requests_per_unit' is a whole number from 0 to 4294967295, without quotes\n"
            "a.yaml:5:3: config error, unknown key 'shadowmode'\n"
            "  hint: did you mean 'shadow_mode'?\n"
            "b.yaml:3:8: descriptor has empty key\n"
            "  hint: add \"key: NAME\"\n"
            "b.yaml:5:5: config error, unknown key 'vlaue'\n"
            "  hint: did you mean 'value'?\n"
            "b.yaml:5:5: descriptor has empty key\n"
            "  hint: add \"key: NAME\"\n"
            "c.yaml:1:9: duplicate domain 'a' in config file\n"
            "  hint: it is in a.yaml:1 too; put both into one file, or let files share a domain: "
            "--merge-domains, or "
            "merge_domains: "
            "yes in headgate.yaml\n");
}

TEST(LoadRules, ReportsOnceWhatAnAliasRepeats) {
  EXPECT_EQ(ProblemsOf("domain: d\ndescriptors:\n- key: a\n  rate_limit: &bad {unit: x}\n- key: "
                       "b\n  rate_limit: *bad\n"),
            "f.yaml:4:27: invalid rate limit unit 'x'\n"
            "  hint: unit: second, minute, hour, day, week, month or year; other lengths as "
            "period: 20s\n");
}

TEST(LoadRules, ReportsAHundredProblemsOfAFileAndCountsTheOthers) {
  std::string text = "domain: d\n";
  for (int i = 0; i < 250; ++i) text += fmt::format("x{}: 1\n", i);
  const std::vector<RuleFile> files{{.name = "f.yaml", .text = text}};
  const LoadResult result = LoadRules(files);
  ASSERT_EQ(result.problems.size(), 101u);
  EXPECT_EQ(Describe(result.problems[100]),
            "f.yaml:101:1: and 150 more problems\n  hint: correct these first");
  EXPECT_EQ(CountOf(result.problems), 250u);
}

TEST(LoadRules, RefusesATextThatIsNotUtf8) {
  using namespace std::string_view_literals;
  constexpr std::string_view kHint = "  hint: save the file in the encoding UTF-8\n";
  EXPECT_EQ(ProblemsOf("\xff\xfe"
                       "d\0o\0m\0a\0i\0n\0:\0 \0d\0\n\0"sv),
            fmt::format("f.yaml:1:1: error loading config file: the text is not UTF-8\n{}", kHint));
  EXPECT_EQ(ProblemsOf("domain: d\n...\n" + std::string(100'000, '#') + "\xfc\n"),
            fmt::format("f.yaml:3:100001: error loading config file: yaml: invalid leading UTF-8 "
                        "octet\n{}",
                        kHint));
  // A byte order mark of UTF-8 may stay.
  EXPECT_EQ(ProblemsOf("\xef\xbb\xbf"
                       "domain: d\n"),
            "");
}

TEST(LoadRules, ShowsControlCharactersInsteadOfSendingThem) {
  EXPECT_EQ(ProblemsOf("domain: d\n\"\\e[2J\": x\n"),
            "f.yaml:2:1: config error, unknown key '\\x1b[2J'\n"
            "  hint: see docs/reference/rules.md for the words of a rule file\n");
}

TEST(LoadRules, RefusesDescriptorsThatNoRequestReaches) {
  std::string text = "domain: d\ndescriptors: ";
  for (size_t i = 0; i < kEntriesMax + 1; ++i) text += "[{key: k, descriptors: ";
  text += "[]";
  for (size_t i = 0; i < kEntriesMax + 1; ++i) text += "}]";
  EXPECT_EQ(ProblemsOf(text),
            "f.yaml:2:750: descriptors are nested deeper than 32 levels\n"
            "  hint: no request has that many entries\n");
}

TEST(LoadRules, RefusesPathsThatTogetherAreTooLong) {
  // 31 levels of long keys, then many short ones below: each rule's path is 250 KB.
  const std::string key(4096, 'x');
  std::string file = "domain: d\ndescriptors:\n- key: &k " + key + "\n  value: *k\n  descriptors: ";
  for (int i = 0; i < 30; ++i) file += "[{key: *k, value: *k, descriptors: ";
  file += "[";
  for (int i = 0; i < 3'000; ++i) file += fmt::format("{{key: k{}}},", i);
  file += "]";
  for (int i = 0; i < 30; ++i) file += "}]";
  const std::string problems = ProblemsOf(file);
  EXPECT_THAT(problems,
              ::testing::HasSubstr("the paths of all rules are longer than 536870912 bytes\n"
                                   "  hint: use shorter keys and values, or fewer rules\n"));
  EXPECT_EQ(std::count(problems.begin(), problems.end(), '\n'), 2);
}

}  // namespace load_problems_test
}  // namespace headgate::rule::read

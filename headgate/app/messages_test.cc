// The texts of errors, word for word. Each says what was tried, with which input, and what to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "headgate/app/command_line.h"
#include "headgate/net/file_descriptor.h"

namespace headgate::app {
namespace messages_test {

using ::testing::HasSubstr;

class Messages : public ::testing::Test {
 protected:
  Messages() { std::filesystem::create_directory(directory_); }
  ~Messages() override { std::filesystem::remove_all(directory_); }

  std::string File(const std::string& name, std::string_view text) {
    const std::string path = directory_ / name;
    std::ofstream(path) << text;
    return path;
  }

  // A rule file of a domain with one descriptor.
  std::string Rules(const std::string& domain, std::string_view limit) {
    return File(domain + ".yaml", "domain: " + domain + "\ndescriptors:\n  - key: api_key\n    " +
                                      std::string(limit) + "\n");
  }

  // The output of a command on both channels, with the directory replaced by "DIR".
  std::string Say(const std::vector<std::string>& arguments) {
    std::ostringstream said;
    code_ = RunCommandLine(arguments, {.out = said, .err = said});
    std::string text = said.str();
    for (size_t at = text.find(directory_); at != std::string::npos; at = text.find(directory_)) {
      text.replace(at, directory_.string().size(), "DIR");
    }
    return text;
  }

  const std::filesystem::path directory_ = std::filesystem::temp_directory_path() /
                                           ("headgate_messages_test_" + std::to_string(::getpid()));
  int code_ = -1;
};

TEST_F(Messages, AFractionOfARequest) {
  EXPECT_EQ(Say({"validate", Rules("edge", "rate_limit: {unit: minute, requests_per_unit: 5.5}")}),
            "error: DIR/edge.yaml:4:51: error checking config: requests_per_unit is 5.5, a "
            "fraction or a number that is "
            "too large\n"
            "hint: write a whole number, and a longer unit or period for less than one: 1 with "
            "period: 2s is half of "
            "one a second\n"
            "not valid: 1 problem in 1 file\n");
}

TEST_F(Messages, MoreLimitsThanARuleHas) {
  std::string limits = "rate_limits: [";
  for (int i = 1; i <= 17; ++i)
    limits += "{unit: minute, requests_per_unit: " + std::to_string(i) + "}, ";
  EXPECT_EQ(Say({"validate", Rules("edge", limits + "]")}),
            "error: DIR/edge.yaml:4:18: rate_limits has 17 limits; it may have 1 to 16\n"
            "hint: keep the strictest ones: a rule has at most 16 limits\n"
            "not valid: 1 problem in 1 file\n");
}

TEST_F(Messages, AddressesThatAreNone) {
  constexpr std::string_view kHint =
      "hint: for example 127.0.0.1:8080, :8080 (all interfaces), [::1]:8080 or "
      "unix:/run/headgate.sock\n";
  EXPECT_EQ(Say({"serve", "--listen", "tcp://127.0.0.1:80"}),
            "error: --listen: address 'tcp://127.0.0.1:80': an address has no scheme: leave out "
            "'tcp://'\n" +
                std::string(kHint));
  EXPECT_EQ(Say({"serve", "--listen", "[::1]"}),
            "error: --listen: address '[::1]': the port is missing\n" + std::string(kHint));
}

TEST_F(Messages, AFileInTheWayOfAUnixSocket) {
  const std::string path = File("socket", "precious");
  const std::string said =
      Say({"serve", "--listen", "unix:" + path, "--admin-listen", "none", "--log-level", "error"});
  EXPECT_EQ(code_, 3);
  EXPECT_EQ(said,
            "error: cannot listen on unix:DIR/socket: Address already in use; the file there is "
            "not a socket\n"
            "hint: choose another path in a directory that exists, or remove the file if it is not "
            "needed\n");
}

TEST_F(Messages, AFlagWithoutItsValue) {
  EXPECT_EQ(Say({"serve", "--listen"}),
            "error: --listen needs a value\nhint: `headgate help serve --all` lists all flags\n");
  EXPECT_EQ(Say({"serve", "--listen", "--threads", "2"}),
            "error: --listen needs a value\nhint: `headgate help serve --all` lists all flags\n");
  EXPECT_EQ(Say({"serve", "--listen", "--threads=2"}),
            "error: --listen needs a value\nhint: `headgate help serve --all` lists all flags\n");
  EXPECT_EQ(Say({"check", "--domain"}),
            "error: --domain needs a value\nhint: `headgate help check` lists all flags\n");
}

TEST_F(Messages, AFlagThatIsGivenTwice) {
  EXPECT_EQ(Say({"check", "--domain", "a", "--domain", "b"}),
            "error: --domain is given 2 times\nhint: give it once\n");
  EXPECT_EQ(Say({"check", "--domain=a", "--domain", "b", "--domain=c"}),
            "error: --domain is given 3 times\nhint: give it once\n");
  EXPECT_EQ(Say({"sidecar", "--threads", "1", "--threads", "2"}),
            "error: --threads is given 2 times\nhint: give it once\n");
}

TEST_F(Messages, FlagsThatThereAreNot) {
  const auto hint = [&](const std::string& flag) {
    const std::string said = Say({"serve", flag, "x"});
    return said.substr(said.find("hint: "));
  };
  EXPECT_EQ(hint("--listn"), "hint: did you mean '--listen'?\n");
  EXPECT_EQ(hint("--snapshot-file"), "hint: did you mean '--snapshot'?\n");
  EXPECT_EQ(hint("--port"), "hint: did you mean '--listen'?\n");
  EXPECT_EQ(hint("--port=9090"), "hint: did you mean '--listen 127.0.0.1:9090'?\n");
  EXPECT_THAT(Say({"serve", "--port", "9090", "--threads", "1"}),
              HasSubstr("hint: did you mean '--listen 127.0.0.1:9090'?\n"));
  EXPECT_THAT(Say({"check", "--port", "80", "a=b"}), HasSubstr("hint: did you mean '--server'?\n"));
  EXPECT_EQ(hint("--foo"), "hint: `headgate help serve --all` lists all flags\n")
      << "and not '--json'";
}

TEST_F(Messages, ARuleOfNothing) {
  const std::string rules = Rules("edge", "rate_limit: {unit: minute, requests_per_unit: 0}");
  EXPECT_EQ(Say({"check", "--rules", rules, "edge", "api_key=k"}),
            "denied   api_key  limit 0: nothing passes\n");
}

TEST_F(Messages, DomainsThatSeveralFilesHave) {
  const std::string rules = Rules("edge", "rate_limit: {unit: minute, requests_per_unit: 1}");
  const std::string more = File("more.yaml", "domain: edge\n");
  EXPECT_EQ(Say({"validate", rules, more}),
            "error: DIR/more.yaml:1:9: duplicate domain 'edge' in config file\n"
            "hint: it is in DIR/edge.yaml:1 too; put both into one file, or let files share a "
            "domain: --merge-domains, "
            "or merge_domains: yes in headgate.yaml\n"
            "not valid: 1 problem in 2 files\n");
  EXPECT_EQ(Say({"validate", "--merge-domains", rules, more}), "valid: 1 rule in 2 files\n");
}

TEST_F(Messages, TheHintOfADomainInSeveralFilesWorksForServeToo) {
  const auto setting = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), "serve");
    flags.emplace_back("--print-config");
    const std::string said = Say(flags);
    const size_t at = said.find("\nmerge_domains: ");
    return at == std::string::npos ? said : said.substr(at + 16, said.find(' ', at + 16) - at - 16);
  };
  EXPECT_EQ(setting({"--merge-domains"}), "yes");
  EXPECT_EQ(setting({"--merge-domains", "--threads", "2"}), "yes");
  EXPECT_EQ(setting({"--merge-domains", "yes"}), "yes");
  EXPECT_EQ(setting({"--merge-domains", "no"}), "no");
  EXPECT_EQ(setting({"--merge-domains=no"}), "no");
  EXPECT_EQ(
      Say({"serve", "--merge-domains", "rules.yaml"}),
      "error: --merge-domains: merge_domains 'rules.yaml': write no or yes\n"
      "hint: merge_domains: Whether several rule files may contain rules for the same domain.\n");
  EXPECT_EQ(Say({"serve", "--merge-domains", "--strict-store", "--merge-domains"}),
            "error: --merge-domains is given 2 times\nhint: give it once\n");
  EXPECT_EQ(Say({"serve", "--listen", "--merge-domains"}),
            "error: --listen needs a value\nhint: `headgate help serve --all` lists all flags\n");
}

TEST_F(Messages, AFileThatIsNamedTwiceIsNoSecondFile) {
  const std::string rules = Rules("edge", "rate_limit: {unit: minute, requests_per_unit: 1}");
  EXPECT_EQ(Say({"validate", rules, rules}), "valid: 1 rule in 1 file\n");
  EXPECT_EQ(Say({"validate", directory_, rules}), "valid: 1 rule in 1 file\n");
}

TEST_F(Messages, AStarInAKnownHost) {
  constexpr std::string_view kHint =
      "hint: write a name, *.example.com for all names below it, or * for any\n";
  EXPECT_EQ(Say({"serve", "--known-host", "a*.example.com"}),
            "error: --known-host: 'a*.example.com': a * may only be the whole first label, as in "
            "*.example.com\n" +
                std::string(kHint));
  EXPECT_EQ(Say({"serve", "--known-host", "*.example.com:80"}),
            "error: --known-host: '*.example.com:80' is not a host name without a port\n" +
                std::string(kHint));
}

TEST_F(Messages, AFileThatIsNotYaml) {
  const std::string path = File("bad.yaml", "domain: d\ndescriptors: [\n");
  EXPECT_EQ(Say({"validate", path}),
            "error: DIR/bad.yaml:3:1: error loading config file: yaml: did not find expected node "
            "content\n"
            "hint: the file is not valid YAML; check this line and the lines above it\n"
            "not valid: 1 problem in 1 file\n");
  EXPECT_EQ(Say({"validate", directory_ / "gone.yaml"}),
            "error: DIR/gone.yaml: cannot be read: No such file or directory\n"
            "hint: name a rule file, or a directory of files *.yaml or *.yml\n"
            "not valid: 1 problem\n");
  const auto json = nlohmann::json::parse(Say({"validate", "--json", directory_ / "gone.yaml"}));
  EXPECT_EQ(json.at("problems").at(0).at("message"), "cannot be read: No such file or directory");
  EXPECT_TRUE(json.at("problems").at(0).at("line").is_null());
  EXPECT_EQ(json.at("problem_count"), 1);
}

TEST_F(Messages, AScenarioThatCannotBeRun) {
  EXPECT_EQ(Say({"scenario", directory_ / "gone.scenario"}),
            "error: cannot read the scenario DIR/gone.scenario: No such file or directory\n"
            "hint: name a file that can be read: headgate scenario FILE…\n");
  EXPECT_EQ(code_, 2);
  const std::string said =
      Say({"scenario", File("bad.scenario", "rule login = 1 per 10s\nat soon login:ann allow\n")});
  EXPECT_EQ(code_, 2);
  EXPECT_THAT(said, ::testing::StartsWith("error: DIR/bad.scenario:2:4: "));
  EXPECT_THAT(said, HasSubstr("\nhint: "));
}

TEST_F(Messages, ACostThatIsNoNumber) {
  for (const char* cost : {"x", "-1", "1.5", "9223372036854775808"}) {
    EXPECT_EQ(Say({"check", "--cost", cost, "a=b"}),
              "error: --cost: '" + std::string(cost) +
                  "' is not a whole number from 0 to 9223372036854775807\nhint: `headgate help "
                  "check` lists all flags\n");
  }
}

TEST_F(Messages, ADomainWithoutRules) {
  const std::string rules = Rules("edge", "rate_limit: {unit: minute, requests_per_unit: 1}");
  EXPECT_EQ(
      Say({"check", "--rules", rules, "api_key=k"}),
      "allowed  (no rule)\n"
      "hint: the domain \"default\" has no rules; choose one that has, with --domain: \"edge\"\n");
  EXPECT_EQ(Say({"check", "--rules", rules, "edge", "other=k"}),
            "allowed  (no rule)\nhint: no rule of the domain \"edge\" applies; it has rules for: "
            "api_key; `headgate explain --rules DIR/edge.yaml edge other=k` shows each step\n");
}

TEST_F(Messages, CheckAndExplainTakeTheDomainInBothWays) {
  const std::string rules = Rules("edge", "rate_limit: {requests_per_unit: 10, period: 20s}");
  for (const char* command : {"check", "explain"}) {
    const std::string first = Say({command, "--rules", rules, "edge", "api_key=k1"});
    EXPECT_EQ(code_, 0) << first;
    EXPECT_THAT(first, HasSubstr("api_key"));
    EXPECT_EQ(Say({command, "--rules", rules, "--domain", "edge", "api_key=k1"}), first);
    EXPECT_EQ(Say({command, "edge"}), "error: a descriptor is missing\nhint: headgate " +
                                          std::string(command) +
                                          " DOMAIN k=v,k=v…; quote a value that holds a comma\n");
  }
}

TEST_F(Messages, APeekSaysWhatACheckWouldAnswer) {
  const std::string rules = Rules("edge", "rate_limit: {requests_per_unit: 10, period: 20s}");
  EXPECT_EQ(Say({"check", "--rules", rules, "edge", "--peek", "api_key=k1"}),
            "would be allowed  api_key  limit 10, 9 left after it, full again in 2s\n");
  EXPECT_EQ(Say({"check", "--rules", rules, "edge", "--cost", "0", "api_key=k1"}),
            "allowed  api_key  limit 10, 10 left\n");
}

TEST_F(Messages, ManyProblemsAreAllCounted) {
  std::string text = "domain: d\n";
  for (int i = 0; i < 3000; ++i) text += "x" + std::to_string(i) + ": 1\n";
  const std::string path = File("bad.yaml", text);
  const std::string said = Say({"validate", path});
  EXPECT_THAT(said,
              ::testing::EndsWith(
                  "error: DIR/bad.yaml:101:1: and 2900 more problems\nhint: correct these first\n"
                  "not valid: 3000 problems in 1 file\n"));
  EXPECT_EQ(nlohmann::json::parse(Say({"validate", "--json", path})).at("problem_count"), 3000);
}

TEST_F(Messages, ExplainSaysTheSameAsJson) {
  const std::string rules = File(
      "r.yaml",
      "domain: edge\ndescriptors:\n  - key: api_key\n    shadow_mode: true\n    quota_mode: true\n"
      "    rate_limit: {name: per-key, unit: minute, requests_per_unit: 10, burst: 5, replaces: "
      "[{name: other}]}\n"
      "  - key: free\n    rate_limit: {unlimited: true}\n");
  const auto json =
      nlohmann::json::parse(Say({"explain", "--json", "--rules", rules, "edge", "api_key=k"}));
  EXPECT_EQ(json.at("rule"), "per-key");
  EXPECT_EQ(json.at("path"), "api_key");
  EXPECT_EQ(json.at("name"), "per-key");
  EXPECT_EQ(json.at("limits"), nlohmann::json({"10 per 1m, token_bucket, burst 5"}));
  EXPECT_EQ(json.at("shadow_mode"), true);
  EXPECT_EQ(json.at("quota_mode"), true);
  EXPECT_EQ(json.at("replaces"), nlohmann::json({"other"}));
  EXPECT_EQ(json.at("nothing_passes"), false);
  EXPECT_EQ(json.at("steps").at(0).at("matched_by_text"), "the key alone, for every value");
  EXPECT_EQ(json.at("bucket"), "edge, api_key=k");
  EXPECT_EQ(json.at("verdict"), "rule \"per-key\" applies");
  const auto free =
      nlohmann::json::parse(Say({"explain", "--json", "--rules", rules, "edge", "free=k"}));
  EXPECT_EQ(free.at("unlimited"), true);
  const std::string none = Rules("none", "rate_limit: {unit: minute, requests_per_unit: 0}");
  EXPECT_THAT(Say({"explain", "--rules", none, "none", "api_key=k"}),
              HasSubstr(": nothing passes\n"));
  const auto nothing =
      nlohmann::json::parse(Say({"explain", "--json", "--rules", none, "none", "api_key=k"}));
  EXPECT_EQ(nothing.at("nothing_passes"), true);
}

TEST_F(Messages, ValidateWarnsOfMappingsThatApplicationsReadOtherwise) {
  const std::string auth =
      File("auth.yaml",
           "trusted_proxies: [127.0.0.1]\noriginal_request: x-forwarded\nmappings:\n"
           "- {path: [/a, /a/], method: POST}\n- descriptors: [{entries: [{key: k, value: v}]}]\n");
  EXPECT_THAT(Say({"validate", "--auth", auth}),
              AllOf(HasSubstr("warning: DIR/auth.yaml:4:3: mappings[0]: "),
                    HasSubstr("X-HTTP-Method-Override"), HasSubstr("valid: 2 mappings\n")));
  const auto json = nlohmann::json::parse(Say({"validate", "--json", "--auth", auth}));
  EXPECT_EQ(json.at("valid"), true);
  EXPECT_EQ(json.at("warnings").size(), 1u);
}

TEST_F(Messages, ExplainNamesTheOutcomeOfARequest) {
  const std::string auth =
      File("auth.yaml",
           "trusted_proxies: [127.0.0.1]\noriginal_request: x-forwarded\nmappings:\n"
           "- path: /a/*\n  name: a\n  status: {missing: 403, no_rule: 404}\n  require_rule: true\n"
           "  refuse: [{header: X-Team, values: [red]}]\n"
           "  descriptors: [{entries: [{key: api_key, header: X-API-Key}]}]\n");
  const auto explain = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"explain", "--rule", "other: 1/s", "--auth", auth};
    words.insert(words.end(), more.begin(), more.end());
    return Say(words);
  };
  const std::string key = "X-API-Key: k";
  EXPECT_EQ(explain({"--request", "GET /a/x"}),
            "request GET /a/x\n  mapping a\n  header X-API-Key is missing\n"
            "  outcome missing, status 403\n");
  EXPECT_EQ(explain({"--request", "GET /a/x", "--header", key, "--header", key}),
            "request GET /a/x\n  mapping a\n"
            "  header X-API-Key is invalid: the header comes twice\n"
            "  outcome invalid, status 400\n");
  EXPECT_EQ(explain({"--request", "GET /a%2fx"}),
            "request GET /a%2fx\n  mapping a\n"
            "  the original request is invalid: an escape in the path stands for '/', '\\' or a "
            "control character, which only some servers decode\n"
            "  outcome invalid, status 400\n");
  EXPECT_THAT(explain({"--request", "GET /a/x", "--header", "X-Team: red"}),
              ::testing::EndsWith("  outcome refused, status 403\n"));
  EXPECT_THAT(explain({"--request", "GET /b"}),
              ::testing::EndsWith("  outcome unmatched, status 200\n"));
  EXPECT_THAT(explain({"--request", "GET /b HTTP/1.1"}),
              ::testing::EndsWith("  outcome unmatched, status 200\n"))
      << "a pasted request line";
  EXPECT_THAT(explain({"--request", "GET /a/x", "--header", key}),
              ::testing::EndsWith("  outcome no_rule, status 404\n"));
  const auto json = nlohmann::json::parse(explain({"--json", "--request", "GET /a/x"}));
  EXPECT_EQ(json.at("result"), "header X-API-Key is missing");
  EXPECT_EQ(json.at("outcome"), "missing");
  EXPECT_EQ(json.at("status"), 403);
}

TEST_F(Messages, ExplainShowsTheWayOfARequestToItsRule) {
  const std::string auth =
      File("auth.yaml",
           "trusted_proxies: [127.0.0.1]\noriginal_request: x-forwarded\nmappings:\n"
           "- path: /three\n"
           "  descriptors: [{cost: 3, entries: [{key: api_key, header: X-API-Key}]}]\n"
           "- path: /*\n"
           "  descriptors: [{entries: [{key: api_key, header: X-API-Key}]}]\n");
  const auto explain = [&](const std::string& rule, const std::string& request) {
    return Say({"explain", "--rule", rule, "--auth", auth, "--json", "--request", request,
                "--header", "X-API-Key: k"});
  };
  const auto one = nlohmann::json::parse(explain("api_key: 10/minute", "GET /one"));
  ASSERT_EQ(one.at("descriptors").size(), 1u);
  EXPECT_EQ(one.at("descriptors")[0].at("cost"), 1);
  EXPECT_EQ(one.at("descriptors")[0].at("entries")[0],
            nlohmann::json({{"key", "api_key"}, {"value", "k"}, {"from", "header X-API-Key"}}));
  EXPECT_EQ(one.at("descriptors")[0].at("explanation").at("rule"), "api_key");
  const auto three = nlohmann::json::parse(explain("api_key: 10/minute", "GET /three"));
  EXPECT_EQ(three.at("descriptors")[0].at("cost"), 3);
  // The mapping states no cost, and the rule counts bytes.
  const std::string by_size =
      File("rules.yaml",
           "domain: default\ndescriptors:\n- key: api_key\n"
           "  rate_limit: {unit: minute, requests_per_unit: 99, cost: {of: response_bytes}}\n");
  const auto bytes =
      nlohmann::json::parse(Say({"explain", "--rules", by_size, "--auth", auth, "--json",
                                 "--request", "GET /one", "--header", "X-API-Key: k"}));
  EXPECT_EQ(bytes.at("descriptors")[0].at("cost"), nullptr);
  const auto words = Say({"explain", "--rule", "api_key: 10/minute", "--auth", auth, "--request",
                          "GET /one", "--header", "X-API-Key: k"});
  EXPECT_THAT(words, ::testing::HasSubstr("  api_key = k   from header X-API-Key\n"));
}

TEST_F(Messages, ExplainTakesNoRequestThatAServerRefuses) {
  const std::string auth = File("auth.yaml", "trusted_proxies: [127.0.0.1]\nmappings: []\n");
  EXPECT_EQ(Say({"explain", "--rule", "a: 1/s", "--auth", auth, "--request", "GET /", "--header",
                 "Host: a", "--header", "host: b"}),
            "error: the request has two Host headers\n"
            "hint: a server answers such a request with 400; leave one of them out\n");
  EXPECT_EQ(code_, 2);
}

TEST_F(Messages, AStoreThatHasNoAddress) {
  constexpr std::string_view kHint =
      "\nhint: for example redis://127.0.0.1:6379, rediss://HOST:PORT (TLS) or "
      "redis+cluster://HOST:PORT,HOST:PORT";
  EXPECT_EQ(Say({"serve", "--store", "foo"}),
            "error: --store: '://' is missing" + std::string(kHint) +
                ", or zk://HOST:PORT,HOST:PORT/rate-limiter (ZooKeeper), or "
                "dynamodb://TABLE?region=eu-west-1 (DynamoDB)\n");
  EXPECT_EQ(Say({"serve", "--store", "redis://h:99999"}),
            "error: --store: '99999' is not a port (1 to 65535)" + std::string(kHint) + "\n");
}

TEST_F(Messages, ProblemsComeInTheOrderOfTheFile) {
  const std::string config =
      File("headgate.yaml",
           "threads: many\nstore: foo\nmax_bucket: 3\nlisten: [x]\nsnapshot: missing/s\n"
           "known_host: ['a*']\ncredential_file: gone\n");
  const std::string said = Say({"serve", "--config", config});
  std::vector<int> lines;
  for (size_t at = said.find("headgate.yaml:"); at != std::string::npos;
       at = said.find("headgate.yaml:", at + 1)) {
    lines.push_back(std::stoi(said.substr(at + 14)));
  }
  EXPECT_THAT(lines, ::testing::ElementsAre(1, 2, 3, 4, 5, 6, 7)) << said;
}

TEST_F(Messages, RulesThatASettingsFileNames) {
  Rules("edge", "rate_limit: {unit: fortnight, requests_per_unit: 1}");
  const std::string config =
      File("headgate.yaml", "threads: 1\nrules:\n  - edge.yaml\nrule: [nonsense]\n");
  const std::string said = Say({"serve", "--config", config});
  EXPECT_EQ(code_, 2);
  EXPECT_THAT(said, HasSubstr("error: DIR/edge.yaml:4:24: invalid rate limit unit 'fortnight'\n"));
  EXPECT_THAT(said, HasSubstr("error: DIR/headgate.yaml:4:8: rule \"nonsense\":1:9: "));
  EXPECT_THAT(said,
              ::testing::EndsWith(
                  "error: DIR/headgate.yaml:3:5: the rules of DIR/edge.yaml cannot be loaded\n"
                  "hint: `headgate validate DIR/edge.yaml` checks them without a server\n"));

  const std::string gone = File("gone.yaml", "rules:\n  - edge.yaml\n  - nowhere.yaml\n");
  const std::string nowhere =
      "error: DIR/gone.yaml:3:5: DIR/nowhere.yaml: cannot be read: No such file or directory\n"
      "hint: name a rule file, or a directory of files *.yaml or *.yml\n";
  EXPECT_EQ(Say({"serve", "--config", gone}), nowhere);
  ::setenv("HEADGATE_CONFIG", gone.c_str(), 1);
  EXPECT_EQ(Say({"explain", "edge", "api_key=k"}), nowhere);
  ::unsetenv("HEADGATE_CONFIG");
}

TEST_F(Messages, AMappingFileThatCannotBeRead) {
  const std::string kHint =
      "hint: name a file of mappings; docs/reference/mappings.md lists what it contains\n";
  EXPECT_EQ(Say({"serve", "--auth", directory_ / "nowhere.yaml", "--listen", "127.0.0.1:0"}),
            "error: --auth: DIR/nowhere.yaml: cannot open: No such file or directory\n" + kHint);
  EXPECT_THAT(Say({"validate", "--auth", directory_ / "nowhere.yaml", "--json"}),
              HasSubstr(R"("file": "DIR/nowhere.yaml")"));
  const std::string config = File("headgate.yaml", "rule: \"api_key: 1/s\"\nauth: nowhere.yaml\n");
  EXPECT_EQ(Say({"serve", "--config", config, "--listen", "127.0.0.1:0"}),
            "error: DIR/headgate.yaml:2:7: DIR/nowhere.yaml: cannot open: No such file or "
            "directory\n" +
                kHint);
  EXPECT_THAT(Say({"serve", "--auth", directory_, "--listen", "127.0.0.1:0"}),
              ::testing::EndsWith("\n" + kHint));
  EXPECT_THAT(Say({"validate", "--auth", directory_}), HasSubstr("\n" + kHint));
}

TEST_F(Messages, ASnapshotThatCannotBe) {
  EXPECT_EQ(Say({"serve", "--snapshot", directory_ / "missing" / "s", "--listen", "127.0.0.1:0"}),
            "error: --snapshot: cannot create DIR/missing/s.new: No such file or directory\nhint: "
            "mkdir -p DIR/missing\n");
  EXPECT_EQ(code_, 2);
  EXPECT_EQ(Say({"serve", "--snapshot", directory_, "--listen", "127.0.0.1:0"}),
            "error: --snapshot: DIR is a directory; name a file in it\n"
            "hint: name a file in a directory that this user may write: --snapshot PATH\n");
  EXPECT_EQ(code_, 2);
}

// Sends `answer` on its first connection, and ends.
class AnotherServer {
 public:
  explicit AnotherServer(const std::string& answer)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{
        .sin_family = AF_INET, .sin_port = 0, .sin_addr = {htonl(INADDR_LOOPBACK)}, .sin_zero = {}};
    socklen_t size = sizeof(address);
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listener_.get(), generic, size) + ::listen(listener_.get(), 1), 0);
    EXPECT_EQ(::getsockname(listener_.get(), generic, &size), 0);
    port = ntohs(address.sin_port);
    thread_ = std::thread([this, answer] {
      const net::FileDescriptor client(::accept(listener_.get(), nullptr, nullptr));
      char request[4096];
      EXPECT_GT(::recv(client.get(), request, sizeof(request), 0), 0);
      EXPECT_EQ(::send(client.get(), answer.data(), answer.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(answer.size()));
    });
  }
  ~AnotherServer() { thread_.join(); }

  uint16_t port = 0;

 private:
  const net::FileDescriptor listener_;
  std::thread thread_;
};

TEST_F(Messages, AnAnswerThatIsNotHeadgates) {
  constexpr std::string_view kHint =
      "hint: another program or a proxy listens there; give Headgate's address with --server\n";
  const std::vector<std::pair<std::string, std::string>> answers = {
      {"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\nnope",
       "answers 502, but the answer is not from Headgate"},
      {"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope",
       "answers 404, but the answer is not from Headgate"},
      {"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 2\r\n\r\n{}",
       "answers 429, but the answer is not from Headgate"},
      {"HTTP/1.1 200 OK\r\n\r\n{\"detail\":\"x\"}",
       "answers 200, but the answer is not from Headgate"},
      {"HTTP/1.1 200 OK\r\n\r\n{}", "answers 200, but the answer is not from Headgate"},
      {"HTTP/1.1 200 OK\r\n\r\n{\"allowed\":true,\"decisions\":[{\"allowed\":true}]}",
       "answers 200, but the answer is not from Headgate"},
      {"-ERR unknown command 'POST'\r\n", "the answer is not HTTP"}};
  for (const auto& [answer, what] : answers) {
    const AnotherServer other(answer);
    const std::string address = "127.0.0.1:" + std::to_string(other.port);
    const std::string said = Say({"check", "--server", address, "a=b"});
    EXPECT_THAT(said, HasSubstr(what));
    EXPECT_THAT(said, ::testing::EndsWith(kHint));
    EXPECT_EQ(code_, 3) << answer;
  }
}

// Escapes of a terminal come from elsewhere too.
TEST_F(Messages, AServerWhoseTextsHaveControlCharacters) {
  constexpr std::string_view kDecision =
      R"({"allowed":true,"limit":5,"remaining":4,"retry_after_ms":0,"reset_after_ms":0,"wait_ms":0,)"
      R"("rule":"a\u001b[31mb\u009bc","shadow":false})";
  const std::vector<std::pair<std::string, std::string>> answers = {
      {"HTTP/1.1 200 OK\r\n\r\n{\"allowed\":true,\"decisions\":[" + std::string(kDecision) + "]}",
       R"(a\x1b[31mb\xc2\x9bc)"},
      {"HTTP/1.1 400 Bad Request\r\n\r\n"
       R"({"detail":"a\u001b[31m","hint":"b\u0007"})",
       R"(a\x1b[31m)"}};
  for (const auto& [answer, shown] : answers) {
    const AnotherServer server(answer);
    const std::string address = "127.0.0.1:" + std::to_string(server.port);
    const std::string said = Say({"check", "--server", address, "a=b"});
    EXPECT_THAT(said, HasSubstr(shown));
    EXPECT_EQ(said.find_first_of("\x1b\x07"), std::string::npos) << said;
    EXPECT_EQ(said.find("\xc2\x9b"), std::string::npos) << said;
  }
}

// The answers of the check of logins, to people at a terminal.
TEST_F(Messages, AServerThatDoesNotLetUsIn) {
  const auto check = [&](const std::string& status, const std::string& detail) {
    const AnotherServer server("HTTP/1.1 " + status +
                               "\r\nContent-Type: application/problem+json\r\n\r\n{\"type\":"
                               "\"about:blank\",\"status\":" +
                               status.substr(0, 3) + ",\"detail\":\"" + detail +
                               "\",\"hint\":\"try again after Retry-After seconds\"}");
    const std::string address = "127.0.0.1:" + std::to_string(server.port);
    std::string said = Say({"check", "--server", address, "a=b"});
    if (const size_t at = said.find(address); at != said.npos)
      said.replace(at, address.size(), "ADDRESS");
    return said;
  };
  EXPECT_EQ(check("429 Too Many Requests", "too many failed logins of this user from this address"),
            "error: ADDRESS refuses the request (429): too many failed logins of this user from "
            "this address\n"
            "hint: wait a moment, and check the password before you log in with --credential-file "
            "PATH; its first line is USER:PASSWORD, or the credential\n");
  EXPECT_EQ(code_, 2);
  EXPECT_EQ(check("401 Unauthorized", "this request needs the login of a user"),
            "error: ADDRESS refuses the request (401): this request needs the login of a user\n"
            "hint: log in with --credential-file PATH; its first line is USER:PASSWORD, or the "
            "credential\n");
  EXPECT_EQ(code_, 2);
}

TEST_F(Messages, AServerThatCannotDecideNow) {
  const AnotherServer server(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n\r\n"
      R"({"status":503,"title":"Service Unavailable","detail":"no rate limit configuration loaded"})");
  const std::string address = "127.0.0.1:" + std::to_string(server.port);
  EXPECT_EQ(Say({"check", "--server", address, "a=b"}),
            "error: " + address + " cannot decide now (503): no rate limit configuration loaded\n" +
                "hint: the server's log has the reason; try again later\n");
  EXPECT_EQ(code_, 5);
}

}  // namespace messages_test
}  // namespace headgate::app

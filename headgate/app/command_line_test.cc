// The command line as a user sees it: help, errors, hints and exit statuses. The expected output is
// written from the purpose of the commands.
#include "headgate/app/command_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "headgate/app/command_words.h"
#include "headgate/app/help.h"
#include "headgate/app/serve/fronts.h"
#include "headgate/app/settings/rule_files.h"
#include "headgate/app/settings/settings.h"
#include "headgate/files/files.h"
#include "tests/source_dir.h"

namespace headgate::app {
namespace command_line_test {

using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Result {
  int code;
  std::string out;
  std::string err;
};

Result Headgate(const std::vector<std::string>& arguments) {
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunCommandLine(arguments, {.out = out, .err = err});
  return {code, out.str(), err.str()};
}

// As on a full disk.
Result HeadgateToFullDisk(const std::vector<std::string>& arguments) {
  std::ofstream full("/dev/full");
  std::ostringstream err;
  const int code = RunCommandLine(arguments, {.out = full, .err = err});
  return {code, "", err.str()};
}

class CommandLine : public ::testing::Test {
 protected:
  CommandLine() { std::filesystem::create_directory(directory_); }
  ~CommandLine() override { std::filesystem::remove_all(directory_); }

  std::string File(const std::string& name, std::string_view text) {
    const std::string path = directory_ / name;
    std::ofstream(path) << text;
    return path;
  }

  const std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() /
      ("headgate_command_line_test_" + std::to_string(::getpid()));
};

constexpr std::string_view kRules =
    "domain: edge\n"
    "descriptors:\n"
    "  - key: api_key\n"
    "    rate_limit: {requests_per_unit: 10, period: 20s}\n";

// The answers of these commands come from a server.
const std::set<std::string> kCommandsOfServers = {"bench", "rules", "store"};

TEST_F(CommandLine, OutputThatCannotBeWrittenIsAnErrorOfEveryCommand) {
  const std::string rules = File("rules.yaml", kRules);
  const std::string scenario =
      File("a.scenario", "rule login = 1 per 10s burst 5\nat 0s login:ann deny\n");
  const std::string log = File("access.log", "192.0.2.1 - - [01/Jan/2026:00:00:00 +0000]\n");
  const std::vector<std::vector<std::string>> printing = {
      {"help"},
      {"--help"},
      {"--version"},
      {"version"},
      {"version", "--json"},
      {"man"},
      {"completion", "bash"},
      {"completion", "zsh"},
      {"completion", "fish"},
      {"serve", "--print-config"},
      {"serve", "--print-config", "--json"},
      {"sidecar", "--plan", log, "--capacity", "40"},
      {"sidecar", "--print-config"},
      {"check", "--rules", rules, "--domain", "edge", "api_key=k1"},
      {"check", "--rules", rules, "--domain", "edge", "--json", "api_key=k1"},
      {"validate", rules},
      {"validate", "--json", rules},
      {"explain", "--rules", rules, "edge", "api_key=k1"},
      {"explain", "--rules", rules, "--json", "edge", "api_key=k1"},
      {"hash-password"},
      {"scenario", scenario},
  };
  std::istringstream password("a password\n");
  std::streambuf* const in = std::cin.rdbuf(password.rdbuf());
  std::set<std::string> tried = kCommandsOfServers;
  for (const std::vector<std::string>& arguments : printing) {
    password.clear();
    password.seekg(0);
    const Result printed = Headgate(arguments);
    EXPECT_NE(printed.out, "") << arguments[0] << printed.err;
    password.clear();
    password.seekg(0);
    const Result result = HeadgateToFullDisk(arguments);
    EXPECT_EQ(result.code, printed.code == kExitOk ? kExitOutput : printed.code) << arguments[0];
    EXPECT_THAT(result.err, HasSubstr("error: the output could not be written")) << arguments[0];
    tried.insert(arguments[0]);
  }
  std::cin.rdbuf(in);
  for (const std::string& command : CommandNames()) {
    EXPECT_TRUE(tried.contains(command)) << command;
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"help", command}, {command, "--help"}, {command, "-h", "--all"}})
      EXPECT_EQ(HeadgateToFullDisk(words).code, kExitOutput) << words[0] << ' ' << words[1];
  }
  EXPECT_EQ(HeadgateToFullDisk({"rules", "forget"}).code, kExitUsage) << "it printed nothing";
}

TEST_F(CommandLine, ShowsOneScreenByTask) {
  const Result help = Headgate({"help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.out,
              StartsWith("Headgate decides, for every request, whether it may pass now.\n"));
  EXPECT_LE(std::count(help.out.begin(), help.out.end(), '\n'), 24);
  EXPECT_EQ(Headgate({"--help"}).out, help.out);
  EXPECT_EQ(Headgate({"-h"}).out, help.out);
  const Result nothing = Headgate({});
  EXPECT_EQ(nothing.code, 2);
  EXPECT_EQ(nothing.err, help.out);
}

TEST_F(CommandLine, ShowsHelpForEveryCommandInBothWays) {
  for (const std::string& command : CommandNames()) {
    const Result help = Headgate({"help", command});
    EXPECT_EQ(help.code, 0) << command;
    EXPECT_THAT(help.out, StartsWith("headgate " + command + ": "));
    EXPECT_EQ(Headgate({command, "--help"}).out, help.out);
    EXPECT_EQ(Headgate({command, "-h"}).out, help.out);
  }
}

TEST_F(CommandLine, ShowsServeOnOneScreenAndEverySettingWithAll) {
  const Result screen = Headgate({"help", "serve"});
  EXPECT_LE(std::count(screen.out.begin(), screen.out.end(), '\n'), 36);
  EXPECT_THAT(screen.out, HasSubstr("`headgate help serve --all` lists all settings"));
  const std::string help = Headgate({"help", "serve", "--all"}).out;
  EXPECT_EQ(Headgate({"serve", "--help", "--all"}).out, help);
  for (const Setting& setting : AllSettings())
    EXPECT_THAT(help, HasSubstr("\n  " + FlagOf(setting) + " "));
}

TEST_F(CommandLine, ShowsASidecarOnOneScreenAndEverySettingWithAll) {
  const Result screen = Headgate({"help", "sidecar"});
  EXPECT_LE(std::count(screen.out.begin(), screen.out.end(), '\n'), 48);
  EXPECT_THAT(screen.out, HasSubstr("`headgate help sidecar --all` lists all settings"));
  const std::string help = Headgate({"help", "sidecar", "--all"}).out;
  EXPECT_EQ(Headgate({"sidecar", "--help", "--all"}).out, help);
  for (const Setting& setting : AllSettings(Command::kSidecar))
    EXPECT_THAT(help, HasSubstr("\n  " + FlagOf(setting) + " "));
  EXPECT_THAT(help, HasSubstr("[draft]")) << "and not serve's default";
  EXPECT_THAT(help, ::testing::Not(HasSubstr("--snapshot")));
}

TEST_F(CommandLine, CompletesEachFlagOnce) {
  for (const CommandWords& command : AllCommandWords()) {
    std::set<std::string> names;
    for (const CommandFlag& flag : command.flags)
      EXPECT_TRUE(names.insert(flag.name).second) << command.name << ' ' << flag.name;
    for (const Command server : {Command::kServe, Command::kSidecar}) {
      if (command.name != NameOf(server)) continue;
      for (const Setting& setting : AllSettings(server))
        EXPECT_TRUE(names.contains(FlagOf(setting))) << command.name << ' ' << setting.name;
    }
  }
}

TEST_F(CommandLine, CompletesAllFlagsOfASidecar) {
  const std::vector<CommandWords> commands = AllCommandWords();
  const auto sidecar = std::find_if(commands.begin(), commands.end(),
                                    [](const CommandWords& c) { return c.name == "sidecar"; });
  ASSERT_NE(sidecar, commands.end());
  std::set<std::string> completed;
  for (const CommandFlag& flag : sidecar->flags) completed.insert(flag.name);
  std::set<std::string> taken = {"--config", "--print-config", "--json", "--plan", "--plan-client"};
  for (const Setting& setting : AllSettings(Command::kSidecar)) taken.insert(FlagOf(setting));
  EXPECT_EQ(completed, taken);
  for (const std::string& flag : taken)
    EXPECT_THAT(Headgate({"sidecar", flag, "--nonsense"}).err,
                ::testing::Not(HasSubstr("'" + flag)));
  const auto mode = std::find_if(sidecar->flags.begin(), sidecar->flags.end(),
                                 [](const CommandFlag& flag) { return flag.name == "--mode"; });
  EXPECT_THAT(mode->choices, ::testing::ElementsAre("enforce", "passthrough"));
}

TEST_F(CommandLine, GuessesWhatWasMeant) {
  const Result command = Headgate({"sevre"});
  EXPECT_EQ(command.code, 2);
  EXPECT_EQ(command.err, "error: unknown command 'sevre'\nhint: did you mean 'serve'?\n");
  EXPECT_EQ(Headgate({"frobnicate"}).err,
            "error: unknown command 'frobnicate'\nhint: `headgate help` lists the commands\n");
  const Result flag = Headgate({"serve", "--lisen=x"});
  EXPECT_EQ(flag.code, 2);
  EXPECT_EQ(
      flag.err,
      "error: unknown argument '--lisen=x' to `headgate serve`\nhint: did you mean '--listen'?\n");
}

TEST_F(CommandLine, EndsEveryUsageErrorWithAHintAndCodeTwo) {
  const std::vector<std::vector<std::string>> wrong = {
      {"serve", "extra"},
      {"serve", "--threads"},
      {"serve", "--threads", "many"},
      {"serve", "--threads", "1", "--threads", "2"},
      {"serve", "--listen", "8080"},
      {"serve", "--listen", "none"},
      {"serve", "--config", directory_ / "missing.yaml"},
      {"serve", "--rules", directory_ / "missing.yaml", "--listen", "127.0.0.1:0", "--admin-listen",
       "none"},
      {"serve", "--rule", "nonsense", "--listen", "127.0.0.1:0", "--admin-listen", "none"},
      {"serve", "--credential-file", directory_ / "missing", "--listen", "127.0.0.1:0"},
      {"check"},
      {"check", "api_key"},
      {"check", "--cost", "-1", "a=b"},
      {"check", "--server", "nowhere", "a=b"},
      {"check", "--timeout", "soon", "--server", "127.0.0.1:1", "a=b"},
      {"check", "--server", "127.0.0.1:1", "--rule", "a: 1/s", "a=b"},
      {"check", "--rules", directory_ / "missing.yaml", "a=b"},
      {"validate"},
      {"validate", directory_ / "missing.yaml"},
      {"validate", "--rule", "nonsense"},
      {"explain"},
      {"explain", "--rule", "a: 1/s", "default"},
      {"validate", "--auth", directory_ / "missing.yaml"},
      {"validate", "--auth", directory_},
      {"serve", "--auth", directory_ / "missing.yaml", "--listen", "127.0.0.1:0"},
      {"serve", "--auth", directory_, "--listen", "127.0.0.1:0"},
      {"bench", "--duration", "0s"},
      {"bench", "--connections", "0"},
      {"bench", "--keys", "0"},
      {"bench", "--rate", "100000000"},
      {"bench", "--pipeline", "0"},
      {"bench", "--key", "api_key"},
      {"bench", "--domain", "edge"},
      {"bench", "--plot", directory_},
      {"bench", "--plot", directory_ / "missing" / "plot.svg"},
      {"scenario"},
      {"scenario", "--fast"},
      {"scenario", directory_ / "missing.scenario"},
      {"version", "please"},
  };
  for (const auto& arguments : wrong) {
    const Result result = Headgate(arguments);
    const std::string shown = ::testing::PrintToString(arguments);
    EXPECT_EQ(result.code, 2) << shown;
    EXPECT_EQ(result.out, "") << shown;
    EXPECT_THAT(result.err, HasSubstr("hint: ")) << shown;
    std::string_view said = result.err;
    // `validate` ends with a count.
    if (const size_t count = said.find("not valid: "); count != std::string::npos)
      said = said.substr(0, count);
    const size_t last_line = said.rfind('\n', said.size() - 2) + 1;
    EXPECT_THAT(said.substr(last_line), StartsWith("hint: ")) << shown << '\n' << said;
  }
}

TEST_F(CommandLine, ColorsOnlyWhereItIsAsked) {
  std::ostringstream out;
  std::ostringstream err;
  RunCommandLine({"frobnicate"}, {.out = out, .err = err, .color = true});
  EXPECT_THAT(err.str(), StartsWith("\033[1;31merror:\033[0m "));
  EXPECT_THAT(Headgate({"frobnicate"}).err, ::testing::Not(HasSubstr("\033")));
}

TEST_F(CommandLine, PrintsTheSettingsAndWhereTheyCameFrom) {
  const std::string config = File("headgate.yaml", "threads: 2\nidle_timeout: 1m\n");
  const Result result = Headgate({"serve", "--config", config, "--threads", "3", "--print-config"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, ::testing::ContainsRegex("threads: 3 +# --threads\n"));
  EXPECT_THAT(result.out, HasSubstr("# " + config + ":2:15\n"));
  EXPECT_THAT(result.out, ::testing::ContainsRegex("max_buckets: 1048576 +# default\n"));
  const Result as_json = Headgate({"serve", "--config", config, "--print-config", "--json"});
  EXPECT_EQ(nlohmann::json::parse(as_json.out).at("idle_timeout").at("value"), "1m");
}

TEST_F(CommandLine, ReportsAllProblemsOfASettingsFileTogether) {
  const std::string config = File("headgate.yaml", "max_bucket: 3\nthreads: many\n");
  const Result result = Headgate({"serve", "--config", config});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.err, "error: " + config +
                            ":1:1: unknown setting 'max_bucket'\n"
                            "hint: did you mean 'max_buckets'?\n"
                            "error: " +
                            config +
                            ":2:10: threads 'many': write a whole number from 0 to 1024\n"
                            "hint: threads: Event loops; 0 is one per core.\n");
}

TEST_F(CommandLine, DecidesHereByTheRulesItIsGiven) {
  const std::string rules = File("rules.yaml", kRules);
  const Result allowed =
      Headgate({"check", "--rules", rules, "--domain", "edge", "api_key=k1", "user=ann"});
  EXPECT_EQ(allowed.code, 0);
  // Ten in 20 s: one of them comes back every 2 s.
  EXPECT_EQ(allowed.out,
            "allowed  api_key  limit 10, 9 left, full again in 2s\nallowed  (no rule)\n");
  const Result never =
      Headgate({"check", "--rules", rules, "--domain", "edge", "--cost", "11", "api_key=k1"});
  EXPECT_EQ(never.code, 1);
  EXPECT_EQ(
      never.out,
      "denied   api_key  limit 10, 10 left, can never pass: it asks for more than the limit\n");
  const Result peek =
      Headgate({"check", "--rule", "user: 5/minute", "--peek", "--json", "user=ann"});
  EXPECT_EQ(peek.code, 0);
  EXPECT_EQ(nlohmann::json::parse(peek.out).at("decisions").at(0).at("remaining"), 4)
      << "what a check would answer";
}

TEST_F(CommandLine, SaysWhenNoServerIsThere) {
  const Result result =
      Headgate({"check", "--server", "unix:" + (directory_ / "none").string(), "a=b"});
  EXPECT_EQ(result.code, 3);
  EXPECT_THAT(result.err, HasSubstr("cannot reach unix:"));
  EXPECT_THAT(result.err, HasSubstr("hint: start a server (headgate serve)"));
}

TEST_F(CommandLine, AsksAServer) {
  const std::string rules = File("rules.yaml", kRules);
  const std::string address = "unix:" + (directory_ / "socket").string();
  const base::SystemClock system_clock;
  observe::Log log({.level_min = observe::Level::kError}, system_clock);
  Settings settings;
  settings.max_buckets = 1000;
  net::SpareFiles spare_files;
  Engine engine(settings, 1, system_clock, log, spare_files);
  ASSERT_TRUE(engine.limiter()
                  .OnRules(watch::LoadPaths({rules}, {}, false).result.rules, engine.clock().Now())
                  .ok());
  access::Access access;
  limiter::Checker checker(engine.limiter(), 0);
  FrontOptions options(settings, {}, engine, access);
  net::Server server({}, engine.clock(), spare_files);
  Fronts fronts(options, checker, server.loop(0), 0);
  ASSERT_TRUE(
      server.Listen(*net::ParseEndpoint(address), [&](uint32_t) { return fronts.All({}); }).ok());
  server.Start();

  const Result looked = Headgate(
      {"check", "--server", address, "--domain", "edge", "--cost", "10", "--peek", "api_key=k"});
  EXPECT_EQ(looked.code, 0) << looked.err;
  const Result allowed =
      Headgate({"check", "--server", address, "--domain", "edge", "--cost", "10", "api_key=k"});
  EXPECT_EQ(allowed.code, 0) << allowed.err;
  EXPECT_EQ(allowed.out, "allowed  api_key  limit 10, 0 left, full again in 20s\n");
  const Result denied =
      Headgate({"check", "--server", address, "--domain", "edge", "--json", "api_key=k"});
  EXPECT_EQ(denied.code, 1);
  EXPECT_FALSE(nlohmann::json::parse(denied.out).at("allowed").get<bool>());
  const Result refused = Headgate({"check", "--server", address, "--domain", "", "api_key=k"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("refuses the request (400)"));
}

TEST_F(CommandLine, ValidatesFiles) {
  const std::string good = File("good.yaml", kRules);
  const Result valid = Headgate({"validate", good});
  EXPECT_EQ(valid.code, 0);
  EXPECT_EQ(valid.out, "valid: 1 rule in 1 file\n");
  EXPECT_EQ(Headgate({"validate", "--rule", "a: 1/s"}).out, "valid: 1 rule given as text\n");
  EXPECT_EQ(Headgate({"validate", good, "--rule", "a: 1/s"}).out,
            "valid: 2 rules in 1 file and given as text\n");
  const std::string bad = File(
      "bad.yaml",
      "domain: x\ndescriptors:\n  - key: a\n    rate_limit: {unit: foo, requests_per_unit: 1}\n");
  const Result invalid = Headgate({"validate", good, bad});
  EXPECT_EQ(invalid.code, 2);
  EXPECT_THAT(invalid.err,
              StartsWith("error: " + bad + ":4:24: invalid rate limit unit 'foo'\nhint: "));
  const auto as_json = nlohmann::json::parse(Headgate({"validate", "--json", bad}).out);
  EXPECT_EQ(as_json.at("valid"), false);
  EXPECT_EQ(as_json.at("problems").at(0).at("line"), 4);
}

TEST_F(CommandLine, ExplainsWhichRuleApplies) {
  const std::string rules = File("rules.yaml", kRules);
  const Result result = Headgate({"explain", "--rules", rules, "edge", "api_key=k1"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.out, HasSubstr("rule      api_key\n"));
  EXPECT_THAT(result.out, HasSubstr("10 per 20s"));
  const auto as_json = nlohmann::json::parse(
      Headgate({"explain", "--rules", rules, "--json", "edge", "user=ann"}).out);
  EXPECT_TRUE(as_json.at("rule").is_null());
  EXPECT_EQ(as_json.at("steps").at(0).at("matched_by"), "nothing");
}

TEST_F(CommandLine, RunsScenarios) {
  const std::string good = File(
      "good.scenario", "rule login = 1 per 10s burst 5\nat 0s login:ann x5 allow remaining 0\n");
  EXPECT_EQ(Headgate({"scenario", good}).code, 0);
  const std::string differs =
      File("differs.scenario", "rule login = 1 per 10s\nat 0s login:ann deny\n");
  EXPECT_EQ(Headgate({"scenario", good, differs}).code, 1);
}

TEST_F(CommandLine, SaysItsVersion) {
  EXPECT_EQ(Headgate({"version"}).out, "headgate " HEADGATE_VERSION "\n");
  EXPECT_EQ(Headgate({"--version"}).out, "headgate " HEADGATE_VERSION "\n");
  EXPECT_EQ(nlohmann::json::parse(Headgate({"version", "--json"}).out).at("version"),
            HEADGATE_VERSION);
}

// The page repeats the help word for word.
TEST_F(CommandLine, IsWhatItsPageSays) {
  const std::string page =
      *files::ReadFile(SourceDir() / "docs/reference/command-line.md", 1 << 20);
  EXPECT_THAT(page, HasSubstr(std::string(Overview())));
  for (const std::string& command : CommandNames()) EXPECT_THAT(page, HasSubstr(HelpOf(command)));
}

}  // namespace command_line_test
}  // namespace headgate::app

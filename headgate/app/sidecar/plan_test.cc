#include "headgate/app/sidecar/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "headgate/app/sidecar/settings.h"

namespace headgate::app {
namespace plan_test {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

struct Done {
  int status;
  std::string out;
  std::string err;
};

Done Plan(std::string_view log, std::vector<std::string> more) {
  const std::string path = ::testing::TempDir() + "sidecar_plan_test.log";
  std::ofstream(path, std::ios::binary) << log;
  std::ostringstream out;
  std::ostringstream err;
  const Console console{.out = out, .err = err};
  std::vector<std::string> arguments = {"--plan", path};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const auto settings = ReadSidecarSettings(arguments, {}, console);
  int status = kExitUsage;
  if (settings)
    status = SidecarPlan(settings->plan->log, settings->plan->client, settings->share, console);
  return {status, out.str(), err.str()};
}

TEST(SidecarPlan, ShowsWhoWouldHaveBeenRefused) {
  std::string log;
  for (int i = 0; i < 3; ++i) log += "alice [25/Nov/2026:10:13:55 +0000] \"GET / HTTP/1.1\" 200\n";
  log += "bob [25/Nov/2026:10:13:56 +0000] \"GET / HTTP/1.1\" 200\nno time here\n";
  // Each has 2 of 4 in the first cycle. When alice's third request comes, she is alone with 4.
  const Done alone = Plan(log, {"--capacity", "4"});
  EXPECT_EQ(alone.status, kExitOk) << alone.err;
  EXPECT_THAT(alone.out, ContainsRegex("alice +3 +0 +0.0 % +3\n"));
  EXPECT_THAT(alone.err, HasSubstr("1 lines without a time or a client were left out"));
  const Done two = Plan(log, {"--capacity", "2", "--cycle", "1m"});
  EXPECT_THAT(two.out, ContainsRegex("alice +3 +1 +33.3 % +3\n"));
  EXPECT_THAT(two.out, ContainsRegex("bob +1 +1 +100.0 % +1\n"));
  EXPECT_THAT(two.out, HasSubstr("2 of 4 requests refused (50.0 %), in 1 of 1 cycles"));
  EXPECT_THAT(two.out, HasSubstr("the busiest cycle of 60 s had 4 requests"));
}

TEST(SidecarPlan, ClientsHaveTheirWeights) {
  std::string log;
  for (int i = 0; i < 5; ++i) log += "bob 1795601635\nann 1795601635\n";
  const Done even = Plan(log, {"--capacity", "8"});
  EXPECT_THAT(even.out, ContainsRegex("ann +5 +1 ")) << even.err;
  // With a weight of 3, ann has 6 of 8.
  const Done weighted = Plan(log, {"--capacity", "8", "--client-weight", "ann=3"});
  EXPECT_THAT(weighted.out, ContainsRegex("ann +5 +0 ")) << weighted.err;
  EXPECT_THAT(weighted.out, ContainsRegex("bob +5 +3 "));
}

TEST(SidecarPlan, TheClientMayBeAnywhere) {
  const std::string text = "1795601635 \"GET /\" carol\r\n1795601634 \"GET /\" carol";
  const Done last = Plan(text, {"--capacity", "4", "--plan-client", "-1"});
  EXPECT_THAT(last.out, ContainsRegex("carol +2 +0"));
  EXPECT_THAT(last.out, HasSubstr("1 lines were older than the line before"));
  const Done json = Plan("{\"ts\":1795601635,\"client\":\"d\\u001b[2Jx\"}\n",
                         {"--capacity", "4", "--plan-client", "client"});
  EXPECT_EQ(json.status, kExitOk) << json.err;
  EXPECT_EQ(json.out.find('\x1b'), std::string::npos) << "a terminal would obey it";
}

TEST(SidecarPlan, MoreThanTwentyClientsAreSummed) {
  std::string log;
  for (int i = 0; i < 25; ++i) log += "c" + std::to_string(i) + " 1795601635\n";
  const Done done = Plan(log, {"--capacity", "100"});
  EXPECT_THAT(done.out, ContainsRegex("all others +5 +0"));
}

TEST(SidecarPlan, LongLinesAreLeftOut) {
  const std::string log =
      "a 1795601635\nb 1795601635 " + std::string(200'000, 'x') + "\na 1795601635\n";
  const Done done = Plan(log, {"--capacity", "100"});
  EXPECT_THAT(done.out, ContainsRegex("a +2 +0"));
  EXPECT_EQ(done.out.find("b "), std::string::npos);
  EXPECT_THAT(done.err, HasSubstr("1 lines without"));
}

TEST(SidecarPlan, AByteOrderMarkIsNotPartOfTheFirstClient) {
  const Done done = Plan(
      "\xef\xbb\xbf"
      "alice 1795601635\nalice 1795601635\n",
      {"--capacity", "4"});
  EXPECT_THAT(done.out, ContainsRegex("\nalice +2 +0"));
}

TEST(SidecarPlan, SaysHowToUnpackACompressedLog) {
  for (const auto& [beginning, unpacker] :
       {std::pair("\x1f\x8b\x08\n", "zcat"), std::pair("\x28\xb5\x2f\xfd\n", "zstdcat"),
        std::pair("\xfd\x37zXZ", "xzcat"), std::pair("BZh91AY&SY", "bzcat")}) {
    const Done done = Plan(std::string(beginning) + "\nx\n", {"--capacity", "4"});
    EXPECT_EQ(done.status, kExitUsage);
    EXPECT_THAT(done.err, HasSubstr("is compressed"));
    EXPECT_THAT(done.err, HasSubstr(std::string(unpacker) + " "));
  }
}

TEST(SidecarPlan, ADirectoryIsNotALog) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(SidecarPlan(::testing::TempDir(), {},
                        {.pool = {.capacity = 1, .cycle = std::chrono::seconds(1)}},
                        {.out = out, .err = err}),
            kExitUsage);
  EXPECT_THAT(err.str(), HasSubstr("is a directory"));
}

TEST(SidecarPlan, RefusesFlagsThatItWouldLeaveOut) {
  EXPECT_THAT(Plan("a 1795601635\n", {"--capacity", "4", "--rule", "client: 1/s"}).err,
              HasSubstr("--plan with rules"));
  EXPECT_THAT(Plan("a 1795601635\n", {"--capacity", "4", "--mappings", "map.yaml"}).err,
              HasSubstr("--plan with rules"));
  EXPECT_THAT(Plan("a 1795601635\n", {"--capacity", "4", "--scope", "fleet"}).err,
              HasSubstr("--plan with --scope fleet"));
}

TEST(SidecarPlan, SaysWhatIsWrong) {
  EXPECT_THAT(Plan("a 1795601635\n", {}).err, HasSubstr("--capacity is not given"));
  EXPECT_THAT(Plan("a 1795601635\n", {"--capacity", "auto"}).err, HasSubstr("needs a capacity"));
  EXPECT_THAT(Plan("nothing\n", {"--capacity", "1"}).err, HasSubstr("none of 1 lines has a time"));
  EXPECT_THAT(Plan("", {"--capacity", "1", "--plan-client", "0"}).err, HasSubstr("--plan-client:"));
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_EQ(
      SidecarPlan("/not/there", {}, {.pool = {.capacity = 1, .cycle = std::chrono::seconds(1)}},
                  {.out = out, .err = err}),
      kExitUsage);
  EXPECT_THAT(err.str(), HasSubstr("cannot open \"/not/there\""));
  EXPECT_FALSE(
      ReadSidecarSettings({"--capacity", "1", "--plan-client", "1"}, {}, {.out = out, .err = err}));
}

}  // namespace plan_test
}  // namespace headgate::app

#include "headgate/app/runtime/file_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <memory>
#include <sstream>
#include <string>

#include "headgate/base/clock.h"

namespace headgate::app {
namespace file_plan_test {

TEST(FilePlan, IsAsAskedForWhereThereAreEnough) {
  const auto plan = PlanFiles(
      20'000,
      {.threads = 4, .addresses = 2, .connections_max = 10'000, .admin_connections_max = 64});
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->connections_max, 10'000u);
  EXPECT_EQ(plan->admin_connections_max, 64u);
  EXPECT_FALSE(plan->connections_lowered);
}

TEST(FilePlan, TheLogSaysThatConnectionsWereLowered) {
  const auto text_of = [](uint64_t files) {
    base::SystemClock clock;
    std::ostringstream text;
    observe::Log log({}, clock, std::make_shared<spdlog::sinks::ostream_sink_mt>(text));
    LogLoweredConnections(*PlanFiles(files, {.connections_max = 1000}), 1000, "lower it", log);
    return text.str();
  };
  EXPECT_EQ(text_of(20'000), "");
  // 32 of 1024 are for the process, 16 are spare, 5 are for the loop, and 64 for refusals.
  EXPECT_THAT(text_of(1024),
              ::testing::AllOf(::testing::HasSubstr("connections.max_lowered"),
                               ::testing::HasSubstr("max_connections=1000"),
                               ::testing::HasSubstr("effect=\"at most 907 connections\""),
                               ::testing::HasSubstr("hint=\"lower it\"")));
}

TEST(FilePlan, ConnectionsThatDrainGetAtMostAQuarterOfWhatIsLeft) {
  const auto clients = [](uint64_t draining, uint64_t wanted = 10'000) {
    return PlanFiles(400, {.draining_connections = draining,
                           .connections_max = wanted,
                           .admin_connections_max = 4})
        ->connections_max;
  };
  const uint64_t all = clients(0);
  EXPECT_EQ(clients(10), all - 10);
  EXPECT_EQ(clients(512), all - (all - 16) / 4);
  EXPECT_EQ(clients(10, 100), 100u);
}

// With any numbers, the planned descriptors fit into the limit, and each part gets some.
TEST(FilePlan, NeverPlansMoreThanThereAreAndNeverNothing) {
  for (const uint64_t threads : std::initializer_list<uint64_t>{1, 2, 16, 128}) {
    for (const uint64_t store : std::initializer_list<uint64_t>{0, 8}) {
      bool worked = false;
      for (uint64_t files = 1; files < 8000; ++files) {
        const auto plan = PlanFiles(files, {.threads = threads,
                                            .addresses = 2,
                                            .store_connections = store,
                                            .draining_connections = 100 * store,
                                            .connections_max = 10'000,
                                            .admin_connections_max = 64});
        EXPECT_TRUE(plan.ok() || !worked) << "more files, and no plan: " << files;
        if (!plan.ok()) continue;
        worked = true;
        EXPECT_GE(plan->connections_max, 16u);
        EXPECT_GE(plan->admin_connections_max, 1u);
        EXPECT_GE(plan->refusals_max, threads);
        EXPECT_LE(plan->connections_max + plan->admin_connections_max + plan->refusals_max + 48 +
                      threads * (7 + store),
                  files);
      }
      EXPECT_TRUE(worked);
    }
  }
}

TEST(FilePlan, SaysHowManyAreNeeded) {
  const auto plan = PlanFiles(
      10, {.threads = 2, .addresses = 2, .connections_max = 10'000, .admin_connections_max = 64});
  ASSERT_FALSE(plan.ok());
  EXPECT_THAT(std::string(plan.status().message()),
              ::testing::StartsWith("the system allows 10 open files; "));
}

TEST(FilePlan, HintsOnlyAtWhatCanBeLowered) {
  EXPECT_EQ(HintOnFewFiles({.threads = 1}), "raise `ulimit -n`");
  EXPECT_EQ(HintOnFewFiles({.threads = 2}), "raise `ulimit -n`, or lower threads");
  EXPECT_EQ(HintOnFewFiles({.threads = 1, .store_connections = 8, .store_connections_min = 8}),
            "raise `ulimit -n`");
  EXPECT_EQ(HintOnFewFiles({.threads = 1, .store_connections = 16, .store_connections_min = 8}),
            "raise `ulimit -n`, or lower store_connections");
  EXPECT_EQ(HintOnFewFiles({.threads = 2, .store_connections = 16, .store_connections_min = 8}),
            "raise `ulimit -n`, or lower threads or store_connections");
  EXPECT_EQ(HintOnFewFiles({.threads = 1, .upstream_connections = 512}),
            "raise `ulimit -n`, or lower upstream_connections");
}

}  // namespace file_plan_test
}  // namespace headgate::app

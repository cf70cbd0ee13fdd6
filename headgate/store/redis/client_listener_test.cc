#include "headgate/store/redis/client_listener.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headgate::store::redis {
namespace client_listener_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Reports that write their events down.
struct Recorder {
  std::vector<std::string> events;
  ListenerReports reports{
      {.on_connection =
           [this](const std::string& server, const absl::Status& state) {
             events.push_back(server + " connection " + std::string(state.message()));
           },
       .on_eviction_policy =
           [this](const std::string& server, const std::string& policy) {
             events.push_back(server + " policy " + policy);
           },
       .on_topology =
           [this](const std::string& server, const absl::Status& state) {
             events.push_back(server + " topology " + std::string(state.message()));
           }}};
};

TEST(ListenerReports, ReportAConnectionOnlyWhenItsStateChanges) {
  Recorder recorder;
  recorder.reports.Connection(0, "a", absl::UnavailableError("refused"));
  recorder.reports.Connection(0, "a", absl::UnavailableError("refused"));
  recorder.reports.Connection(1, "b", absl::UnavailableError("refused"));
  recorder.reports.Connection(0, "a", absl::OkStatus());
  EXPECT_THAT(recorder.events,
              ElementsAre("a connection refused", "b connection refused", "a connection "));
}

TEST(ListenerReports, ReportAPolicyAgainIfItWasHarmlessInBetween) {
  Recorder recorder;
  recorder.reports.EvictionPolicy(0, "a", "allkeys-lru");
  recorder.reports.EvictionPolicy(0, "a", "allkeys-lru");
  recorder.reports.EvictionPolicy(0, "a", std::nullopt);
  recorder.reports.EvictionPolicy(0, "a", "allkeys-lru");
  EXPECT_THAT(recorder.events, ElementsAre("a policy allkeys-lru", "a policy allkeys-lru"));
}

TEST(ListenerReports, ReportATopologyProblemOnceAndItsEndOnce) {
  Recorder recorder;
  recorder.reports.Topology(0, "a", "");
  EXPECT_THAT(recorder.events, IsEmpty());
  recorder.reports.Topology(0, "a", "no slots");
  recorder.reports.Topology(0, "a", "no slots");
  recorder.reports.Topology(0, "a", "");
  EXPECT_THAT(recorder.events, ElementsAre("a topology no slots", "a topology "));
}

TEST(ListenerReports, StartAnewForAServerThatWasForgotten) {
  Recorder recorder;
  recorder.reports.Connection(0, "a", absl::UnavailableError("refused"));
  recorder.reports.Forget(0);
  recorder.reports.Connection(0, "c", absl::UnavailableError("refused"));
  EXPECT_THAT(recorder.events, ElementsAre("a connection refused", "c connection refused"));
}

TEST(ListenerReports, RemoveTheArgumentsOfACallFromAnError) {
  std::string alarm;
  ListenerReports reports{
      {.on_alarm = [&](const std::string&, const std::string& error) { alarm = error; }}};
  reports.Alarm("a", "NOPERM no access to 'hg:{ann}'");
  EXPECT_EQ(alarm.find("ann"), alarm.npos) << alarm;
}

TEST(ListenerReports, ARefusalIsReportedUntilTheStoreWasUsed) {
  std::vector<std::string> events;
  ListenerReports reports({.on_usability = [&](const absl::Status& state) {
    events.push_back(state.ok() ? "used" : std::string(state.message()));
  }});
  reports.Refused("a", "it refuses the login");
  reports.Refused("b", "it refuses us (NOPERM)");
  reports.Used();
  reports.Used();
  reports.Refused("a", "it refuses the login");
  EXPECT_THAT(events, ElementsAre("a: it refuses the login", "b: it refuses us (NOPERM)", "used"));
}

TEST(ListenerReports, WorkWithoutAListener) {
  ListenerReports reports{StoreListener{}};
  reports.Connection(0, "a", absl::OkStatus());
  reports.EvictionPolicy(0, "a", "allkeys-lru");
  reports.Topology(0, "a", "no slots");
  reports.Alarm("a", "OOM");
}

}  // namespace client_listener_test
}  // namespace headgate::store::redis

#include "headgate/shared_store/store_log.h"

#include <string>
#include <string_view>
#include <utility>

namespace headgate::shared_store {
namespace {

std::string_view ReasonOf(store::HistoryChange change) {
  using enum store::HistoryChange;
  switch (change) {
    case kRestarted:
      return "the server restarted";
    case kPromoted:
      return "a replica was promoted, and may lack the last writes";
    case kReplaced:
      return "another server answers at this address";
    case kNone:
      break;
  }
  return "";
}

void LogConnections(observe::Log& log, uint64_t loop, store::StoreListener& listener) {
  listener.on_connection = [&log, loop](const std::string& server, const absl::Status& state) {
    if (state.ok()) return log.Info("store.connected", {{"server", server}, {"loop", loop}});
    log.Warning("store.disconnected",
                {{"server", server},
                 {"loop", loop},
                 {"reason", std::string(state.message())},
                 {"hint", std::string_view(
                              "check that the server runs and that --store has its address")}});
  };
  listener.on_topology = [&log, loop](const std::string& server, const absl::Status& state) {
    if (state.ok())
      return log.Info("store.topology_discovered", {{"server", server}, {"loop", loop}});
    log.Error(
        "store.topology_discovery_failed",
        {{"server", server},
         {"loop", loop},
         {"reason", std::string(state.message())},
         {"hint", std::string_view("check that the scheme of --store names the right kind "
                                   "(cluster, sentinel) and, for sentinels, the master's name")}});
  };
  listener.on_breaker = [&log, loop](const std::string& server, bool open) {
    if (!open) return log.Info("store.recovered", {{"server", server}, {"loop", loop}});
    log.Warning("store.unreachable",
                {{"server", server},
                 {"loop", loop},
                 {"effect", std::string_view("on_store_failure decides its limits")}});
  };
}

void LogHistory(observe::Log& log, uint64_t loop, std::function<void()> drop_leases,
                store::StoreListener& listener) {
  listener.on_learning = [&log, loop](const std::string& server, store::HistoryChange change,
                                      base::Duration term) {
    log.Warning("shard.learning_began",
                {{"server", server},
                 {"loop", loop},
                 {"reason", ReasonOf(change)},
                 {"effect", std::string_view("on_store_failure decides leased limits; leases that "
                                             "this instance holds stay valid")},
                 {"for", term},
                 {"hint", std::string_view(
                              "expected after a failover or a restart of the store; docs/guides/"
                              "fleet.md says how much each may admit beyond the limit")}});
  };
  listener.on_learned = [&log, loop](const std::string& server) {
    log.Info("shard.learning_ended", {{"server", server}, {"loop", loop}});
  };
  listener.on_pause_missed = [&log, loop, drop_leases = std::move(drop_leases)](
                                 const std::string& server, base::Duration missed) {
    drop_leases();
    log.Warning(
        "clock.pause_missed",
        {{"server", server},
         {"loop", loop},
         {"for", missed},
         {"reason", std::string_view("the store's clock advanced further than this machine's")},
         {"effect", std::string_view("the leases that this instance holds are dropped")},
         {"hint", std::string_view("likely causes: a virtual machine was paused or restored and "
                                   "its clock did not notice, or the store's clock was stepped")}});
  };
}

void LogErrors(observe::Log& log, store::StoreListener& listener) {
  listener.on_eviction_policy = [&log](const std::string& server, const std::string& policy) {
    const bool silent = policy.empty();
    log.Warning(
        "store.eviction_not_ruled_out",
        {{"server", server},
         {"policy", silent ? std::string_view("unknown") : std::string_view(policy)},
         {"effect",
          std::string_view("the store can delete buckets in use when its memory is full")},
         {"hint", silent ? std::string_view(
                               "allow Headgate's user the command INFO, which tells the policy")
                         : std::string_view("CONFIG SET maxmemory-policy noeviction, or "
                                            "strict_store: yes")}});
  };
  listener.on_alarm = [&log](const std::string& server, const std::string& error) {
    log.Error("store.alarm_raised", {{"server", server}, {"reason", error}});
  };
  listener.on_decision_error = [&log](const std::string& error) {
    log.Error("store.script_failed", {{"reason", error}});
  };
  listener.on_instances_error = [&log](const std::string& error) {
    if (error.empty()) return log.Info("heartbeat.accepted", {});
    log.Warning(
        "heartbeat.refused",
        {{"reason", error},
         {"effect",
          std::string_view(
              "this instance uses the last known number of instances (1 at start), so that "
              "during an outage the shares may add up to more than the limit")},
         {"hint", std::string_view("give Headgate's user the rights that docs/guides/fleet.md "
                                   "lists, or set store_instances")}});
  };
}

}  // namespace

store::StoreListener LogStore(observe::Log& log, uint64_t loop, std::function<void()> drop_leases) {
  store::StoreListener listener;
  LogConnections(log, loop, listener);
  LogHistory(log, loop, std::move(drop_leases), listener);
  LogErrors(log, listener);
  return listener;
}

}  // namespace headgate::shared_store

#include "headgate/app/store_log.h"

#include <string>
#include <string_view>
#include <utility>

namespace headgate::app {
namespace {

std::string_view ReasonOf(store::HistoryChange change) {
  using enum store::HistoryChange;
  switch (change) {
    case kRestarted:
      return "the server restarted";
    case kPromoted:
      return "a replica was promoted: it may lack the last writes";
    case kReplaced:
      return "another server answers at this address";
    case kNone:
      break;
  }
  return "";
}

}  // namespace

store::StoreListener LogStore(observe::Log& log, uint64_t loop, std::function<void()> drop_leases) {
  return {
      .on_connection =
          [&log, loop](const std::string& server, const absl::Status& state) {
            if (state.ok())
              return log.Info("store.connected", {{"server", server}, {"loop", loop}});
            log.Warning(
                "store.lost",
                {{"server", server},
                 {"loop", loop},
                 {"reason", std::string(state.message())},
                 {"hint", std::string_view("is the server up, and is --store its address?")}});
          },
      .on_eviction_policy =
          [&log](const std::string& server, const std::string& policy) {
            const bool silent = policy.empty();
            log.Warning(
                "store.may_evict",
                {{"server", server},
                 {"policy", silent ? std::string_view("unknown") : std::string_view(policy)},
                 {"effect",
                  std::string_view("live limits can be forgotten when its memory is full")},
                 {"hint",
                  silent ? std::string_view("let our user run INFO: it says what the server evicts")
                         : std::string_view("CONFIG SET maxmemory-policy noeviction, or "
                                            "strict_store: yes")}});
          },
      .on_topology =
          [&log, loop](const std::string& server, const absl::Status& state) {
            if (state.ok())
              return log.Info("store.topology_known", {{"server", server}, {"loop", loop}});
            log.Error("store.topology_unknown",
                      {{"server", server},
                       {"loop", loop},
                       {"reason", std::string(state.message())},
                       {"hint", std::string_view(
                                    "is the store what --store says: a cluster, sentinels, their "
                                    "master's name?")}});
          },
      .on_breaker =
          [&log, loop](const std::string& server, bool open) {
            if (!open) return log.Info("store.recovered", {{"server", server}, {"loop", loop}});
            log.Warning(
                "store.unreachable",
                {{"server", server},
                 {"loop", loop},
                 {"effect", std::string_view("its limits are decided as on_store_failure says")}});
          },
      .on_learning =
          [&log, loop](const std::string& server, store::HistoryChange change,
                       base::Duration term) {
            log.Warning(
                "shard.learning_began",
                {{"server", server},
                 {"loop", loop},
                 {"reason", ReasonOf(change)},
                 {"effect",
                  std::string_view("leased limits are decided as on_store_failure says, leases "
                                   "that are held are spent")},
                 {"for", term},
                 {"hint", std::string_view(
                              "expected after a failover or a restart of the store; docs/guides/"
                              "fleet.md says what each may let through")}});
          },
      .on_learned =
          [&log, loop](const std::string& server) {
            log.Info("shard.learning_ended", {{"server", server}, {"loop", loop}});
          },
      .on_pause_missed =
          [&log, loop, drop_leases = std::move(drop_leases)](const std::string& server,
                                                             base::Duration missed) {
            drop_leases();
            log.Warning(
                "clock.pause_missed",
                {{"server", server},
                 {"loop", loop},
                 {"for", missed},
                 {"reason",
                  std::string_view("the store's clock moved further than this machine's")},
                 {"effect", std::string_view("leases that were held are dropped")},
                 {"hint", std::string_view(
                              "a virtual machine that was stopped or restored without its clock "
                              "being told, or a step of the store's clock")}});
          },
      .on_alarm =
          [&log](const std::string& server, const std::string& error) {
            log.Error("store.alarm", {{"server", server}, {"error", error}});
          },
      .on_decision_error =
          [&log](const std::string& error) {
            log.Error("store.script_failed", {{"error", error}});
          },
      .on_instances_error =
          [&log](const std::string& error) {
            if (error.empty()) return log.Info("instances.known", {});
            log.Warning(
                "instances.unknown",
                {{"reason", error},
                 {"effect",
                  std::string_view("this instance goes by the last number that it knows, at first "
                                   "1: without the store, the shares of all instances may add up "
                                   "to more than the limit")},
                 {"hint", std::string_view("give our user the rights that docs/guides/fleet.md "
                                           "lists, or set store_instances")}});
          }};
}

}  // namespace headgate::app

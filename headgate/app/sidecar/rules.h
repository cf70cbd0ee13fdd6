// The rules of a running sidecar: loaded at start, followed while it runs, applied in front of the
// pool of every loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "headgate/app/runtime/engine.h"
#include "headgate/app/runtime/instance.h"
#include "headgate/app/runtime/live_rules.h"
#include "headgate/app/runtime/shared_stores.h"
#include "headgate/app/settings/console.h"
#include "headgate/app/settings/settings.h"
#include "headgate/base/random_secret.h"
#include "headgate/follow/mappings.h"
#include "headgate/limiter/checker.h"
#include "headgate/net/event_loop.h"
#include "headgate/observe/log.h"
#include "headgate/observe/metrics.h"
#include "headgate/proxy/proxy_loop.h"
#include "headgate/proxy/rule_gate.h"
#include "headgate/proxy/settler.h"

namespace headgate::app {

struct SidecarRulesOptions {
  // Without a mapping file, the field that names the client; empty: its address does.
  std::string client_field{};
  wire::RateLimitDialect dialect = wire::RateLimitDialect::kDraft;
  std::shared_ptr<const rule::Refusal> refusal{};
};

class SidecarRules {
 public:
  // Reads the sources of the rules and the mapping file from `settings`. All arguments must outlive
  // this object, which lives on `loop`.
  SidecarRules(const Settings& settings, const SidecarRulesOptions& options, Engine& engine,
               net::EventLoop& loop, observe::Log& log);
  SidecarRules(const SidecarRules&) = delete;

  // Loads everything for the first time. False if there are problems; they are on the console.
  bool LoadFirst(const Console& console);
  // For the shared store, if there is one; shows the rules in force to it, now and later.
  const Instance& instance() const { return instance_; }
  void ShowIn(SharedStores& shared);
  // False if the sources have had none yet.
  bool are_in_force() const { return engine_.limiter().rules() != nullptr; }
  // Applies the rules to the requests of the next loop, whose number follows that of the last one.
  // Call it before the loop runs. `shared` is null if the rules count in this process.
  void Apply(proxy::ProxyLoop& proxy, SharedStores* shared);
  // Reads all files again, changed or not.
  void Reload();
  // Takes confirmations of deletions. Call it after LoadFirst.
  rule::Editor& editor() { return rules_.editor(); }

  // From any thread.
  void Collect(observe::Sink& sink) const;

 private:
  struct OnLoop {
    OnLoop(SidecarRules& rules, uint32_t loop, proxy::ProxyLoop& proxy, SharedStores* shared);

    proxy::RuleCounters counters;
    limiter::Checker checker;
    answer::LimitAnswer answer;
    gate::Judge judge;
    proxy::SettleCounters settled;
    proxy::Settler settler;
    proxy::RuleGate gate;
  };

  const SidecarRulesOptions options_;
  Engine& engine_;
  observe::Log& log_;
  const Instance instance_{.name = RandomInstanceName()};
  LiveRules rules_;
  gate::LiveMappings live_mappings_;
  follow::Mappings mappings_;
  gate::Repeats repeats_{{}};
  const base::HashSecret repeats_secret_ = base::RandomHashSecret();
  std::vector<std::unique_ptr<OnLoop>> loops_;
};

}  // namespace headgate::app

// The rules in front of the pool, on every loop: which rules a request meets, by a file of mappings
// or by its client, and what they decide.
#pragma once

#include <memory>
#include <vector>

#include "headgate/app/runtime/part.h"
#include "headgate/app/runtime/process.h"
#include "headgate/base/random_secret.h"
#include "headgate/follow/mappings.h"
#include "headgate/observe/metrics.h"
#include "headgate/proxy/proxy_loop.h"
#include "headgate/proxy/rule_gate.h"
#include "headgate/proxy/settler.h"

namespace headgate::app {

class RuleGates {
 public:
  // Without a file of mappings, a request meets the rules of its client. All arguments must outlive
  // this object, which lives on the control loop.
  RuleGates(Process& process, const proxy::ApplicationOptions& options);
  RuleGates(const RuleGates&) = delete;

  // Reads the mappings. False if there are problems; they are on the console.
  bool Load();
  // Applies the rules to the requests of the next loop, whose number follows that of the last one.
  // Call it before the loop runs.
  void Apply(proxy::ProxyLoop& proxy);
  // Reads the mappings again, changed or not.
  void Reload() { mappings_.Reload(); }

  // From any thread.
  void Collect(observe::Sink& sink, PartSums& sums) const;

 private:
  struct OnLoop {
    OnLoop(RuleGates& rules, limiter::Checker& checker, proxy::ProxyLoop& proxy);

    proxy::RuleCounters counters;
    answer::LimitAnswer answer;
    gate::Judge judge;
    proxy::SettleCounters settled;
    proxy::Settler settler;
    proxy::RuleGate gate;
  };

  Process& process_;
  const proxy::ApplicationOptions& options_;
  gate::LiveMappings live_mappings_;
  follow::Mappings mappings_;
  gate::Repeats repeats_{{}};
  const base::HashSecret repeats_secret_ = base::RandomHashSecret();
  std::vector<std::unique_ptr<OnLoop>> loops_;
};

}  // namespace headgate::app

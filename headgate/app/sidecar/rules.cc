#include "headgate/app/sidecar/rules.h"

#include <array>

#include "headgate/app/runtime/verdict_metrics.h"
#include "headgate/app/settings/rule_files.h"
#include "headgate/mapping/mapping_file.h"

namespace headgate::app {

SidecarRules::SidecarRules(const Settings& settings, const SidecarRulesOptions& options,
                           Engine& engine, net::EventLoop& loop, observe::Log& log)
    : options_(options),
      engine_(engine),
      log_(log),
      rules_(settings, instance_.name, engine, loop, log),
      mappings_(settings.auth, "", live_mappings_, loop, log, mapping::Asker::kOwnProxy) {
  if (settings.auth.empty()) live_mappings_.Publish(mapping::MappingOfClient(options.client_field));
}

bool SidecarRules::LoadFirst(const Console& console) {
  const std::vector<rule::Problem> problems = rules_.LoadFirst();
  SayProblems(problems, console);
  const std::vector<rule::Problem> mapping_problems = mappings_.LoadFirst();
  SayProblems(mapping_problems, console);
  return problems.empty() && mapping_problems.empty();
}

SidecarRules::OnLoop::OnLoop(SidecarRules& rules, uint32_t loop, proxy::ProxyLoop& proxy,
                             SharedStores* shared)
    : checker(shared == nullptr ? limiter::Checker(rules.engine_.limiter(), loop)
                                : limiter::Checker(rules.engine_.limiter(), loop,
                                                   shared->decider(loop), shared->naming())),
      answer(checker, {.dialect = rules.options_.dialect, .refusal = rules.options_.refusal}),
      judge(checker, answer,
            {.mappings = rules.live_mappings_,
             .repeats = rules.repeats_,
             .secret = rules.repeats_secret_,
             .clock = rules.engine_.clock().source(),
             .on_token_refused = LogTokensRefused(&rules.log_),
             .on_invalid = LogInvalidRequests(&rules.log_),
             .is_own_proxy = true},
            counters.verdicts),
      settler(checker, proxy.wheel(), proxy.deferred(), settled),
      gate(judge, rules.options_.dialect, proxy.held(), counters) {
  gate.SetSettler(settler);
}

void SidecarRules::ShowIn(SharedStores& shared) {
  shared.ShowRules(rules_.in_force());
  rules_.OnInForce([&shared](const rule::RulesInForce& rules) { shared.ShowRules(rules); });
}

void SidecarRules::Apply(proxy::ProxyLoop& proxy, SharedStores* shared) {
  const auto number = static_cast<uint32_t>(loops_.size());
  loops_.push_back(std::make_unique<OnLoop>(*this, number, proxy, shared));
  proxy.SetRules(loops_.back()->gate);
}

void SidecarRules::Reload() {
  rules_.Reload();
  mappings_.Reload();
}

void SidecarRules::Collect(observe::Sink& sink) const {
  using observe::Metric;
  rules_.Collect(sink);
  mappings_.Collect(sink);
  VerdictSums verdicts;
  uint64_t held_refused = 0;
  uint64_t held_left = 0;
  uint64_t let_through = 0;
  std::array<uint64_t, 4> settled{};
  for (const auto& loop : loops_) {
    verdicts.Add(loop->counters.verdicts);
    held_refused += loop->counters.held_refused.value();
    held_left += loop->counters.held_left.value();
    let_through += loop->counters.let_through.value();
    const proxy::SettleCounters& units = loop->settled;
    settled[0] += units.taken.value();
    settled[1] += units.returned.value();
    settled[2] += units.lapsed.value();
    settled[3] += units.forgotten.value();
  }
  verdicts.Report(sink);
  sink.Set(Metric::kAuthForgotten, {}, repeats_.forgotten());
  sink.Set(Metric::kHeldRefused, {}, held_refused);
  sink.Set(Metric::kHeldLeft, {}, held_left);
  sink.Set(Metric::kLetThrough, {}, let_through);
  constexpr std::array<std::string_view, 4> kEvents = {"taken", "returned", "lapsed", "forgotten"};
  for (size_t i = 0; i < settled.size(); ++i)
    sink.Set(Metric::kSizeUnits, {kEvents[i]}, settled[i]);
}

}  // namespace headgate::app

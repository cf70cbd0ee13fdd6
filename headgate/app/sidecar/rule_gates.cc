#include "headgate/app/sidecar/rule_gates.h"

#include <array>
#include <string_view>

#include "headgate/app/settings/rule_files.h"
#include "headgate/gate/verdict_metrics.h"
#include "headgate/mapping/mapping_file.h"

namespace headgate::app {

RuleGates::RuleGates(Process& process, const proxy::ApplicationOptions& options)
    : process_(process),
      options_(options),
      mappings_(process.settings().mappings, "", live_mappings_, process.control(), process.log(),
                mapping::Asker::kOwnProxy) {
  if (process.settings().mappings.empty())
    live_mappings_.Publish(mapping::MappingOfClient(options.client_field));
}

bool RuleGates::Load() {
  const std::vector<rule::Problem> problems = mappings_.LoadFirst();
  SayProblems(problems, process_.configuration(), "mappings", process_.console());
  return problems.empty();
}

RuleGates::OnLoop::OnLoop(RuleGates& rules, limiter::Checker& checker, proxy::ProxyLoop& proxy)
    : answer(checker, {.dialect = rules.options_.dialect, .refusal = rules.options_.refusal}),
      judge(checker, answer,
            {.mappings = rules.live_mappings_,
             .repeats = rules.repeats_,
             .secret = rules.repeats_secret_,
             .clock = rules.process_.engine().clock().source(),
             .on_token_refused = gate::LogTokensRefused(&rules.process_.log()),
             .on_invalid = gate::LogInvalidRequests(&rules.process_.log()),
             .is_own_proxy = true},
            counters.verdicts),
      settler(checker, proxy.wheel(), proxy.deferred(), settled),
      gate(judge, rules.options_.dialect, proxy.held(), counters) {
  gate.SetSettler(settler);
}

void RuleGates::Apply(proxy::ProxyLoop& proxy) {
  limiter::Checker& checker = process_.checker(static_cast<uint32_t>(loops_.size()));
  loops_.push_back(std::make_unique<OnLoop>(*this, checker, proxy));
  proxy.SetRules(loops_.back()->gate);
}

void RuleGates::Collect(observe::Sink& sink, PartSums& sums) const {
  using observe::Metric;
  sums.judges = true;
  sums.mappings.push_back(&mappings_);
  sums.repeats_forgotten += repeats_.forgotten();
  uint64_t held_refused = 0;
  uint64_t held_left = 0;
  uint64_t let_through = 0;
  std::array<uint64_t, 4> settled{};
  for (const auto& loop : loops_) {
    sums.verdicts.Add(loop->counters.verdicts);
    held_refused += loop->counters.held_refused.value();
    held_left += loop->counters.held_left.value();
    let_through += loop->counters.let_through.value();
    const proxy::SettleCounters& units = loop->settled;
    settled[0] += units.taken.value();
    settled[1] += units.returned.value();
    settled[2] += units.lapsed.value();
    settled[3] += units.forgotten.value();
  }
  sink.Set(Metric::kHeldRefused, {}, held_refused);
  sink.Set(Metric::kHeldLeft, {}, held_left);
  sink.Set(Metric::kLetThrough, {}, let_through);
  constexpr std::array<std::string_view, 4> kEvents = {"taken", "returned", "lapsed", "forgotten"};
  for (size_t i = 0; i < settled.size(); ++i)
    sink.Set(Metric::kSizeUnits, {kEvents[i]}, settled[i]);
}

}  // namespace headgate::app

// Sums the verdicts of all loops, for the metrics of forward-auth and of the sidecar.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

#include "headgate/gate/verdict.h"
#include "headgate/observe/log.h"
#include "headgate/observe/metrics.h"

namespace headgate::gate {

class VerdictSums {
 public:
  void Add(const Counters& counters);
  void Report(observe::Sink& sink) const;

 private:
  std::array<uint64_t, kRequestOutcomeCount> outcomes_{};
  std::array<uint64_t, jwt::kRefusals> token_refusals_{};
  uint64_t repeated_ = 0;
  uint64_t held_ = 0;
};

// For JudgeOptions::on_invalid; null without a log, which must outlive it.
std::function<void(std::string_view reason, std::string_view mapping)> LogInvalidRequests(
    observe::Log* log);
// For JudgeOptions::on_token_refused; null without a log, which must outlive it.
std::function<void(jwt::Refusal reason, std::string_view mapping)> LogTokensRefused(
    observe::Log* log);

}  // namespace headgate::gate

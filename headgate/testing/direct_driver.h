// A limiter over a store, called in process as an embedder calls it.
#pragma once

#include "headgate/limiter/checker.h"
#include "headgate/testing/scenario_runner.h"

namespace headgate::testing {

class DirectDriver final : public Driver {
 public:
  // The store must outlive the driver and must not be used by anything else.
  explicit DirectDriver(store::Store& store)
      : limiter_(store, /*observer=*/nullptr), checker_(limiter_) {}

  absl::Status SetRules(std::span<const ScenarioRule> rules, base::Instant now) override;
  absl::StatusOr<algorithm::Decision> Answer(const Ask& ask, base::Instant now) override;

 private:
  limiter::Limiter limiter_;
  limiter::Checker checker_;
  limiter::Response response_;
};

}  // namespace headgate::testing

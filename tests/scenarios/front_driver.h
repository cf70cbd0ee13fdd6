// A server without its sockets: rule files, a store and a limiter behind a front that gets bytes.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/access/access.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/net/session.h"
#include "headgate/store/memory.h"
#include "headgate/testing/scenario_runner.h"
#include "headgate/testing/shared_store_rig.h"

namespace headgate::testing {

// Makes the shared store that decides, with the limits of `local`. Empty: `local` decides at once.
using MakeSharedStore = std::function<std::unique_ptr<SharedStoreRig>(store::Store& local)>;

class FrontDriver : public Driver {
 public:
  // Fronts answer in whole milliseconds, rounded up.
  base::Duration precision() const final { return std::chrono::milliseconds(1); }
  absl::Status SetRules(std::span<const ScenarioRule> rules, base::Instant now) final;

 protected:
  explicit FrontDriver(const MakeSharedStore& make);

  limiter::Checker& checker() { return *checker_; }
  access::Access& access() { return access_; }

  // Sends bytes as the event loop would; returns the answers.
  std::string Send(net::Session& session, std::string_view bytes, base::Instant now);

 private:
  store::MemoryStore store_{store::MemoryOptions{.max_buckets = 1 << 12, .max_limits = 1 << 10}};
  limiter::Limiter limiter_{store_, /*observer=*/nullptr};
  std::unique_ptr<SharedStoreRig> shared_;
  std::optional<limiter::shared::SharedDecider> fleet_;
  std::optional<limiter::Checker> checker_;
  access::Access access_;
};

}  // namespace headgate::testing

#include "tests/scenarios/drivers.h"

#include <span>

#include "headgate/store/memory.h"
#include "headgate/testing/direct_driver.h"
#include "headgate/testing/kernel_driver.h"
#include "tests/scenarios/http_driver.h"
#include "tests/scenarios/resp_driver.h"

namespace headgate::testing {
namespace {

constexpr store::MemoryOptions kMemory{.max_buckets = 1 << 12, .max_limits = 1 << 10};

// In process, over its own memory store.
class DirectOverMemory final : public Driver {
 public:
  absl::Status SetRules(std::span<const ScenarioRule> rules, base::Instant now) override {
    return driver_.SetRules(rules, now);
  }
  absl::StatusOr<algorithm::Decision> Answer(const Ask& ask, base::Instant now) override {
    return driver_.Answer(ask, now);
  }

 private:
  store::MemoryStore store_{kMemory};
  DirectDriver driver_{store_};
};

}  // namespace

const std::vector<NamedDriver>& Drivers() {
  static const std::vector<NamedDriver> drivers{
      {"kernel", [] { return std::make_unique<KernelDriver>(); }},
      {"memory", [] { return std::make_unique<DirectOverMemory>(); }},
      {"memory_resp2",
       [] { return std::make_unique<RespDriver>(wire::RespVersion::k2, Decides::kAtOnce); }},
      {"memory_resp3",
       [] { return std::make_unique<RespDriver>(wire::RespVersion::k3, Decides::kAtOnce); }},
      {"memory_http", [] { return std::make_unique<HttpDriver>(Decides::kAtOnce); }},
      {"later_resp3",
       [] { return std::make_unique<RespDriver>(wire::RespVersion::k3, Decides::kLater); }},
      {"later_http", [] { return std::make_unique<HttpDriver>(Decides::kLater); }},
      {"redis_resp3",
       [] { return std::make_unique<RespDriver>(wire::RespVersion::k3, Decides::kByScripts); }},
      {"redis_http", [] { return std::make_unique<HttpDriver>(Decides::kByScripts); }},
  };
  return drivers;
}

}  // namespace headgate::testing

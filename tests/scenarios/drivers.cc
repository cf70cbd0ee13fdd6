#include "tests/scenarios/drivers.h"

#include <span>

#include "headgate/store/memory.h"
#include "headgate/testing/direct_driver.h"
#include "headgate/testing/kernel_driver.h"

namespace headgate::testing {
namespace {

constexpr store::MemoryOptions kMemory{.max_buckets = 1 << 12, .max_limits = 1 << 10};

// A driver over a memory store of its own.
template <typename StoreDriver>
class OverMemory final : public Driver {
 public:
  base::Duration precision() const override { return driver_.precision(); }
  absl::Status SetRules(std::span<const ScenarioRule> rules, base::Instant now) override {
    return driver_.SetRules(rules, now);
  }
  absl::StatusOr<algorithm::Decision> Answer(const Ask& ask, base::Instant now) override {
    return driver_.Answer(ask, now);
  }

 private:
  store::MemoryStore store_{kMemory};
  StoreDriver driver_{store_};
};

}  // namespace

const std::vector<NamedDriver>& Drivers() {
  static const std::vector<NamedDriver> drivers{
      {"kernel", [] { return std::make_unique<KernelDriver>(); }},
      {"memory", [] { return std::make_unique<OverMemory<DirectDriver>>(); }},
  };
  return drivers;
}

}  // namespace headgate::testing

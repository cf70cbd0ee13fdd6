#include "tests/scenarios/drivers.h"

#include <functional>
#include <memory>
#include <span>

#include "headgate/store/memory.h"
#include "headgate/testing/direct_driver.h"
#include "headgate/testing/kernel_driver.h"
#include "headgate/testing/manual_shared_store.h"
#include "tests/cas/strict_rig.h"
#include "tests/cas/timed_cas_store.h"
#include "tests/redis/lua_shared_store.h"
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

// The memory store as a shared one, which answers later.
class LaterRig final : public SharedStoreRig {
 public:
  explicit LaterRig(store::Store& memory) : store_(memory, now_) {}

  store::SharedStore& store() override { return store_; }
  void SetNow(base::Instant now) override { now_ = now; }
  bool Wait(const std::function<bool()>& answered) override {
    store_.AnswerAll();
    return answered();
  }

 private:
  base::Instant now_{0};
  ManualSharedStore store_;
};

// The scripts of the Redis store, which answer within the call.
class ScriptsRig final : public SharedStoreRig {
 public:
  explicit ScriptsRig(store::LimitTable& limits) : store_(limits, now_) {}

  store::SharedStore& store() override { return store_; }
  void SetNow(base::Instant now) override { now_ = now; }
  bool Wait(const std::function<bool()>& answered) override { return answered(); }

 private:
  base::Instant now_{0};
  redis_host::LuaSharedStore store_;
};

std::unique_ptr<SharedStoreRig> Later(store::Store& local) {
  return std::make_unique<LaterRig>(local);
}
std::unique_ptr<SharedStoreRig> Scripts(store::Store& local) {
  return std::make_unique<ScriptsRig>(local.limits());
}
// The compare-and-set store; its service is in this process.
std::unique_ptr<SharedStoreRig> Strict(store::Store& local) {
  return std::make_unique<strict_test::StrictRig<cas_test::TimedCasStore>>(local.limits());
}

}  // namespace

const std::vector<NamedDriver>& Drivers() {
  using wire::RespVersion;
  static const std::vector<NamedDriver> drivers{
      {"kernel", [] { return std::make_unique<KernelDriver>(); }},
      {"memory", [] { return std::make_unique<DirectOverMemory>(); }},
      {"memory_resp2", [] { return std::make_unique<RespDriver>(RespVersion::k2); }},
      {"memory_resp3", [] { return std::make_unique<RespDriver>(RespVersion::k3); }},
      {"memory_http", [] { return std::make_unique<HttpDriver>(); }},
      {"later_resp3", [] { return std::make_unique<RespDriver>(RespVersion::k3, Later); }},
      {"later_http", [] { return std::make_unique<HttpDriver>(Later); }},
      {"redis_resp3", [] { return std::make_unique<RespDriver>(RespVersion::k3, Scripts); }},
      {"redis_http", [] { return std::make_unique<HttpDriver>(Scripts); }},
      {"strict_resp3", [] { return std::make_unique<RespDriver>(RespVersion::k3, Strict); }},
      {"strict_http", [] { return std::make_unique<HttpDriver>(Strict); }},
  };
  return drivers;
}

}  // namespace headgate::testing

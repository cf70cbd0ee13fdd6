// A server without its sockets: rule files, a memory store and a limiter behind a front that gets
// bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "headgate/access/access.h"
#include "headgate/limiter/checker.h"
#include "headgate/limiter/shared_decider.h"
#include "headgate/net/session.h"
#include "headgate/store/memory.h"
#include "headgate/testing/manual_shared_store.h"
#include "headgate/testing/scenario_runner.h"
#include "tests/redis/lua_shared_store.h"

namespace headgate::testing {

// Which store decides: the memory store at once; the memory store as a shared one, which answers
// later; or the scripts of the Redis store.
enum class Decides : uint8_t { kAtOnce, kLater, kByScripts };

class FrontDriver : public Driver {
 public:
  // Fronts answer in whole milliseconds, rounded up.
  base::Duration precision() const final { return std::chrono::milliseconds(1); }
  absl::Status SetRules(std::span<const ScenarioRule> rules, base::Instant now) final;

 protected:
  explicit FrontDriver(Decides decides);

  limiter::Checker& checker() { return *checker_; }
  access::Access& access() { return access_; }

  // Sends bytes as the event loop would; returns the answers.
  std::string Send(net::Session& session, std::string_view bytes, base::Instant now);

 private:
  store::MemoryStore store_{store::MemoryOptions{.max_buckets = 1 << 12, .max_limits = 1 << 10}};
  limiter::Limiter limiter_{store_, /*observer=*/nullptr};
  base::Instant now_{0};
  ManualSharedStore shared_{store_, now_};
  redis_host::LuaSharedStore scripts_{store_.limits(), now_};
  std::optional<limiter::SharedDecider> fleet_;
  std::optional<limiter::Checker> checker_;
  access::Access access_;
};

}  // namespace headgate::testing

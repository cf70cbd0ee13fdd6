// The strict store on a real server, at the time that the test sets.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "headgate/client/zookeeper/place.h"
#include "headgate/store/cas/cas_store.h"
#include "headgate/store/zookeeper/state_store.h"
#include "tests/zookeeper/zookeeper_process.h"

namespace headgate::zookeeper_test {

class TimedStrictStore {
 public:
  explicit TimedStrictStore(store::LimitTable& limits, const store::cas::CasOptions& options = {}) {
    const store::cas::CasStore::Parts parts[] = {{.loop = loop_, .service = state_}};
    stores_ = store::cas::CasStore::Make(
        parts, {.limits = limits, .clock = decisions_, .seed = 1, .options = options});
    EXPECT_TRUE(Wait([this] { return client_.connected(); }));
  }

  store::SharedStore& store() { return *stores_.front(); }
  void SetNow(base::Instant now) { clock_.Advance(now - decisions_.Now()); }
  bool Wait(const std::function<bool()>& done) {
    return loop_.RunUntil(done, std::chrono::seconds(20));
  }

 private:
  // The servers run until the test process ends; each store has nodes of its own.
  static const ZooKeeperProcess& Server() {
    static const ZooKeeperProcess server;
    return server;
  }
  static std::string NewRoot() {
    static uint32_t count = 0;
    return "/contract-" + std::to_string(++count);
  }

  base::ManualClock clock_;
  base::DisciplinedClock decisions_{clock_};
  net::EventLoop loop_{clock_};
  client::zookeeper::Client client_{
      {.servers = client::zookeeper::ParsePlace("zk://" + Server().server(), "/")->servers},
      loop_,
      {}};
  store::LoopStoreCounters counters_;
  store::zookeeper::StateStore state_{client_, loop_, {.root = NewRoot()}, counters_};
  std::vector<std::unique_ptr<store::cas::CasStore>> stores_;
};

}  // namespace headgate::zookeeper_test

// The strict store on a real server, at the time that the test sets.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "headgate/store/cas/cas_store.h"
#include "headgate/store/dynamodb/state_store.h"
#include "tests/dynamodb/dynalite_process.h"

namespace headgate::dynamodb_test {

class TimedStrictStore {
 public:
  explicit TimedStrictStore(store::LimitTable& limits, const store::cas::CasOptions& options = {}) {
    const store::cas::CasStore::Parts parts[] = {{.loop = loop_, .service = state_}};
    stores_ = store::cas::CasStore::Make(
        parts, {.limits = limits, .clock = decisions_, .seed = 1, .options = options});
    http_.WarmUp();
    EXPECT_TRUE(Wait([this] { return http_.connections() > 0; }));
  }

  store::SharedStore& store() { return *stores_.front(); }
  void SetNow(base::Instant now) { clock_.Advance(now - decisions_.Now()); }
  bool Wait(const std::function<bool()>& done) {
    return loop_.RunUntil(done, std::chrono::seconds(20));
  }

 private:
  // The server runs until the test process ends; each store has a table of its own.
  static const DynaliteProcess& Server() {
    static const DynaliteProcess server;
    return server;
  }
  static store::dynamodb::Table NewTable() {
    static uint32_t count = 0;
    const std::string name = "contract-" + std::to_string(++count);
    Server().MakeTable(name);
    return *store::dynamodb::ParseTableUrl(Server().url(name),
                                           store::dynamodb::SystemEnvironment());
  }

  base::ManualClock clock_;
  base::DisciplinedClock decisions_{clock_};
  net::EventLoop loop_{clock_};
  const store::dynamodb::Table table_ = NewTable();
  store::dynamodb::CredentialSource credentials_{
      loop_, clock_, {.environment = store::dynamodb::SystemEnvironment()}};
  client::http::Client http_{loop_, {.origin = table_.endpoint}};
  store::dynamodb::TableClient client_{http_, clock_, credentials_, table_};
  store::LoopStoreCounters counters_;
  store::dynamodb::StateStore state_{client_, loop_, {.seed = 1}, counters_};
  std::vector<std::unique_ptr<store::cas::CasStore>> stores_;
};

}  // namespace headgate::dynamodb_test

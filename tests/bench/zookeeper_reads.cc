// Measures the price of a current read in ZooKeeper: getData alone, a sync and getData sent
// together (as the strict store reads), one after the other, and setData. Starts its own servers,
// one alone and an ensemble of three, of which a follower or the leader is asked. Servers do not
// wait for the disk.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/client/zookeeper/client.h"
#include "headgate/client/zookeeper/place.h"
#include "tests/zookeeper/zookeeper_process.h"

namespace headgate::zookeeper_test {
namespace {

using namespace std::chrono_literals;
using client::zookeeper::Watch;

constexpr int kCalls = 3'000;

class Bench {
 public:
  explicit Bench(const ZooKeeperProcess& server)
      : client_({.servers = client::zookeeper::ParsePlace("zk://" + server.server(), "/")->servers},
                loop_, {}) {
    HEADGATE_CHECK(loop_.RunUntil([this] { return client_.connected(); }, 20s));
    Wait([this](const auto& done) {
      client_.Create("/bench", std::string(100, 'x'), client::zookeeper::CreateMode::kPersistent,
                     [done](const auto& /*made or there*/) { done(); });
    });
  }

  void Run(std::string_view where) {
    const auto nothing = [](const auto& /*status*/) {};
    Measure(where, "getData", [this](const auto& done) {
      client_.Get("/bench", Watch::kNo, [done](const auto& /*node*/) { done(); });
    });
    Measure(where, "sync and getData, sent together", [this, nothing](const auto& done) {
      client_.Sync("/bench", nothing);
      client_.Get("/bench", Watch::kNo, [done](const auto& /*node*/) { done(); });
    });
    Measure(where, "sync, then getData", [this](const auto& done) {
      client_.Sync("/bench", [this, done](const auto& /*status*/) {
        client_.Get("/bench", Watch::kNo, [done](const auto& /*node*/) { done(); });
      });
    });
    Measure(where, "setData", [this](const auto& done) {
      client_.Set("/bench", std::string(100, 'x'), -1, [done](const auto& /*stat*/) { done(); });
    });
  }

 private:
  using Call = std::function<void(const std::function<void()>& done)>;

  void Wait(const Call& call) {
    bool ended = false;
    call([&ended] { ended = true; });
    HEADGATE_CHECK(loop_.RunUntil([&ended] { return ended; }, 20s));
  }
  void Measure(std::string_view where, std::string_view what, const Call& call) {
    std::vector<base::Duration> times;
    for (int i = 0; i < kCalls; ++i) {
      const base::BootTime began = loop_.Now();
      Wait(call);
      times.push_back(loop_.Now() - began);
    }
    std::sort(times.begin(), times.end());
    const auto ms = [&](size_t percent) {
      return static_cast<double>(times[times.size() * percent / 100].count()) / 1e6;
    };
    fmt::print("{:10} {:34} p50 {:.3f} ms   p99 {:.3f} ms\n", where, what, ms(50), ms(99));
  }

  base::SystemClock clock_;
  net::EventLoop loop_{clock_};
  client::zookeeper::Client client_;
};

void Run() {
  {
    ZooKeeperProcess alone;
    Bench(alone).Run("alone");
  }
  Ensemble ensemble;
  for (size_t i = 0; i < ensemble.size(); ++i) {
    const bool leads =
        AskServer(ensemble.server(i).port(), "srvr").find("Mode: leader") != std::string::npos;
    if (leads || i == 0 || i == 1) Bench(ensemble.server(i)).Run(leads ? "leader" : "follower");
  }
}

}  // namespace
}  // namespace headgate::zookeeper_test

int main() { headgate::zookeeper_test::Run(); }

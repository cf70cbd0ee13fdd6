// For tests: a client with an event loop, whose calls wait for their answers.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/client/zookeeper/client.h"
#include "headgate/client/zookeeper/place.h"

namespace headgate::zookeeper_test {

using namespace std::chrono_literals;
using client::zookeeper::Client;
using client::zookeeper::CreateMode;
using client::zookeeper::Watch;

class TestClient {
 public:
  explicit TestClient(std::string_view servers, base::Duration session_timeout = 4s,
                      base::Duration call_timeout = 5s) {
    const auto place = client::zookeeper::ParsePlace("zk://" + std::string(servers), "/");
    client_.emplace(
        client::zookeeper::ClientOptions{.servers = place->servers,
                                         .session_timeout = session_timeout,
                                         .call_timeout = call_timeout,
                                         .digest = place->digest},
        loop_,
        Client::Listener{.on_connected =
                             [this](bool is_new) {
                               is_new ? ++sessions : ++reconnects;
                               if (on_connected) on_connected(is_new);
                             },
                         .on_disconnected = [this] { ++disconnects; },
                         .on_watch =
                             [this](const client::zookeeper::WatchEvent& event) {
                               watched.push_back(event.path);
                               if (on_watch) on_watch(event);
                             },
                         .on_trouble = [this](const absl::Status& why) { trouble = why; }});
  }

  Client& operator*() { return *client_; }
  Client* operator->() { return &*client_; }
  bool Until(const std::function<bool()>& done, base::Duration timeout = 20s) {
    return loop_.RunUntil(done, timeout);
  }
  bool Connects() {
    return Until([this] { return client_->connected(); });
  }

  absl::Status Create(const std::string& path, std::string_view data = {},
                      CreateMode mode = CreateMode::kPersistent) {
    return Wait<client::zookeeper::Created>(
               [&](auto done) { client_->Create(path, data, mode, std::move(done)); })
        .status();
  }
  absl::StatusOr<client::zookeeper::NodeStat> Set(const std::string& path, std::string_view data,
                                                  int32_t version = -1) {
    return Wait<client::zookeeper::NodeStat>(
        [&](auto done) { client_->Set(path, data, version, std::move(done)); });
  }
  absl::StatusOr<client::zookeeper::Node> Get(const std::string& path, Watch watch = Watch::kNo) {
    return Wait<client::zookeeper::Node>(
        [&](auto done) { client_->Get(path, watch, std::move(done)); });
  }
  absl::StatusOr<client::zookeeper::Children> List(const std::string& path,
                                                   Watch watch = Watch::kNo) {
    return Wait<client::zookeeper::Children>(
        [&](auto done) { client_->List(path, watch, std::move(done)); });
  }
  absl::Status Delete(const std::string& path, int32_t version = -1) {
    return WaitForStatus([&](auto done) { client_->Delete(path, version, std::move(done)); });
  }
  absl::Status Replace(const std::string& path, std::string_view data, int32_t version) {
    return WaitForStatus(
        [&](auto done) { client_->Replace(path, data, version, std::move(done)); });
  }
  absl::Status Sync(const std::string& path) {
    return WaitForStatus([&](auto done) { client_->Sync(path, std::move(done)); });
  }
  net::EventLoop& loop() { return loop_; }
  void Leave() {
    bool left = false;
    client_->Leave([&] { left = true; });
    EXPECT_TRUE(Until([&] { return left; }));
  }

  uint32_t sessions = 0;
  uint32_t reconnects = 0;
  uint32_t disconnects = 0;
  std::vector<std::string> watched;
  absl::Status trouble;
  std::function<void(bool new_session)> on_connected;
  std::function<void(const client::zookeeper::WatchEvent& event)> on_watch;

 private:
  template <typename Call>
  absl::Status WaitForStatus(const Call& call) {
    std::optional<absl::Status> status;
    call([&](absl::Status given) { status = std::move(given); });
    EXPECT_TRUE(Until([&] { return status.has_value(); }));
    return *std::move(status);
  }
  template <typename Value, typename Call>
  absl::StatusOr<Value> Wait(const Call& call) {
    std::optional<absl::StatusOr<Value>> answer;
    call([&](absl::StatusOr<Value> given) { answer = std::move(given); });
    EXPECT_TRUE(Until([&] { return answer.has_value(); }));
    return *std::move(answer);
  }

  base::SystemClock clock_;
  net::EventLoop loop_{clock_};
  std::optional<Client> client_;
};

}  // namespace headgate::zookeeper_test

// For tests: a server on a free port of this machine with a clock that the test moves, and its
// clients.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <latch>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "headgate/base/clock.h"
#include "headgate/net/blocking_client.h"
#include "headgate/net/endpoint.h"
#include "headgate/net/server.h"
#include "headgate/net/test_clock.h"

namespace headgate::net {

// Protocol::Choose(bytes, peer, room) makes the sessions, on the loops' threads. The sessions may
// refer to the protocol: it outlives the server. The server is not started yet.
template <typename Protocol>
struct ServerRig : Protocol {
  static constexpr base::Duration kPatience = std::chrono::seconds(10);

  template <typename... Arguments>
  explicit ServerRig(ServerOptions server_options, const ListenOptions& listen_options = {},
                     std::string_view address = "127.0.0.1:0", Arguments&&... arguments)
      : Protocol{std::forward<Arguments>(arguments)...} {
    server_options.tick = std::chrono::milliseconds(2);
    server = std::make_unique<Server>(server_options, clock, spare_files);
    endpoint = Listen(address, listen_options);
  }

  Endpoint Listen(std::string_view address, const ListenOptions& listen_options = {}) {
    const auto bound = server->Listen(
        *ParseEndpoint(address),
        [this](uint32_t) {
          return [this](std::span<const char> bytes, const Peer& peer, Room room) {
            return this->Choose(bytes, peer, room);
          };
        },
        listen_options);
    EXPECT_TRUE(bound.ok()) << bound.status();
    return *bound;
  }

  BlockingClient Connect() const { return Connect(endpoint); }
  static BlockingClient Connect(const Endpoint& where) {
    auto client = BlockingClient::Connect(where, kPatience);
    EXPECT_TRUE(client.ok()) << client.status();
    return *std::move(client);
  }

  // Runs `work` on the first loop's thread and waits for it.
  void OnLoop(const std::function<void()>& work) {
    std::latch done(1);
    server->loop(0).Post([&] {
      work();
      done.count_down();
    });
    done.wait();
  }

  TestClock source;
  base::DisciplinedClock clock{source};
  SpareFiles spare_files;
  std::unique_ptr<Server> server;
  Endpoint endpoint;
};

// Reads until `bytes` bytes have arrived, or to the end of the connection.
inline std::string ReadBytes(BlockingClient& client, size_t bytes) {
  std::string all;
  while (all.size() < bytes) {
    const auto some = client.ReadSome();
    if (!some.ok() || some->empty()) break;
    all += *some;
  }
  return all;
}

}  // namespace headgate::net

#include "headgate/proxy/waiter_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "headgate/base/random.h"

namespace headgate::proxy {
namespace waiter_queue_test {

using ::testing::ElementsAre;

struct Request final : Places::Waiter {
  explicit Request(std::optional<uint64_t> of_client)
      : Places::Waiter(of_client), client(of_client) {}
  void OnPlace(Place&, base::Instant) override {}
  void OnNoPlace(NoPlace, std::string_view, base::Instant) override {}

  const std::optional<uint64_t> client;
};

struct WaiterQueueTest : ::testing::Test {
  Request& Make(std::optional<uint64_t> client) { return requests.emplace_back(client); }
  void Append(std::optional<uint64_t> client) { queue.Append(Make(client)); }
  void Hold(std::optional<uint64_t> client) { queue.Hold(Make(client)); }
  // Gives places to all that wait, and returns their clients in order.
  std::vector<uint64_t> ServeAll() {
    std::vector<uint64_t> clients;
    while (!queue.empty()) {
      auto& request = static_cast<Request&>(queue.TakeFirst());
      queue.Hold(request);
      clients.push_back(request.client.value_or(0));
    }
    return clients;
  }

  std::deque<Request> requests;
  WaiterQueue queue;
};

TEST_F(WaiterQueueTest, RequestsOfOneClientAreInOrder) {
  for (int i = 0; i < 3; ++i) Append(1);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(&queue.TakeFirst(), &requests[i]);
  EXPECT_TRUE(queue.empty());
}

TEST_F(WaiterQueueTest, ClientWithFewerPlacesIsFirst) {
  for (int i = 0; i < 3; ++i) Hold(1);
  Append(1);
  Append(2);
  Append(2);
  Append(1);
  // 2 has none, then 1, then 2; 1 has three.
  EXPECT_THAT(ServeAll(), ElementsAre(2, 2, 1, 1));
}

TEST_F(WaiterQueueTest, ClientsWithEquallyManyTakeTurns) {
  for (int i = 0; i < 3; ++i) Append(1);
  for (int i = 0; i < 3; ++i) Append(2);
  EXPECT_THAT(ServeAll(), ElementsAre(1, 2, 1, 2, 1, 2));
}

// Requests end at once, so nobody ever has more places than another.
TEST_F(WaiterQueueTest, ClientsWhoseRequestsAreShortTakeTurnsToo) {
  for (int i = 0; i < 3; ++i) Append(1);
  for (int i = 0; i < 2; ++i) Append(2);
  Append(3);
  std::vector<uint64_t> clients;
  while (!queue.empty()) {
    auto& request = static_cast<Request&>(queue.TakeFirst());
    queue.Hold(request);
    queue.Release(request);
    clients.push_back(*request.client);
  }
  EXPECT_THAT(clients, ElementsAre(1, 2, 3, 1, 2, 1));
}

TEST_F(WaiterQueueTest, PlaceThatIsLeftMovesItsClientForward) {
  Hold(1);
  Hold(1);
  Hold(2);
  Append(1);
  Append(2);
  queue.Release(requests[0]);
  queue.Release(requests[1]);
  EXPECT_THAT(ServeAll(), ElementsAre(1, 2));
}

TEST_F(WaiterQueueTest, RequestsWithoutAClientAreOneLineThatIsNeverBehind) {
  for (int i = 0; i < 5; ++i) Hold(std::nullopt);
  Append(1);
  Append(std::nullopt);
  Append(std::nullopt);
  EXPECT_THAT(ServeAll(), ElementsAre(1, 0, 0));
}

TEST_F(WaiterQueueTest, ClientIsForgottenWithItsLastRequest) {
  Hold(1);
  EXPECT_EQ(queue.HeldBy(requests[0]), 1u);
  Append(1);
  EXPECT_EQ(queue.WaitingOf(requests[0]), 1u);
  queue.Remove(requests[1]);
  queue.Remove(requests[1]);
  queue.Release(requests[0]);
  EXPECT_EQ(queue.HeldBy(requests[0]), 0u);
  EXPECT_EQ(queue.WaitingOf(requests[0]), 0u);
  EXPECT_TRUE(queue.empty());
}

// Random events, compared with a search through everything.
TEST_F(WaiterQueueTest, OrderIsThatOfASearch) {
  struct Client {
    uint64_t held = 0;
    uint64_t since = 0;
    std::deque<Request*> line;
  };
  base::Random random(7);
  std::map<uint64_t, Client> clients;
  std::vector<Request*> holding;
  uint64_t time = 0;
  size_t waiting = 0;
  const auto next = [&] {
    auto best = clients.end();
    for (auto at = clients.begin(); at != clients.end(); ++at) {
      const auto order = [](const Client& one) { return std::pair(one.held, one.since); };
      if (at->second.line.empty()) continue;
      if (best == clients.end() || order(at->second) < order(best->second)) best = at;
    }
    return best;
  };
  for (int step = 0; step < 20'000; ++step) {
    switch (random.Below(5)) {
      case 0:
      case 1: {
        const uint64_t name = random.Below(30);
        Client& client = clients[name];
        if (client.line.empty()) client.since = time++;
        Append(name);
        client.line.push_back(&requests.back());
        ++waiting;
        break;
      }
      case 2: {
        if (queue.empty()) break;
        const auto at = next();
        Client& client = at->second;
        Request& request = *client.line.front();
        ASSERT_EQ(&queue.front(), &request);
        ASSERT_EQ(&queue.TakeFirst(), &request);
        client.line.pop_front();
        client.since = time++;
        queue.Hold(request);
        ++client.held;
        holding.push_back(&request);
        --waiting;
        break;
      }
      case 3: {
        if (holding.empty()) break;
        std::swap(holding[random.Below(holding.size())], holding.back());
        queue.Release(*holding.back());
        --clients[*holding.back()->client].held;
        holding.pop_back();
        break;
      }
      default: {
        Client& client = clients[random.Below(30)];
        if (client.line.empty()) break;
        const size_t which = random.Below(client.line.size());
        queue.Remove(*client.line[which]);
        client.line.erase(client.line.begin() + static_cast<ptrdiff_t>(which));
        --waiting;
        break;
      }
    }
    ASSERT_EQ(queue.size(), waiting);
  }
  while (!queue.empty()) (void)queue.TakeFirst();
}

}  // namespace waiter_queue_test
}  // namespace headgate::proxy

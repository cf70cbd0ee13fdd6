// How many instances share a store: each says every two seconds that it lives, and hears how many do. One per process;
// it lives on one event loop, and the number is for all.
//
// In the store: a sorted set of instances by when they were last heard, on the store's clock. Who was silent for three
// beats is dropped by whoever comes next.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "headgate/net/event_loop.h"
#include "headgate/store/redis/client.h"

namespace headgate::store::redis {

struct HeartbeatOptions {
  std::string key = "hg:instances";
  base::Duration interval = std::chrono::seconds(2);
  // Dropped after so long without a beat.
  base::Duration silence_max = std::chrono::seconds(7);
};

class Heartbeat {
 public:
  // `instance` is this process' name, which no other has. Begins at once, on the client's loop; must not outlive it.
  Heartbeat(Client& client, std::string instance, HeartbeatOptions options = {});

  // As last heard, also where the store is away since; 1 where nothing was. From any thread.
  uint32_t instances() const { return heard_->load(std::memory_order_relaxed); }

  // Takes this instance off the list at once, and beats no more. On the loop's thread.
  void Leave();

 private:
  void Beat();

  Client& client_;
  const std::string instance_;
  const HeartbeatOptions options_;
  const std::shared_ptr<std::atomic<uint32_t>> heard_ = std::make_shared<std::atomic<uint32_t>>(1);
  net::Timer timer_;
};

}  // namespace headgate::store::redis

// How many connections may be open, in all and from one address. Shared by all loops; asked when a
// connection opens and closes, never in between.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "headgate/base/time.h"

struct sockaddr_storage;

namespace headgate::net {

// Who counts as one address: an IPv4 address, an IPv6 /64 network (one host has that many), or all
// Unix sockets.
using AddressKey = std::array<uint8_t, 9>;
AddressKey KeyOf(const sockaddr_storage& address);
// A loopback address or a Unix socket.
bool IsLoopback(const sockaddr_storage& address);
// "10.0.0.7:50000" (also for IPv4 within IPv6), "[2001:db8::1]:50000" or "unix".
std::string AddressText(const sockaddr_storage& address);

class ConnectionLimits {
 public:
  enum class Refusal : uint8_t { kTotal, kAddress };

  // Holds a slot; gives it back when it goes. Must not outlive the limits.
  class Slot {
   public:
    Slot(Slot&& other) noexcept
        : limits_(std::exchange(other.limits_, nullptr)), key_(other.key_) {}
    Slot& operator=(Slot&&) = delete;
    ~Slot() {
      if (limits_ != nullptr) limits_->Leave(key_);
    }

   private:
    friend class ConnectionLimits;
    Slot(ConnectionLimits* limits, const AddressKey& key) : limits_(limits), key_(key) {}
    ConnectionLimits* limits_;
    AddressKey key_;
  };

  // `per_address_max` 0: no limit.
  ConnectionLimits(uint32_t total_max, uint32_t per_address_max)
      : total_max_(total_max), per_address_max_(per_address_max) {}

  // A slot, or nothing and why. The table has at most `total_max` entries, those of open
  // connections.
  std::optional<Slot> Enter(const AddressKey& key, Refusal& refusal);
  // Waits until none is open; false where that takes longer.
  bool WaitUntilEmpty(base::Duration timeout);

 private:
  void Leave(const AddressKey& key);

  const uint32_t total_max_;
  const uint32_t per_address_max_;
  std::mutex mutex_;
  std::condition_variable emptied_;
  uint32_t open_ = 0;
  absl::flat_hash_map<AddressKey, uint32_t> by_address_;
};

}  // namespace headgate::net

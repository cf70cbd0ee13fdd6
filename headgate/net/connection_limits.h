// Limits the number of open connections, in total and per address. Shared by all loops; used only
// when a connection opens or closes.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "headgate/base/ip_address.h"
#include "headgate/base/time.h"
#include "headgate/net/peer.h"

namespace headgate::net {

// Connections with the same key count as one address: an IPv4 address, an IPv6 /64 network (the
// usual allocation of one host), or all Unix sockets together.
using AddressKey = base::IpAddress;
AddressKey KeyOf(const Peer& peer);

class ConnectionLimits {
 public:
  enum class Refusal : uint8_t { kTotal, kAddress };

  // Holds a place and releases it on destruction. Must not outlive the limits.
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

  // If `per_address_max` is 0, there is no limit per address.
  ConnectionLimits(uint32_t total_max, uint32_t per_address_max)
      : total_max_(total_max), per_address_max_(per_address_max) {}

  // Returns a slot, or nothing and the reason in `refusal`. The table has at most `total_max`
  // entries, one per address with open connections.
  std::optional<Slot> Enter(const AddressKey& key, Refusal& refusal);
  // Waits until no connection is open; returns false on timeout.
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

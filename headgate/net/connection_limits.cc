#include "headgate/net/connection_limits.h"

namespace headgate::net {

AddressKey KeyOf(const Peer& peer) {
  // Neither an IPv6 network nor an IPv4 address has this key.
  constexpr AddressKey kUnixKey{0, 1};
  if (!peer.ip) return kUnixKey;
  return peer.ip->is_v4() ? *peer.ip : NetworkOf(*peer.ip, 64).first;
}

std::optional<ConnectionLimits::Slot> ConnectionLimits::Enter(const AddressKey& key,
                                                              Refusal& refusal) {
  std::lock_guard lock(mutex_);
  if (open_ >= total_max_) {
    refusal = Refusal::kTotal;
    return std::nullopt;
  }
  if (per_address_max_ != 0) {
    uint32_t& count = by_address_[key];
    if (count >= per_address_max_) {
      refusal = Refusal::kAddress;
      return std::nullopt;
    }
    ++count;
  }
  ++open_;
  return Slot(this, key);
}

bool ConnectionLimits::WaitUntilEmpty(base::Duration timeout) {
  std::unique_lock lock(mutex_);
  return emptied_.wait_for(lock, timeout, [this] { return open_ == 0; });
}

void ConnectionLimits::Leave(const AddressKey& key) {
  std::lock_guard lock(mutex_);
  if (--open_ == 0) emptied_.notify_all();
  if (per_address_max_ == 0) return;
  const auto found = by_address_.find(key);
  if (found != by_address_.end() && --found->second == 0) by_address_.erase(found);
}

}  // namespace headgate::net

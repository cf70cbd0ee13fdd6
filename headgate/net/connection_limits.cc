#include "headgate/net/connection_limits.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

namespace headgate::net {

std::optional<base::IpAddress> IpOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof(v4));
    return base::IpAddress::FromV4(ntohl(v4.sin_addr.s_addr));
  }
  if (address.ss_family != AF_INET6) return std::nullopt;
  sockaddr_in6 v6;
  std::memcpy(&v6, &address, sizeof(v6));
  return base::IpAddress::FromV6(v6.sin6_addr.s6_addr);
}

AddressKey KeyOf(const sockaddr_storage& address) {
  // No network of IPv6 and no IPv4 address has this key.
  constexpr AddressKey kUnixKey{0, 1};
  const auto ip = IpOf(address);
  if (!ip) return kUnixKey;
  return ip->is_v4() ? *ip : NetworkOf(*ip, 64).first;
}

bool IsLoopback(const sockaddr_storage& address) {
  const auto ip = IpOf(address);
  if (!ip) return address.ss_family == AF_UNIX;
  constexpr base::IpNetwork kLoopbackV4{base::IpAddress::FromV4(127u << 24), 96 + 8};
  return kLoopbackV4.Contains(*ip) || *ip == base::IpAddress{0, 1};
}

std::string AddressText(const sockaddr_storage& address) {
  const auto ip = IpOf(address);
  if (!ip) return "unix";
  // The port is at the same offset in both structs.
  sockaddr_in with_port{};
  std::memcpy(&with_port, &address, sizeof(with_port));
  return fmt::format(fmt::runtime(ip->is_v4() ? "{}:{}" : "[{}]:{}"), base::ToString(*ip),
                     ntohs(with_port.sin_port));
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

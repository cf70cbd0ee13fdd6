#include "headgate/net/connection_limits.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace headgate::net {
namespace {

constexpr std::array<uint8_t, 12> kV4Mapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

// The 16 bytes of an IPv6 address or the 4 bytes of an IPv4 address, in network order.
std::array<uint8_t, 16> BytesV6(const sockaddr_storage& address) {
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof(v6));
  std::array<uint8_t, 16> bytes{};
  std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
  return bytes;
}

std::array<uint8_t, 4> BytesV4(const sockaddr_storage& address) {
  sockaddr_in v4{};
  std::memcpy(&v4, &address, sizeof(v4));
  std::array<uint8_t, 4> bytes{};
  std::memcpy(bytes.data(), &v4.sin_addr, bytes.size());
  return bytes;
}

// The IPv4 address, including one that is mapped into IPv6.
std::optional<std::array<uint8_t, 4>> V4Of(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) return BytesV4(address);
  if (address.ss_family != AF_INET6) return std::nullopt;
  const std::array<uint8_t, 16> bytes = BytesV6(address);
  if (!std::equal(kV4Mapped.begin(), kV4Mapped.end(), bytes.begin())) return std::nullopt;
  return std::array<uint8_t, 4>{bytes[12], bytes[13], bytes[14], bytes[15]};
}

}  // namespace

AddressKey KeyOf(const sockaddr_storage& address) {
  AddressKey key{};
  if (const auto v4 = V4Of(address)) {
    key[0] = 4;
    std::copy(v4->begin(), v4->end(), key.begin() + 1);
  } else if (address.ss_family == AF_INET6) {
    key[0] = 6;
    const std::array<uint8_t, 16> bytes = BytesV6(address);
    std::copy_n(bytes.begin(), 8, key.begin() + 1);
  }
  return key;
}

bool IsLoopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_UNIX) return true;
  if (const auto v4 = V4Of(address)) return (*v4)[0] == 127;
  if (address.ss_family != AF_INET6) return false;
  std::array<uint8_t, 16> one{};
  one[15] = 1;
  return BytesV6(address) == one;
}

std::string AddressText(const sockaddr_storage& address) {
  // The port is at the same offset in both structs.
  sockaddr_in with_port{};
  std::memcpy(&with_port, &address, sizeof(with_port));
  const uint16_t port = ntohs(with_port.sin_port);
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (const auto v4 = V4Of(address)) {
    ::inet_ntop(AF_INET, v4->data(), text.data(), text.size());
    return fmt::format("{}:{}", text.data(), port);
  }
  if (address.ss_family != AF_INET6) return "unix";
  ::inet_ntop(AF_INET6, BytesV6(address).data(), text.data(), text.size());
  return fmt::format("[{}]:{}", text.data(), port);
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

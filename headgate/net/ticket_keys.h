// The keys that encrypt session tickets, with which a client resumes a TLS session. A thief of a
// key can read the sessions whose tickets it encrypted, so keys do not live long:
//
//   key 1  new tickets | old tickets |
//   key 2              | new tickets | old tickets |
//          0 h         2 h           4 h           6 h
#pragma once

#include <array>
#include <chrono>
#include <mutex>
#include <optional>

#include "headgate/base/clock.h"

namespace headgate::net {

struct TicketKey {
  std::array<unsigned char, 16> name;
  std::array<unsigned char, 32> cipher;
  std::array<unsigned char, 32> mac;
  bool operator==(const TicketKey&) const = default;
};

// Thread-safe. All contexts of a server share one, so that sessions survive a change of the
// certificates.
class TicketKeys {
 public:
  // As long as OpenSSL lets a client resume a session (SSL_CTX_get_timeout).
  static constexpr base::Duration kLife = std::chrono::hours(2);

  explicit TicketKeys(base::BootTime now);
  ~TicketKeys();
  TicketKeys(const TicketKeys&) = delete;

  // The key for new tickets.
  TicketKey Current(base::BootTime now);
  // The key of this name, unless it is forgotten.
  std::optional<TicketKey> Find(const unsigned char* name, base::BootTime now);

 private:
  void Rotate(base::BootTime now);

  std::mutex mutex_;
  TicketKey current_;
  std::optional<TicketKey> previous_;
  base::BootTime since_;  // when current_ was made
};

}  // namespace headgate::net

// Bounds the ClientHello of a TLS client, and reads its length before OpenSSL does. OpenSSL accepts
// up to 128 KiB, and allocates them as soon as the 9 bytes of the two headers announce them.
//
//   record       type (1) version (2) length (2) fragment     22 = handshake (RFC 8446, 5.1)
//   message      type (1) length (3) body                     in the fragments, cut anywhere
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace headgate::net {

class ClientHelloBound {
 public:
  // The bytes of one ClientHello. With a post-quantum key share and a session ticket it has less
  // than 4 KiB.
  static constexpr size_t kBytesMax = size_t{16} << 10;

  // Takes the next bytes that the client has sent. Returns false if a message that begins in them
  // is too long. Call it until the server sends a message that is not a ServerHello: later bytes
  // may be encrypted, and no ClientHello follows. A HelloRetryRequest is a ServerHello (RFC
  // 8446, 4.1.4); the client answers it with a second ClientHello.
  bool Take(std::span<const char> bytes);

 private:
  // A header that arrives in pieces.
  template <size_t kSize>
  struct Header {
    // Takes a part of `bytes` away; returns whether the header is complete.
    bool Take(std::span<const char>& bytes);

    std::array<uint8_t, kSize> bytes{};
    size_t size = 0;
  };

  bool TakeFragment(std::span<const char> fragment);

  Header<5> record_;
  size_t record_left_ = 0;
  Header<4> message_;
  size_t message_left_ = 0;
  bool is_first_ = true;
  bool is_old_form_ = false;
};

}  // namespace headgate::net

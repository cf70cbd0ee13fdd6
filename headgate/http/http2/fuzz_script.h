// Reads a fuzzer's input as a script: small numbers that choose frames and calls. Most scripts are
// nearly valid conversations, which raw bytes hardly ever are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/http/http2/test_frames.h"

namespace headgate::http::http2 {

class FuzzScript {
 public:
  FuzzScript(const uint8_t* data, size_t size)
      : bytes_(reinterpret_cast<const char*>(data), size) {}

  bool done() const { return bytes_.empty(); }
  // 0 to 255; 0 at the end.
  uint32_t Byte() {
    if (bytes_.empty()) return 0;
    const auto byte = static_cast<uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return byte;
  }
  std::string_view Bytes(size_t most) {
    const std::string_view bytes = bytes_.substr(0, most);
    bytes_.remove_prefix(bytes.size());
    return bytes;
  }

  // One of the first streams of a client.
  uint32_t Stream() { return 1 + 2 * (Byte() % 8); }

  // A header block of known fields, some of which are invalid.
  std::string Block(bool request) {
    std::string block;
    const uint32_t kind = Byte();
    if (kind % 4 == 0) return std::string(Bytes(Byte()));
    if (request && kind % 4 != 1) {
      block = Literal(":method", kind % 8 == 2 ? "POST" : "GET") + Literal(":scheme", "http") +
              Literal(":path", "/a") + Literal(":authority", "a.example");
    } else if (!request && kind % 4 != 1) {
      block = Literal(":status", kind % 8 == 2 ? "200" : "103");
    }
    for (uint32_t count = Byte() % 6; count > 0; --count) {
      const std::string_view field = kFields[Byte() % kFields.size()];
      const size_t colon = field.find(':', 1);
      block += Literal(field.substr(0, colon), field.substr(colon + 1));
    }
    return block;
  }

  // A frame of the peer.
  std::string NextFrame(bool request) {
    switch (Byte() % 12) {
      case 0:
      case 1:
      case 2:
        return HeadersFrame(request, kTHeaders);
      case 3:
        return Data(Stream(), std::string(Byte() * 64, 'a'), static_cast<int>(Byte() & 1));
      case 4:
        return Frame(kTData, static_cast<int>(Byte() & 0x9), Stream(), Bytes(Byte() % 32));
      case 5:
        return Reset(Stream(), Byte() % 16);
      case 6:
        return WindowUpdate(Byte() % 2 == 0 ? 0 : Stream(), Byte() << (Byte() % 24));
      case 7:
        return Settings(Setting(static_cast<int>(Byte() % 10), Byte() << (Byte() % 25)),
                        static_cast<int>(Byte() & 1) * (Byte() % 8 == 0 ? 1 : 0));
      case 8:
        return Ping(static_cast<int>(Byte() & 1));
      case 9:
        return HeadersFrame(request, kTContinuation);
      case 10:
        return Frame(kTGoaway, 0, 0, Number(Byte(), 4) + Number(Byte() % 16, 4));
      default:
        return Frame(static_cast<int>(Byte() % 20), static_cast<int>(Byte()), Byte() % 20,
                     Bytes(Byte() % 64));
    }
  }

 private:
  std::string HeadersFrame(bool request, int type) {
    const uint32_t stream = Stream();
    const int flags = static_cast<int>(Byte() & (kEndStream | kEndHeaders));
    return Frame(type, flags, stream, Block(request));
  }

  static constexpr std::array<std::string_view, 20> kFields = {"content-length:5",
                                                               "content-length:0",
                                                               "content-length:640",
                                                               ":path:/b",
                                                               ":protocol:websocket",
                                                               ":method:CONNECT",
                                                               ":method:HEAD",
                                                               "x:y",
                                                               "x:\n",
                                                               "X:y",
                                                               "te:trailers",
                                                               "te:gzip",
                                                               "connection:close",
                                                               "host:a.example",
                                                               "host:b.example",
                                                               "cookie:a=b",
                                                               "expect:100-continue",
                                                               ":status:204",
                                                               ":status:304",
                                                               ":status:101"};

  std::string_view bytes_;
};

}  // namespace headgate::http::http2

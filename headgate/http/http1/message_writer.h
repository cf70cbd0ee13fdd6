// Writes heads and bodies of HTTP/1 messages. Names and values are valid: only readers, which
// validate, and trusted code make heads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "headgate/http/fields.h"
#include "headgate/http/message.h"

namespace headgate::http::http1 {

// Writes a body in parts.
class BodyWriter {
 public:
  enum class Framing : uint8_t {
    kDropped,  // the message has no content: data is not written
    kSized,
    kChunked,
    kUntilEnd,  // as is, until the direction ends
  };

  void Begin(Framing framing, uint64_t bytes = 0) {
    framing_ = framing;
    left_ = bytes;
  }
  // More data than the size of a sized body stops the process.
  void Write(std::string_view data, std::string& out);
  // Returns false if the body is shorter than its size. Trailers are written only in chunks;
  // `trailers` may be null.
  [[nodiscard]] bool End(const Fields* trailers, std::string& out);

  Framing framing() const { return framing_; }

 private:
  Framing framing_ = Framing::kDropped;
  uint64_t left_ = 0;  // missing bytes of a sized body
};

// How a response is framed, and what it says about its connection.
struct ResponseLines {
  const BodyLength* length = nullptr;  // written as Content-Length or Transfer-Encoding if not null
  std::string_view connection{};       // the value of Connection; empty: none
  std::string_view upgrade{};          // the value of Upgrade; empty: none
};
void WriteResponseHead(int status, const Fields& fields, const ResponseLines& lines,
                       std::string& out);

// Writes the head of a request in HTTP/1.1, and begins its body. Host comes first.
void WriteRequestHead(const RequestHead& head, BodyWriter& body, std::string& out);

}  // namespace headgate::http::http1

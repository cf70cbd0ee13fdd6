// Frames for tests, written and read by this file alone, so that a test does not believe nghttp2
// twice. Header blocks are written without compression; the output's are read with nghttp2.
#pragma once

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headgate::http::http2 {

inline constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// Frame types and flags of RFC 9113, 6.
inline constexpr int kTData = 0, kTHeaders = 1, kTPriority = 2, kTReset = 3, kTSettings = 4,
                     kTPush = 5, kTPing = 6, kTGoaway = 7, kTWindow = 8, kTContinuation = 9;
inline constexpr int kEndStream = 1, kAck = 1, kEndHeaders = 4, kPadded = 8, kWithPriority = 32;

// `bytes` bytes of a number, the highest first.
inline std::string Number(uint64_t number, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(number >> (8 * i) & 0xff);
  return text;
}

inline std::string Frame(int type, int flags, uint32_t stream, std::string_view payload = {}) {
  return Number(payload.size(), 3) + Number(static_cast<uint64_t>(type), 1) +
         Number(static_cast<uint64_t>(flags), 1) + Number(stream, 4) + std::string(payload);
}

// An integer of RFC 7541, 5.1, after the bits `first` of the first byte.
inline std::string HpackInteger(size_t value, int prefix_bits, int first) {
  const size_t most = (size_t{1} << prefix_bits) - 1;
  if (value < most) return std::string(1, static_cast<char>(first | static_cast<int>(value)));
  std::string text(1, static_cast<char>(first | static_cast<int>(most)));
  for (value -= most; value >= 128; value >>= 7) text += static_cast<char>(value % 128 + 128);
  return text + static_cast<char>(value);
}
inline std::string HpackText(std::string_view text) {
  return HpackInteger(text.size(), 7, 0) + std::string(text);
}
// A literal without indexing (RFC 7541, 6.2.2).
inline std::string Literal(std::string_view name, std::string_view value) {
  return std::string(1, '\0') + HpackText(name) + HpackText(value);
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

inline std::string Block(const Pairs& fields) {
  std::string block;
  for (const auto& [name, value] : fields) block += Literal(name, value);
  return block;
}
inline std::string Headers(uint32_t stream, const Pairs& fields, int flags = kEndStream) {
  return Frame(kTHeaders, flags | kEndHeaders, stream, Block(fields));
}
inline std::string Data(uint32_t stream, std::string_view bytes, int flags = 0) {
  return Frame(kTData, flags, stream, bytes);
}
inline std::string Reset(uint32_t stream, uint32_t error) {
  return Frame(kTReset, 0, stream, Number(error, 4));
}
inline std::string WindowUpdate(uint32_t stream, uint32_t bytes) {
  return Frame(kTWindow, 0, stream, Number(bytes, 4));
}
inline std::string Setting(int id, uint32_t value) {
  return Number(static_cast<uint64_t>(id), 2) + Number(value, 4);
}
inline std::string Settings(std::string_view entries = {}, int flags = 0) {
  return Frame(kTSettings, flags, 0, entries);
}
inline std::string Ping(int flags = 0) { return Frame(kTPing, flags, 0, "12345678"); }

inline Pairs Get(std::string_view path = "/") {
  return {{":method", "GET"},
          {":scheme", "http"},
          {":path", std::string(path)},
          {":authority", "a.example"}};
}
inline Pairs Post(Pairs more = {}) {
  Pairs fields = Get();
  fields[0].second = "POST";
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}
inline Pairs With(Pairs fields, const Pairs& more) {
  fields.insert(fields.end(), more.begin(), more.end());
  return fields;
}

// Reads output, a line for each frame:
//   HEADERS 1 end :status=200 a=b      DATA 1 5 end       RST 1 PROTOCOL_ERROR
//   GOAWAY 3 NO_ERROR                  SETTINGS 1=2 ack   WINDOW 0 +100
class FrameLog {
 public:
  FrameLog() { nghttp2_hd_inflate_new(&inflater_); }
  ~FrameLog() { nghttp2_hd_inflate_del(inflater_); }
  FrameLog(const FrameLog&) = delete;

  std::vector<std::string> Read(std::string_view bytes) {
    std::vector<std::string> lines;
    rest_ += bytes;
    while (rest_.size() >= 9) {
      const size_t size = Value(rest_, 0, 3);
      if (rest_.size() < 9 + size) break;
      lines.push_back(Line(Value(rest_, 3, 1), Value(rest_, 4, 1),
                           static_cast<uint32_t>(Value(rest_, 5, 4)),
                           std::string_view(rest_).substr(9, size)));
      rest_.erase(0, 9 + size);
    }
    return lines;
  }
  // The data of all DATA frames so far.
  std::string data;

 private:
  static size_t Value(std::string_view bytes, size_t at, size_t size) {
    size_t value = 0;
    for (const char c : bytes.substr(at, size)) value = value << 8 | static_cast<uint8_t>(c);
    return value;
  }
  static std::string Error(size_t code) {
    return nghttp2_http2_strerror(static_cast<uint32_t>(code));
  }

  std::string Line(size_t type, size_t flags, uint32_t stream, std::string_view payload) {
    const std::string end = (flags & kEndStream) != 0 ? " end" : "";
    const std::string ack = (flags & kAck) != 0 ? " ack" : "";
    switch (type) {
      case kTData:
        data += payload;
        return fmt::format("DATA {} {}{}", stream, payload.size(), end);
      case kTHeaders:
        return fmt::format("HEADERS {}{}{}", stream, end, Fields(payload));
      case kTReset:
        return fmt::format("RST {} {}", stream, Error(Value(payload, 0, 4)));
      case kTSettings: {
        std::string line = "SETTINGS" + ack;
        for (size_t at = 0; at < payload.size(); at += 6)
          line += fmt::format(" {}={}", Value(payload, at, 2), Value(payload, at + 2, 4));
        return line;
      }
      case kTPing:
        return "PING" + ack;
      case kTGoaway:
        return fmt::format("GOAWAY {} {}", Value(payload, 0, 4), Error(Value(payload, 4, 4)));
      case kTWindow:
        return fmt::format("WINDOW {} +{}", stream, Value(payload, 0, 4));
      default:
        return fmt::format("TYPE{} {}", type, stream);
    }
  }

  std::string Fields(std::string_view block) {
    std::string text;
    const auto* at = reinterpret_cast<const uint8_t*>(block.data());
    size_t left = block.size();
    for (int flags = 0; (flags & NGHTTP2_HD_INFLATE_FINAL) == 0;) {
      nghttp2_nv field;
      const ssize_t taken = nghttp2_hd_inflate_hd2(inflater_, &field, &flags, at, left, 1);
      if (taken < 0) return " invalid";
      at += taken;
      left -= static_cast<size_t>(taken);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0) continue;
      text += fmt::format(" {}={}",
                          std::string_view(reinterpret_cast<char*>(field.name), field.namelen),
                          std::string_view(reinterpret_cast<char*>(field.value), field.valuelen));
    }
    nghttp2_hd_inflate_end_headers(inflater_);
    return text;
  }

  nghttp2_hd_inflater* inflater_ = nullptr;
  std::string rest_;
};

// The errors, answers and acknowledgements among lines of a FrameLog:
//   "1:200" for each answer, "RST 1 PROTOCOL_ERROR", "PING ack", "SETTINGS ack", or
//   "GOAWAY PROTOCOL_ERROR" alone, since the answers before it may be lost.
inline std::string Outcome(const std::vector<std::string>& lines) {
  std::string outcome;
  for (const std::string& line : lines) {
    std::string word;
    if (line.starts_with("GOAWAY ")) {
      const std::string error = line.substr(line.find(' ', 7) + 1);
      if (error != "NO_ERROR") return "GOAWAY " + error;
    } else if (line.starts_with("RST ") && !line.ends_with(" NO_ERROR")) {
      word = line;
    } else if (line.starts_with("HEADERS ")) {
      const size_t status = line.find(":status=") + 8;
      word = line.substr(8, line.find(' ', 8) - 8) + ":" + line.substr(status, 3);
    } else if (line == "PING ack" || line == "SETTINGS ack") {
      word = line;
    }
    if (!word.empty()) outcome += (outcome.empty() ? "" : ", ") + word;
  }
  return outcome;
}

}  // namespace headgate::http::http2

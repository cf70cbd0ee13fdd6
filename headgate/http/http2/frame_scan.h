// Finds the frames in the bytes of an HTTP/2 connection (RFC 9113, 4.1), so that each can be judged
// before it is processed. Does not look at payloads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace headgate::http::http2 {

inline constexpr size_t kFrameHeaderBytes = 9;

enum class FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kRstStream = 3,
  kSettings = 4,
  kPushPromise = 5,
  kPing = 6,
  kGoaway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
  kPriorityUpdate = 16,  // RFC 9218, 7.1
};

inline constexpr uint8_t kFlagEndStream = 0x1;   // DATA, HEADERS
inline constexpr uint8_t kFlagAck = 0x1;         // SETTINGS, PING
inline constexpr uint8_t kFlagEndHeaders = 0x4;  // HEADERS, CONTINUATION

struct FrameHeader {
  uint32_t payload_bytes = 0;
  FrameType type = FrameType::kSettings;
  uint8_t flags = 0;
  int32_t stream = 0;

  bool has(uint8_t flag) const { return (flags & flag) != 0; }
};

class FrameScan {
 public:
  // `preface_bytes` precede the first frame.
  explicit FrameScan(size_t preface_bytes) : payload_left_(preface_bytes) {}

  struct Piece {
    std::string_view bytes{};   // at most one frame; empty while a frame header is incomplete
    bool begins_frame = false;  // with the header at header()
  };
  // Removes the next piece from `input`, which must not be empty. Its bytes are valid until the
  // next call, or until the input is freed.
  Piece Next(std::string_view& input);

  const FrameHeader& header() const { return header_; }
  bool between_frames() const { return payload_left_ == 0 && kept_bytes_ == 0; }

 private:
  void Parse(std::string_view bytes);

  FrameHeader header_;
  size_t payload_left_;
  std::array<char, kFrameHeaderBytes> kept_{};  // the beginning of a header that was split
  size_t kept_bytes_ = 0;
};

}  // namespace headgate::http::http2

#include "headgate/http/http2/frame_scan.h"

#include <algorithm>

namespace headgate::http::http2 {
namespace {

std::string_view Take(std::string_view& input, size_t bytes) {
  const std::string_view taken = input.substr(0, bytes);
  input.remove_prefix(taken.size());
  return taken;
}

}  // namespace

FrameScan::Piece FrameScan::Next(std::string_view& input) {
  if (payload_left_ > 0) {
    const std::string_view bytes = Take(input, payload_left_);
    payload_left_ -= bytes.size();
    return {.bytes = bytes};
  }
  if (kept_bytes_ == 0 && input.size() >= kFrameHeaderBytes) {
    Parse(input);
    const std::string_view bytes = Take(input, kFrameHeaderBytes + payload_left_);
    payload_left_ -= bytes.size() - kFrameHeaderBytes;
    return {.bytes = bytes, .begins_frame = true};
  }
  const std::string_view more = Take(input, kFrameHeaderBytes - kept_bytes_);
  std::copy(more.begin(), more.end(), kept_.begin() + kept_bytes_);
  kept_bytes_ += more.size();
  if (kept_bytes_ < kFrameHeaderBytes) return {};
  kept_bytes_ = 0;
  const std::string_view bytes(kept_.data(), kept_.size());
  Parse(bytes);
  return {.bytes = bytes, .begins_frame = true};
}

void FrameScan::Parse(std::string_view bytes) {
  const auto byte = [bytes](size_t i) { return uint32_t{static_cast<unsigned char>(bytes[i])}; };
  header_.payload_bytes = byte(0) << 16 | byte(1) << 8 | byte(2);
  header_.type = static_cast<FrameType>(byte(3));
  header_.flags = static_cast<uint8_t>(byte(4));
  // The highest bit is reserved and ignored.
  header_.stream =
      static_cast<int32_t>((byte(5) & 0x7f) << 24 | byte(6) << 16 | byte(7) << 8 | byte(8));
  payload_left_ = header_.payload_bytes;
}

}  // namespace headgate::http::http2

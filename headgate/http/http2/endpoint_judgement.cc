// The judgement of every frame before nghttp2 processes it: budgets, header blocks, late frames.
#include <nghttp2/nghttp2.h>

#include <algorithm>

#include "headgate/http/http2/endpoint.h"

namespace headgate::http::http2 {
namespace {

// A header block of 64 KiB fits into five frames of the usual size.
constexpr int kBlockFramesMax = 8;
constexpr uint32_t kBlockBytesMax = 128 << 10;

}  // namespace

bool Endpoint::Judge(const FrameHeader& frame, base::Instant now) {
  switch (frame.type) {
    case FrameType::kData:
      if (frame.payload_bytes == 0 && !frame.has(kFlagEndStream) && !Afford(Flood::kEmptyData, now))
        return false;
      return JudgeLate(frame);
    case FrameType::kHeaders:
      return JudgeBlock(frame) && JudgeLate(frame);
    case FrameType::kContinuation:
      return JudgeBlock(frame);
    case FrameType::kRstStream:
      return Afford(Flood::kResets, now);
    case FrameType::kSettings:
      return frame.has(kFlagAck) || Afford(Flood::kSettings, now);
    case FrameType::kPing:
      return frame.has(kFlagAck) || Afford(Flood::kPings, now);
    case FrameType::kWindowUpdate:
      return Afford(Flood::kWindowUpdates, now);
    case FrameType::kPriority:
      if (frame.stream == 0) {
        // RFC 9113, 6.3. nghttp2 ignores all of them.
        Fail(ErrorCode::kProtocolError);
        return false;
      }
      [[fallthrough]];
    case FrameType::kPriorityUpdate:
      return Afford(Flood::kPriorities, now);
    case FrameType::kPushPromise:
    case FrameType::kGoaway:
      return true;
  }
  return Afford(Flood::kUnknownFrames, now);
}

bool Endpoint::JudgeBlock(const FrameHeader& frame) {
  if (frame.type == FrameType::kHeaders) block_bytes_ = 0, block_frames_ = 0;
  in_block_ = !frame.has(kFlagEndHeaders);
  block_bytes_ += frame.payload_bytes;
  if (++block_frames_ <= kBlockFramesMax && block_bytes_ <= kBlockBytesMax) return true;
  Flooded(Flood::kContinuations);
  return false;
}

// HEADERS and DATA of a stream that is closed, which nghttp2 would ignore (RFC 9113, 5.1 and
// 5.1.1). They are allowed only while the peer may not know of our reset yet. A peer that may have
// streams_max streams open can have that many unseen resets, so the ring holds all of them.
bool Endpoint::JudgeLate(const FrameHeader& frame) {
  if (role_ == Role::kClient || frame.stream % 2 == 0) return true;
  if (frame.stream > newest_stream_) {
    if (frame.type == FrameType::kHeaders) {
      newest_stream_ = frame.stream;
      guard_.Earn(Flood::kPriorities, 10);
      guard_.Earn(Flood::kWindowUpdates, 5);
    }
    return true;
  }
  if (frame.stream > last_taken_ || nghttp2_session_find_stream(session_, frame.stream) != nullptr)
    return true;
  const auto closed = std::find_if(
      closed_.begin(), closed_.end(),
      [&frame](const ClosedStream& candidate) { return candidate.stream == frame.stream; });
  if (closed != closed_.end() && closed->reset_here) return true;
  const bool never_opened = closed == closed_.end() && frame.type == FrameType::kHeaders;
  Fail(never_opened ? ErrorCode::kProtocolError : ErrorCode::kStreamClosed);
  return false;
}

bool Endpoint::Afford(Flood kind, base::Instant now) {
  if (guard_.Take(kind, now)) return true;
  Flooded(kind);
  return false;
}

void Endpoint::Flooded(Flood kind) {
  if (failed_) return;
  counters_.floods[static_cast<size_t>(kind)].Add();
  Fail(ErrorCode::kEnhanceYourCalm);
}

void Endpoint::NoteClosed(int32_t stream, bool reset_here) {
  if (role_ == Role::kClient) return;
  if (stream == closed_latest_) return;  // OnFrameSent has noted the reset
  closed_latest_ = stream;
  if (closed_.size() < options_.streams_max) {
    closed_.push_back({stream, reset_here});
  } else {
    closed_[closed_next_++ % closed_.size()] = {stream, reset_here};
  }
}

}  // namespace headgate::http::http2

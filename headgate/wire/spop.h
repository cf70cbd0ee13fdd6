// HAProxy's Stream Processing Offload Protocol, version 2.0 (HAProxy's doc/SPOE.txt): the frames
// that HAProxy and an agent exchange, and the typed values in them.
//
//   frame    = length (4 bytes) type (1) flags (4) stream-id (varint) frame-id (varint) payload
//   NOTIFY   = { message name, number of arguments (1), { name, value } }
//   ACK      = { action (1), number of arguments (1), scope (1), variable name, value }
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "headgate/base/ip_address.h"

namespace headgate::wire {

enum class SpopType : uint8_t {
  kHaproxyHello = 1,
  kHaproxyDisconnect = 2,
  kNotify = 3,
  kAgentHello = 101,
  kAgentDisconnect = 102,
  kAck = 103,
};

// Why a connection ends, as DISCONNECT frames state it.
enum class SpopStatus : uint32_t {
  kNormal = 0,
  kTooBig = 3,
  kInvalid = 4,
  kNoVersion = 5,
  kNoFrameSize = 6,
  kBadVersion = 8,
  kBadFrameSize = 9,
  kFragmented = 10,
};

// The smallest size of a frame that a peer may announce, and the largest that is taken. HAProxy
// announces its `tune.bufsize` (16 KiB unless it is raised), and a message about a request fits
// into it: with smaller frames, large requests would get no verdict.
inline constexpr uint32_t kSpopFrameBytesMin = 256;
inline constexpr uint32_t kSpopFrameBytesMax = 1024 * 1024;

inline constexpr size_t kSpopLengthBytes = 4;

struct SpopFrame {
  SpopType type = SpopType::kNotify;
  bool complete = true;  // not a fragment
  uint64_t stream_id = 0;
  uint64_t frame_id = 0;
  std::string_view payload{};
};

struct SpopValue {
  enum class Kind : uint8_t { kNull, kBool, kNumber, kIp, kText };
  Kind kind = Kind::kNull;
  bool truth = false;
  int64_t number = 0;
  bool is_unsigned = false;  // the number: its bits are those of a uint64_t
  base::IpAddress ip{};
  std::string_view text{};  // of a string or a binary value
};

// The value as HAProxy writes it in a header: a boolean is 1 or 0, and null is empty. Valid as long
// as the bytes that it was read from, and `scratch`.
std::string_view TextOf(const SpopValue& value, std::string& scratch);

// Each reads from the front of `bytes` and removes the bytes that it has read. Returns nothing if
// the bytes end too early or are not valid; `bytes` is then unspecified.
std::optional<uint64_t> TakeSpopVarint(std::string_view& bytes);
std::optional<std::string_view> TakeSpopText(std::string_view& bytes);
std::optional<SpopValue> TakeSpopValue(std::string_view& bytes);
// The length that a frame begins with; it does not count itself. `bytes` has at least
// kSpopLengthBytes.
uint32_t SpopLength(std::string_view bytes);
// A frame without its length.
std::optional<SpopFrame> ParseSpopFrame(std::string_view bytes);

void AppendSpopVarint(uint64_t value, std::string& out);
void AppendSpopText(std::string_view text, std::string& out);  // without a type
void AppendSpopTextValue(std::string_view text, std::string& out);
void AppendSpopNumberValue(uint32_t value, std::string& out);

// Appends the head of a frame; returns the place that EndSpopFrame needs once the payload follows.
size_t BeginSpopFrame(SpopType type, uint64_t stream_id, uint64_t frame_id, std::string& out);
void EndSpopFrame(size_t begin, std::string& out);

// Appends the part of an action that precedes the value: set a variable of the transaction.
void AppendSpopSetVariable(std::string_view name, std::string& out);

}  // namespace headgate::wire

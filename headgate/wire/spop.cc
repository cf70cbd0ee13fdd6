#include "headgate/wire/spop.h"

#include <algorithm>

namespace headgate::wire {
namespace {

constexpr uint32_t kFlagComplete = 1;
constexpr uint8_t kTypeMask = 0x0f;
constexpr uint8_t kTrue = 0x10;
constexpr uint8_t kUint32Value = 3;
constexpr uint8_t kTextValue = 8;
constexpr uint8_t kSetVariable = 1;
constexpr uint8_t kSetVariableArguments = 3;
constexpr uint8_t kTransaction = 2;

void AppendByte(uint8_t byte, std::string& out) { out.push_back(static_cast<char>(byte)); }

void AppendBigEndian(uint32_t value, std::string& out) {
  for (int shift = 24; shift >= 0; shift -= 8)
    AppendByte(static_cast<uint8_t>(value >> shift), out);
}

uint32_t ReadBigEndian(std::string_view bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(bytes[i]);
  return value;
}

std::optional<uint8_t> TakeByte(std::string_view& bytes) {
  if (bytes.empty()) return std::nullopt;
  const auto byte = static_cast<uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  return byte;
}

}  // namespace

// A number below 240 is one byte. Otherwise the first byte has the low four bits, and each further
// byte has seven bits; the top bit says that more bytes follow.
std::optional<uint64_t> TakeSpopVarint(std::string_view& bytes) {
  const auto first = TakeByte(bytes);
  if (!first) return std::nullopt;
  uint64_t value = *first;
  if (value < 240) return value;
  for (uint32_t shift = 4; shift < 64; shift += 7) {
    const auto byte = TakeByte(bytes);
    if (!byte) return std::nullopt;
    const uint64_t part = uint64_t{*byte} << shift;
    // More than 64 bits.
    if (part >> shift != *byte || value + part < value) return std::nullopt;
    value += part;
    if (*byte < 128) return value;
  }
  return std::nullopt;
}

void AppendSpopVarint(uint64_t value, std::string& out) {
  if (value < 240) return AppendByte(static_cast<uint8_t>(value), out);
  AppendByte(static_cast<uint8_t>(value | 240), out);
  value = (value - 240) >> 4;
  while (value >= 128) {
    AppendByte(static_cast<uint8_t>(value | 128), out);
    value = (value - 128) >> 7;
  }
  AppendByte(static_cast<uint8_t>(value), out);
}

std::optional<std::string_view> TakeSpopText(std::string_view& bytes) {
  const auto size = TakeSpopVarint(bytes);
  if (!size || *size > bytes.size()) return std::nullopt;
  const std::string_view text = bytes.substr(0, *size);
  bytes.remove_prefix(*size);
  return text;
}

std::string_view TextOf(const SpopValue& value, std::string& scratch) {
  switch (value.kind) {
    case SpopValue::Kind::kNull:
      return {};
    case SpopValue::Kind::kText:
      return value.text;
    case SpopValue::Kind::kBool:
      return value.truth ? "1" : "0";
    case SpopValue::Kind::kNumber:
      scratch = value.is_unsigned ? std::to_string(static_cast<uint64_t>(value.number))
                                  : std::to_string(value.number);
      return scratch;
    case SpopValue::Kind::kIp:
      scratch = base::ToString(value.ip);
      return scratch;
  }
  return {};
}

std::optional<SpopValue> TakeSpopValue(std::string_view& bytes) {
  using Kind = SpopValue::Kind;
  const auto head = TakeByte(bytes);
  if (!head) return std::nullopt;
  SpopValue value;
  switch (*head & kTypeMask) {
    case 0:
      return value;
    case 1:
      value.kind = Kind::kBool;
      value.truth = (*head & kTrue) != 0;
      return value;
    case 2:    // int32
    case 3:    // uint32
    case 4:    // int64
    case 5: {  // uint64
      const auto number = TakeSpopVarint(bytes);
      if (!number) return std::nullopt;
      value.kind = Kind::kNumber;
      value.number = static_cast<int64_t>(*number);
      value.is_unsigned = (*head & kTypeMask) == 3 || (*head & kTypeMask) == 5;
      return value;
    }
    case 6:  // IPv4
      if (bytes.size() < 4) return std::nullopt;
      value.kind = Kind::kIp;
      value.ip = base::IpAddress::FromV4(ReadBigEndian(bytes));
      bytes.remove_prefix(4);
      return value;
    case 7: {  // IPv6
      if (bytes.size() < 16) return std::nullopt;
      value.kind = Kind::kIp;
      value.ip = base::IpAddress::FromV6(
          static_cast<const uint8_t*>(static_cast<const void*>(bytes.data())));
      bytes.remove_prefix(16);
      return value;
    }
    case 8:    // string
    case 9: {  // binary
      const auto text = TakeSpopText(bytes);
      if (!text) return std::nullopt;
      value.kind = Kind::kText;
      value.text = *text;
      return value;
    }
    default:
      return std::nullopt;
  }
}

uint32_t SpopLength(std::string_view bytes) { return ReadBigEndian(bytes); }

std::optional<SpopFrame> ParseSpopFrame(std::string_view bytes) {
  const auto type = TakeByte(bytes);
  if (!type || bytes.size() < 4) return std::nullopt;
  SpopFrame frame{.type = static_cast<SpopType>(*type),
                  .complete = (ReadBigEndian(bytes) & kFlagComplete) != 0};
  bytes.remove_prefix(4);
  const auto stream_id = TakeSpopVarint(bytes);
  if (!stream_id) return std::nullopt;
  const auto frame_id = TakeSpopVarint(bytes);
  if (!frame_id) return std::nullopt;
  frame.stream_id = *stream_id;
  frame.frame_id = *frame_id;
  frame.payload = bytes;
  return frame;
}

void AppendSpopText(std::string_view text, std::string& out) {
  AppendSpopVarint(text.size(), out);
  out.append(text);
}

void AppendSpopTextValue(std::string_view text, std::string& out) {
  AppendByte(kTextValue, out);
  AppendSpopText(text, out);
}

void AppendSpopNumberValue(uint32_t value, std::string& out) {
  AppendByte(kUint32Value, out);
  AppendSpopVarint(value, out);
}

size_t BeginSpopFrame(SpopType type, uint64_t stream_id, uint64_t frame_id, std::string& out) {
  const size_t begin = out.size();
  AppendBigEndian(0, out);
  AppendByte(static_cast<uint8_t>(type), out);
  AppendBigEndian(kFlagComplete, out);
  AppendSpopVarint(stream_id, out);
  AppendSpopVarint(frame_id, out);
  return begin;
}

void EndSpopFrame(size_t begin, std::string& out) {
  std::string length;
  AppendBigEndian(static_cast<uint32_t>(out.size() - begin - kSpopLengthBytes), length);
  out.replace(begin, kSpopLengthBytes, length);
}

void AppendSpopSetVariable(std::string_view name, std::string& out) {
  AppendByte(kSetVariable, out);
  AppendByte(kSetVariableArguments, out);
  AppendByte(kTransaction, out);
  AppendSpopText(name, out);
}

}  // namespace headgate::wire

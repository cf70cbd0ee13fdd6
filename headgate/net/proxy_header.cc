#include "headgate/net/proxy_header.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "headgate/base/crc32c.h"

namespace headgate::net {
namespace {

using Client = ProxyHeader::Client;

constexpr std::string_view kTextBegin = "PROXY ";
constexpr std::string_view kTextEnd = "\r\n";
constexpr size_t kTextBytesMax = 107;

constexpr std::string_view kSignature{"\r\n\r\n\0\r\nQUIT\n", 12};
constexpr size_t kFixedBytes = 16;

uint8_t ByteAt(std::string_view bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

uint16_t NumberAt(std::string_view bytes, size_t at) {
  return static_cast<uint16_t>(ByteAt(bytes, at) << 8 | ByteAt(bytes, at + 1));
}

// ---- Version 1

std::optional<uint16_t> ReadPort(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  return port;
}

// The text up to the next space, which is removed with it.
std::string_view TakeWord(std::string_view& text) {
  const std::string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(std::min(word.size() + 1, text.size()));
  return word;
}

std::optional<ProxyHeader> ParseText(std::string_view line) {
  std::string_view rest =
      line.substr(kTextBegin.size(), line.size() - kTextBegin.size() - kTextEnd.size());
  if (rest == "UNKNOWN" || rest.starts_with("UNKNOWN ")) return ProxyHeader{};
  const std::string_view family = TakeWord(rest);
  const bool is_v4 = family == "TCP4";
  if (!is_v4 && family != "TCP6") return std::nullopt;
  const auto read_address = [is_v4](std::string_view word) {
    const bool has_family = (word.find(':') == word.npos) == is_v4;
    return has_family ? base::ParseIpAddress(word) : std::nullopt;
  };
  const auto source = read_address(TakeWord(rest));
  const auto destination = read_address(TakeWord(rest));
  const auto source_port = ReadPort(TakeWord(rest));
  const auto destination_port = ReadPort(rest);
  if (!source || !destination || !source_port || !destination_port) return std::nullopt;
  return ProxyHeader{.client = Client::kNamed, .ip = *source, .port = *source_port};
}

// ---- Version 2

constexpr uint8_t kLocal = 0x20;
constexpr uint8_t kProxy = 0x21;
constexpr uint8_t kUnspecified = 0x00;
constexpr uint8_t kTcp4 = 0x11;
constexpr uint8_t kTcp6 = 0x21;
constexpr uint8_t kUnixStream = 0x31;
constexpr uint8_t kTlvCrc32c = 0x03;

std::optional<size_t> AddressBytes(uint8_t family) {
  switch (family) {
    case kUnspecified:
      return 0;
    case kTcp4:
      return 12;
    case kTcp6:
      return 36;
    case kUnixStream:
      return 216;
    default:
      return std::nullopt;
  }
}

// The checksum of the header, computed as if the field of the checksum were 0.
uint32_t Crc32cWithoutField(std::string_view header, size_t field) {
  constexpr std::array<char, 4> kZeros{};
  const uint32_t before = base::Crc32c(header.substr(0, field));
  return base::Crc32c(header.substr(field + kZeros.size()),
                      base::Crc32c({kZeros.data(), kZeros.size()}, before));
}

bool TlvsValid(std::string_view header, size_t at) {
  while (at < header.size()) {
    if (header.size() - at < 3) return false;
    const uint8_t type = ByteAt(header, at);
    const size_t length = NumberAt(header, at + 1);
    at += 3;
    if (header.size() - at < length) return false;
    if (type == kTlvCrc32c) {
      if (length != 4) return false;
      const uint32_t stated =
          uint32_t{NumberAt(header, at)} << 16 | uint32_t{NumberAt(header, at + 2)};
      if (stated != Crc32cWithoutField(header, at)) return false;
    }
    at += length;
  }
  return true;
}

std::optional<ProxyHeader> ParseBinary(std::string_view header) {
  const uint8_t command = ByteAt(header, 12);
  // The specification says that the rest of a LOCAL header has no meaning.
  if (command == kLocal) return ProxyHeader{.client = Client::kProxyItself};
  if (command != kProxy) return std::nullopt;
  const uint8_t family = ByteAt(header, 13);
  const auto address_bytes = AddressBytes(family);
  if (!address_bytes || header.size() < kFixedBytes + *address_bytes) return std::nullopt;
  if (!TlvsValid(header, kFixedBytes + *address_bytes)) return std::nullopt;
  const std::string_view addresses = header.substr(kFixedBytes);
  if (family == kTcp4) {
    return ProxyHeader{.client = Client::kNamed,
                       .ip = base::IpAddress::FromV4(uint32_t{NumberAt(addresses, 0)} << 16 |
                                                     NumberAt(addresses, 2)),
                       .port = NumberAt(addresses, 8)};
  }
  if (family == kTcp6) {
    return ProxyHeader{.client = Client::kNamed,
                       .ip = base::IpAddress::FromV6(
                           static_cast<const uint8_t*>(static_cast<const void*>(addresses.data()))),
                       .port = NumberAt(addresses, 32)};
  }
  return ProxyHeader{};
}

bool BeginsAlike(std::string_view bytes, std::string_view begin) {
  const size_t size = std::min(bytes.size(), begin.size());
  return bytes.substr(0, size) == begin.substr(0, size);
}

}  // namespace

size_t ProxyHeaderReader::LengthOf(std::string_view bytes) const {
  if (BeginsAlike(bytes, kSignature)) {
    if (bytes.size() < kFixedBytes) return kFixedBytes;
    const size_t length = kFixedBytes + NumberAt(bytes, 14);
    return length <= kBytesMax ? length : 0;
  }
  if (!BeginsAlike(bytes, kTextBegin)) return 0;
  if (const size_t end = bytes.find(kTextEnd); end != bytes.npos) {
    const size_t length = end + kTextEnd.size();
    return length <= kTextBytesMax ? length : 0;
  }
  return bytes.size() < kTextBytesMax ? bytes.size() + 1 : 0;
}

size_t ProxyHeaderReader::Take(std::string_view waiting) {
  const size_t had = bytes_.size();
  bytes_ += waiting.substr(0, kBytesMax - had);
  const size_t length = LengthOf(bytes_);
  if (length == 0) {
    state_ = State::kInvalid;
    return 0;
  }
  if (length > bytes_.size()) return bytes_.size() - had;
  bytes_.resize(length);
  const std::optional<ProxyHeader> header =
      bytes_[0] == kSignature[0] ? ParseBinary(bytes_) : ParseText(bytes_);
  state_ = header ? State::kDone : State::kInvalid;
  if (header) header_ = *header;
  return length - had;
}

}  // namespace headgate::net

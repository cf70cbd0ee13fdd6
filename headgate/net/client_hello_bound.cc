#include "headgate/net/client_hello_bound.h"

#include <algorithm>

namespace headgate::net {
namespace {

constexpr uint8_t kHandshake = 22;

std::span<const char> Cut(std::span<const char>& bytes, size_t size) {
  const std::span<const char> cut = bytes.first(std::min(size, bytes.size()));
  bytes = bytes.subspan(cut.size());
  return cut;
}

}  // namespace

template <size_t kSize>
bool ClientHelloBound::Header<kSize>::Take(std::span<const char>& from) {
  for (const char byte : Cut(from, kSize - size)) bytes[size++] = static_cast<uint8_t>(byte);
  return size == kSize;
}

bool ClientHelloBound::Take(std::span<const char> bytes) {
  // A ClientHello in the form of SSL 2 cannot be longer than a record, and no second one follows.
  if (is_first_ && !bytes.empty()) is_old_form_ = (static_cast<uint8_t>(bytes[0]) & 0x80) != 0;
  is_first_ = is_first_ && bytes.empty();
  if (is_old_form_) return true;
  while (!bytes.empty()) {
    if (record_left_ > 0) {
      const std::span<const char> fragment = Cut(bytes, record_left_);
      record_left_ -= fragment.size();
      if (record_.bytes[0] == kHandshake && !TakeFragment(fragment)) return false;
    } else if (record_.Take(bytes)) {
      record_.size = 0;
      record_left_ = size_t{record_.bytes[3]} << 8 | record_.bytes[4];
    }
  }
  return true;
}

bool ClientHelloBound::TakeFragment(std::span<const char> fragment) {
  while (!fragment.empty()) {
    if (message_left_ > 0) {
      message_left_ -= Cut(fragment, message_left_).size();
    } else if (message_.Take(fragment)) {
      message_.size = 0;
      const auto& header = message_.bytes;
      message_left_ = size_t{header[1]} << 16 | size_t{header[2]} << 8 | header[3];
      if (message_left_ > kBytesMax) return false;
    }
  }
  return true;
}

}  // namespace headgate::net

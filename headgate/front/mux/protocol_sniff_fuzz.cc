// For any bytes, detection decides at the latest at the bound, and further bytes never change the
// decision.
#include "headgate/base/check.h"
#include "headgate/front/mux/protocol_sniff.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::span<const char> bytes(reinterpret_cast<const char*>(data), size);
  const std::optional<headgate::front::mux::Protocol> whole =
      headgate::front::mux::SniffProtocol(bytes);
  HEADGATE_CHECK(whole.has_value() || size < headgate::front::mux::kSniffBytesMax);
  // For long inputs, check only some prefixes.
  const size_t step = size / 256 + 1;
  for (size_t i = 0; i < size; i += step) {
    const auto part = headgate::front::mux::SniffProtocol(bytes.first(i));
    HEADGATE_CHECK(!part || part == whole);
  }
  return 0;
}

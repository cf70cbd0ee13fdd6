// Any bytes as a message of another process. Whatever is accepted is read again as it was written.
#include <string>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/handover/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headgate::handover;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto address = ParseAddressMessage(bytes); address.ok()) {
    const auto again = ParseAddressMessage(Write(*address));
    HEADGATE_CHECK(again.ok() && *again == *address);
  }
  if (const auto state = ParseSidecarState(bytes); state.ok()) {
    const auto again = ParseSidecarState(Write(*state));
    HEADGATE_CHECK(again.ok() && *again == *state);
  }
  return 0;
}

// A normalized host stays the same when it is normalized again, and with a port behind it.
#include <string>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/wire/request_host.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(static_cast<const char*>(static_cast<const void*>(data)), size);
  std::string host;
  if (!headgate::wire::NormalizeHost(text, host)) return 0;
  HEADGATE_CHECK(!host.empty() && host.find_first_of("/@%, \\") == host.npos);
  HEADGATE_CHECK(host.starts_with('[') || host.find(':') == host.npos);
  std::string again;
  HEADGATE_CHECK(headgate::wire::NormalizeHost(host + ":80", again) && again == host);
  HEADGATE_CHECK(!headgate::wire::NormalizeHost(host + ":80:80", again));
  return 0;
}

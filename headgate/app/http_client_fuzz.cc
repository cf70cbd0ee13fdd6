// Whatever answers on a port: a status and a body that are in it, or an error.
#include "headgate/app/http_client.h"
#include "headgate/base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto reply = headgate::app::ParseHttpReply(bytes);
  if (!reply.ok()) return 0;
  HEADGATE_CHECK(reply->status >= 100 && reply->status <= 999);
  HEADGATE_CHECK(bytes.ends_with(reply->body));
  return 0;
}

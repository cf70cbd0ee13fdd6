// Any bytes, whole or in pieces, give the same frames. The first byte chooses the pieces.
#include <string>
#include <string_view>

#include "headgate/front/spoe/spoe_rig.h"

namespace {

using headgate::front::spoe::SpoeRig;

constexpr std::string_view kMappings =
    "trusted_proxies: [10.0.0.0/8]\noriginal_request: x-original\nmappings:\n- descriptors:\n"
    "  - entries: [{key: k, client_address: true}]\n";

std::string Answers(std::string_view bytes, size_t piece) {
  SpoeRig rig(kMappings, {"k: 2/minute"});
  std::string output = rig.Say(headgate::front::spoe::Hello());
  for (size_t at = 0; at < bytes.size() && !rig.progress.close; at += piece)
    output += rig.Say(bytes.substr(at, piece));
  return output;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view bytes(static_cast<const char*>(static_cast<const void*>(data + 1)),
                               size - 1);
  HEADGATE_CHECK(Answers(bytes, bytes.size()) == Answers(bytes, data[0] % 64 + 1u));
  return 0;
}

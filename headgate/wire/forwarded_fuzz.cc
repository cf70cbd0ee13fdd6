// Reads any lines as a chain. The chain is bounded, and its members can be read. If a proxy appends
// a member to the lines, it is the last member of the chain, whatever the client wrote before it,
// or the chain is refused.
#include <string>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/wire/forwarded.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using headgate::wire::ForwardedChain;
  if (size == 0) return 0;
  const auto syntax = (data[0] & 1) == 0 ? ForwardedChain::Syntax::kXForwardedFor
                                         : ForwardedChain::Syntax::kForwarded;
  const std::string_view text(static_cast<const char*>(static_cast<const void*>(data)), size);
  const std::string_view client = text.substr(1);
  ForwardedChain chain;
  if (chain.AddLine(syntax, client)) {
    HEADGATE_CHECK(chain.size() <= headgate::wire::kForwardedMembersMax);
    for (size_t i = 0; i < chain.size(); ++i) (void)chain.Address(i);
  }
  std::string appended(client);
  appended += syntax == ForwardedChain::Syntax::kForwarded ? ", for=192.0.2.1" : ", 192.0.2.1";
  ForwardedChain behind_proxy;
  if (!behind_proxy.AddLine(syntax, appended)) return 0;
  // In Forwarded, an open quoted string of the client would swallow the proxy's member; then the
  // line is refused above.
  const auto last = behind_proxy.Address(behind_proxy.size() - 1);
  HEADGATE_CHECK(last == headgate::base::ParseIpAddress("192.0.2.1"));
  return 0;
}

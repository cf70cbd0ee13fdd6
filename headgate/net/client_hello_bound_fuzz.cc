// The judgement of any bytes does not depend on how they are cut into pieces.
#include <algorithm>
#include <span>

#include "headgate/base/check.h"
#include "headgate/net/client_hello_bound.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece = std::max<size_t>(1, data[0]);
  const std::span<const char> bytes(static_cast<const char*>(static_cast<const void*>(data + 1)),
                                    size - 1);
  headgate::net::ClientHelloBound whole;
  const bool keeps = whole.Take(bytes);
  headgate::net::ClientHelloBound in_pieces;
  bool keeps_so_far = true;
  for (size_t at = 0; keeps_so_far && at < bytes.size(); at += piece)
    keeps_so_far = in_pieces.Take(bytes.subspan(at, std::min(piece, bytes.size() - at)));
  HEADGATE_CHECK(keeps_so_far == keeps);
  return 0;
}

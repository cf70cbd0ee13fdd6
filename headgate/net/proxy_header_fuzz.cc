// The result for any bytes does not depend on how they are cut into pieces, and no byte behind the
// header is taken.
#include <algorithm>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/net/proxy_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using Reader = headgate::net::ProxyHeaderReader;
  if (size == 0) return 0;
  const size_t piece = std::max<size_t>(1, data[0]);
  const std::string_view bytes =
      std::string_view(static_cast<const char*>(static_cast<const void*>(data)), size).substr(1);
  if (bytes.empty()) return 0;
  Reader whole;
  const size_t taken = whole.Take(bytes);
  HEADGATE_CHECK(taken <= std::min(bytes.size(), Reader::kBytesMax));

  Reader in_pieces;
  size_t at = 0;
  while (in_pieces.state() == Reader::State::kMore && at < bytes.size()) {
    const size_t step = in_pieces.Take(bytes.substr(at, piece));
    HEADGATE_CHECK(step > 0 || in_pieces.state() == Reader::State::kInvalid);
    at += step;
  }
  HEADGATE_CHECK(in_pieces.state() == whole.state());
  if (whole.state() != Reader::State::kDone) return 0;
  HEADGATE_CHECK(at == taken);
  HEADGATE_CHECK(in_pieces.header().client == whole.header().client);
  HEADGATE_CHECK(in_pieces.header().ip == whole.header().ip);
  HEADGATE_CHECK(in_pieces.header().port == whole.header().port);
  return 0;
}

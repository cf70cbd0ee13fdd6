// The first byte chooses the place of the client; the rest are lines. A line gives the same request
// again, and its client is a part of it.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "headgate/base/check.h"
#include "headgate/replay/access_log.h"

namespace {

using namespace headgate::replay;

void ReadLines(std::string_view place, std::string_view text) {
  AccessLogReader reader(*ClientPlace::Parse(place));
  AccessLogReader again(*ClientPlace::Parse(place));
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const auto one = reader.Read(line);
    const auto other = again.Read(line);
    HEADGATE_CHECK(one.has_value() == other.has_value());
    if (!one) continue;
    HEADGATE_CHECK(one->at == other->at && one->client == other->client);
    HEADGATE_CHECK(one->at >= headgate::base::Instant::FromNanos(0));
    HEADGATE_CHECK(one->client.size() <= line.size() * 3);  // an escape of JSON can grow
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  constexpr std::string_view kPlaces[] = {"1", "-1", "3", "client_id"};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ReadLines(kPlaces[data[0] % std::size(kPlaces)], text.substr(1));
  return 0;
}

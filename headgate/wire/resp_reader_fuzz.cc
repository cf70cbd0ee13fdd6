// Any bytes, whole and in pieces, are the same values and the same error. The first byte chooses the pieces.
#include <algorithm>
#include <string>

#include "headgate/base/check.h"
#include "headgate/wire/resp_reader.h"

namespace {

using headgate::wire::ReplyBounds;
using headgate::wire::RespReader;

std::string Read(std::string_view stream, size_t piece) {
  RespReader reader(ReplyBounds{.depth_max = 6, .values_max = 256, .bulk_bytes_max = 4096, .line_bytes_max = 512});
  std::string said;
  std::string pending;
  while (!stream.empty()) {
    const size_t size = std::min(piece, stream.size());
    pending = std::string(pending).append(stream.substr(0, size));
    stream.remove_prefix(size);
    while (true) {
      size_t consumed = 0;
      const RespReader::Step step = reader.Read(pending, consumed);
      HEADGATE_CHECK(consumed <= pending.size());
      pending.erase(0, consumed);
      if (step == RespReader::Step::kError) return said.append("\nerror").append(reader.error());
      if (step == RespReader::Step::kIncomplete) break;
      said.append("\nvalue").append(reader.value().ToString());
    }
    HEADGATE_CHECK(pending.size() <= 4096 + 512 + 2);
  }
  return said;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t piece = 1 + data[0] % 61;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  HEADGATE_CHECK(Read(stream, piece) == Read(stream, stream.size()));
  return 0;
}

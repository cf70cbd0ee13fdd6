// Any bytes give the same values and the same error, whole or in pieces. The first byte chooses the
// pieces.
#include <string>

#include "headgate/base/check.h"
#include "headgate/wire/in_pieces.h"
#include "headgate/wire/resp_reader.h"

namespace {

using headgate::wire::FeedInPieces;
using headgate::wire::PiecesOf;
using headgate::wire::ReplyBounds;
using headgate::wire::RespReader;

std::string Read(std::string_view stream, size_t piece) {
  RespReader reader(ReplyBounds{
      .depth_max = 6, .values_max = 256, .bulk_bytes_max = 4096, .line_bytes_max = 512});
  std::string said;
  FeedInPieces(stream, PiecesOf(piece, stream.size()), [&](std::string& pending) {
    RespReader::Step step;
    do {
      size_t consumed = 0;
      step = reader.Read(pending, consumed);
      HEADGATE_CHECK(consumed <= pending.size());
      pending.erase(0, consumed);
      if (step == RespReader::Step::kValue)
        said.append("\nvalue").append(reader.value().ToString());
    } while (step == RespReader::Step::kValue);
    if (step == RespReader::Step::kError) said.append("\nerror").append(reader.error());
    HEADGATE_CHECK(step == RespReader::Step::kError || pending.size() <= 4096 + 512 + 2);
    return step != RespReader::Step::kError;
  });
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

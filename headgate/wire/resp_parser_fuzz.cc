// Any bytes give the same commands and the same error, whole or in pieces. The first byte chooses
// the pieces.
#include <string>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/wire/in_pieces.h"
#include "headgate/wire/resp_parser.h"

namespace {

using headgate::wire::FeedInPieces;
using headgate::wire::PiecesOf;
using headgate::wire::RespBounds;
using headgate::wire::RespParser;

// The commands of the stream as one string, in which the length of each argument keeps the
// arguments apart.
std::string Read(std::string_view stream, size_t piece) {
  RespParser parser(RespBounds{
      .args_max = 64, .bulk_bytes_max = 4096, .inline_bytes_max = 512, .command_bytes_max = 8192});
  std::string said;
  FeedInPieces(stream, PiecesOf(piece, stream.size()), [&](std::string& pending) {
    while (parser.Parse(pending) == RespParser::Step::kCommand) {
      said += "\ncommand";
      for (size_t i = 0; i < parser.size(); ++i)
        said += std::to_string(parser[i].size()).append(":").append(parser[i]);
      HEADGATE_CHECK(parser.consumed_bytes() > 0 && parser.consumed_bytes() <= pending.size());
      pending.erase(0, parser.consumed_bytes());
    }
    if (!parser.error().empty()) said.append("\nerror").append(parser.error());
    HEADGATE_CHECK(!parser.error().empty() || pending.size() <= 8192 + 65536 + 16);
    return parser.error().empty();
  });
  return said;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t piece = 1 + data[0] % 61;
  const std::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = Read(stream, stream.size());
  HEADGATE_CHECK(Read(stream, piece) == whole);
  // Fed byte by byte, no command can be read in one pass.
  HEADGATE_CHECK(Read(stream, 1) == whole);
  return 0;
}

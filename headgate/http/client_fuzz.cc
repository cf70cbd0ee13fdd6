// Any bytes give either a status and a body within the bounds, or an error, and always the same
// result in any pieces.
#include <algorithm>

#include "headgate/base/check.h"
#include "headgate/http/client.h"

namespace {

using headgate::http::Reply;
using headgate::http::ReplyParser;

absl::StatusOr<Reply> Parse(std::string_view bytes, size_t piece_bytes) {
  ReplyParser parser;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(piece_bytes, bytes.size()))) {
    HEADGATE_RETURN_IF_ERROR(parser.Take(bytes.substr(0, piece_bytes)));
  }
  HEADGATE_RETURN_IF_ERROR(parser.TakeEnd());
  return parser.TakeReply();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto whole = Parse(bytes, size + 1);
  const auto cut = Parse(bytes, 1 + size % 7);
  HEADGATE_CHECK(whole.ok() == cut.ok());
  if (!whole.ok()) return 0;
  HEADGATE_CHECK(whole->status >= 0 && whole->status <= 999);
  HEADGATE_CHECK(whole->body.size() <= size);
  HEADGATE_CHECK(whole->status == cut->status && whole->body == cut->body);
  return 0;
}

#include "headgate/wire/bound_id.h"

#include "headgate/wire/digest.h"

namespace headgate::wire {

void AppendBoundId(std::string_view kind, std::string_view id, std::string_view content,
                   std::string& out) {
  // 128 bits, so nobody finds two requests with the same digest.
  constexpr size_t kContentDigits = 32;
  out.append(kind).append("|").append(id).append("|");
  out.append(DigestHex(Digest::kSha256, content), 0, kContentDigits);
}

}  // namespace headgate::wire

#include "headgate/wire/permit_id.h"

#include <charconv>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/base/random_secret.h"
#include "headgate/base/text.h"
#include "headgate/wire/digest.h"

namespace headgate::wire {

std::string MakePermitId() {
  const base::HashSecret random = base::RandomHashSecret();
  std::string hex;
  for (size_t i = 0; i < 16; ++i) base::AppendHex(random.bytes[i], hex);
  return hex;
}

base::Hash128 HashOfPermitId(std::string_view id) {
  const std::string digits = DigestHex(Digest::kSha256, id);
  base::Hash128 hash{};
  for (const auto& [place, half] : {std::pair{size_t{0}, &hash.high}, {size_t{16}, &hash.low}}) {
    const char* const begin = digits.data() + place;
    const auto [end, error] = std::from_chars(begin, begin + 16, *half, 16);
    HEADGATE_CHECK(error == std::errc() && end == begin + 16);
  }
  return hash;
}

}  // namespace headgate::wire

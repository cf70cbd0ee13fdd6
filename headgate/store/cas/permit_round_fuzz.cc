// Reads any bytes as permits. Permits that can be read are written back as the same bytes, and a
// round over any bytes gives consistent answers.
#include "headgate/store/cas/permit_round.h"

#include <cstddef>
#include <cstdint>

#include "headgate/base/check.h"

namespace headgate::store::cas {
namespace {

using permit::Ask;
using Outcome = permit::Answer::Outcome;

constexpr base::Instant kNow = base::Instant::FromNanos(1'790'000'000'000'000'000);

void Check(std::string_view bytes, uint8_t choice) {
  if (const auto parsed = ParsePermits(bytes)) {
    std::string again;
    AppendPermits(*parsed, again);
    HEADGATE_CHECK(again.size() == bytes.size());
    HEADGATE_CHECK(ParsePermits(again)->permits().size() == parsed->permits().size());
  }
  PermitRound round(bytes, kNow);
  const Ask ask{.kind = static_cast<Ask::Kind>(choice % 4),
                .id = {.low = choice, .high = 0},
                .max = choice / 4u,
                .ttl = std::chrono::seconds(choice)};
  const permit::Answer answer = round.Answer(ask);
  HEADGATE_CHECK(answer.first_end_after >= base::Duration(0));
  HEADGATE_CHECK(answer.last_end_after >= answer.first_end_after);
  HEADGATE_CHECK(answer.outcome != Outcome::kGranted || ask.kind == Ask::Kind::kPeek ||
                 answer.in_flight <= ask.max);
  const std::string after = round.bytes();
  HEADGATE_CHECK(after.empty() || ParsePermits(after).has_value());
}

}  // namespace
}  // namespace headgate::store::cas

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  headgate::store::cas::Check({reinterpret_cast<const char*>(data) + 1, size - 1}, data[0]);
  return 0;
}

// Reads any bytes as an envelope, also with a correct checksum added. An envelope that can be read
// is written back as the same bytes, and a round with the bucket in it, whatever that is, gives a
// consistent decision.
#include "headgate/store/cas/envelope.h"

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "headgate/base/check.h"
#include "headgate/store/answer_without_store.h"
#include "headgate/store/cas/bucket_round.h"

namespace headgate::store::cas {
namespace {

using algorithm::Algorithm;
using namespace std::chrono_literals;

const algorithm::LimitSpec kSpecs[] = {
    {.algorithm = Algorithm::kTokenBucket, .requests = 60, .period = 60s},
    {.algorithm = Algorithm::kLeakyBucketQueue, .requests = 60, .period = 60s},
    {.algorithm = Algorithm::kFixedWindow, .requests = 60, .period = 60s},
    {.algorithm = Algorithm::kSlidingWindowCounter, .requests = 60, .period = 60s},
    {.algorithm = Algorithm::kSlidingWindowLog, .requests = 60, .period = 60s},
};

void RunRounds(std::string_view bucket, uint8_t choice) {
  LimitTable limits;
  const auto& spec = kSpecs[choice % std::size(kSpecs)];
  SharedRequest request{.name = "k",
                        .limit = *limits.Intern(*algorithm::Limit::Make(spec)),
                        .operation = static_cast<Operation>(choice / 8 % 6)};
  // Asks for one lease, and returns the lease that node 1 has under number 0 in the bucket, if any.
  const algorithm::LeaseReport returned{.number = 0, .spent = 2, .returned = true};
  if (choice >= 128)
    request.lease = {.id = {1, 1},
                     .cost = 1,
                     .want = 5,
                     .brief = 5,
                     .ttl = 2s,
                     .reports = std::span(&returned, 1)};
  if (AnswerWithoutStore(request)) return;
  const base::Instant now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  BucketRound round(bucket, now);
  const SharedAnswer answer = round.Answer(request);
  HEADGATE_CHECK(answer.status.ok());
  HEADGATE_CHECK(answer.decision.retry_after >= base::Duration(0));
  HEADGATE_CHECK(answer.decision.reset_after >= base::Duration(0));
  HEADGATE_CHECK(answer.grant.next_after >= base::Duration(0));
  // The result is readable.
  const std::string bytes = round.bytes();
  HEADGATE_CHECK(bytes.empty() || ParseBucket(bytes).has_value() ||
                 round.changes() != Changes::kState);
}

void Check(std::string_view bytes, uint8_t choice) {
  const auto envelope = ParseEnvelope(bytes);
  if (!envelope) return;
  std::string again;
  AppendEnvelope(*envelope, again);
  HEADGATE_CHECK(again == bytes);
  RunRounds(envelope->bucket, choice);
}

}  // namespace
}  // namespace headgate::store::cas

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headgate::store::cas;
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  Check(bytes, data[0]);
  RunRounds(bytes, data[0]);
  AppendChecksum(bytes);
  Check(bytes, data[0]);
  return 0;
}

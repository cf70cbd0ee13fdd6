// Any answer of a server results in a consistent decision, another call, or an error. The first two
// bytes choose the request, the rest is the answer.
#include "headgate/store/redis/bucket_call.h"

#include <cstddef>
#include <cstdint>

#include "headgate/base/check.h"

namespace headgate::store::redis {
namespace {

using algorithm::Algorithm;
using algorithm::LimitSpec;
using base::Duration;
using namespace std::chrono_literals;

const LimitSpec kSpecs[] = {
    {.algorithm = Algorithm::kTokenBucket, .requests = 7, .period = 60s},
    {.algorithm = Algorithm::kLeakyBucketQueue, .requests = 60, .period = 60s},
    {.algorithm = Algorithm::kFixedWindow,
     .requests = 60,
     .period = 60s,
     .align = algorithm::Align::kFirstHit},
    {.algorithm = Algorithm::kFixedWindow,
     .requests = 60,
     .period = 0s,
     .align = algorithm::Align::kCalendarMonth},
    {.algorithm = Algorithm::kSlidingWindowCounter,
     .requests = 60,
     .period = 60s,
     .count_denied = true},
    {.algorithm = Algorithm::kSlidingWindowLog, .requests = 60, .period = 60s},
    {.algorithm = Algorithm::kTokenBucket,
     .requests = 1,
     .period = Duration((1LL << 62) - 2),
     .burst = 1},
    {.algorithm = Algorithm::kSlidingWindowLog, .requests = 60, .period = Duration(1LL << 60)},
};

void CheckAnswer(const SharedAnswer& answer) {
  if (!answer.status.ok()) return;
  const algorithm::Decision& decision = answer.decision;
  HEADGATE_CHECK(decision.retry_after >= Duration(0));
  HEADGATE_CHECK(decision.reset_after >= Duration(0));
  HEADGATE_CHECK(decision.wait >= Duration(0));
  HEADGATE_CHECK(!decision.allowed || decision.retry_after == Duration(0));
}

}  // namespace
}  // namespace headgate::store::redis

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headgate::store::redis;
  using headgate::store::Operation;
  if (size < 2) return 0;
  headgate::store::LimitTable limits;
  const auto& spec = kSpecs[data[0] % std::size(kSpecs)];
  headgate::store::SharedRequest request{
      .name = "hg:{k}",
      .limit = *limits.Intern(*headgate::algorithm::Limit::Make(spec)),
      .cost = data[0] / std::size(kSpecs),
      .operation = static_cast<Operation>(data[1] % 6)};
  if ((data[1] & 8) != 0)
    request.lease = {
        .id = {.node = 1, .number = 1}, .cost = request.cost, .want = 5, .brief = 5, .ttl = 2s};
  if (BucketCall::AnswerWithoutStore(request)) return 0;
  BucketCall call(request, {});
  headgate::wire::RespValue reply{
      .kind = headgate::wire::RespValue::Kind::kBulk,
      .integer = 0,
      .text = std::string(reinterpret_cast<const char*>(data) + 2, size - 2),
      .items = {}};
  for (int i = 0; i < 20; ++i) {
    if (const auto answer = call.Read(reply)) {
      CheckAnswer(*answer);
      return 0;
    }
    std::string command;
    call.AppendCommand(BucketCall::Form::kDigest, command);
  }
  headgate::base::CheckFailed("a call has an end", __FILE__, __LINE__);
}

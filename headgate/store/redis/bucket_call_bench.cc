// Measures a shared decision in the instance, without the network: making the call, writing its
// command, reading its answer.
//
// Expected: about 0.25 µs on one core of a cloud machine, with one allocation (the call's bytes).
// Above 1.5 µs something is wrong: the whole budget of an instance is 2.5 µs a decision more than
// with the memory store.
#include "headgate/store/redis/bucket_call.h"

#include <benchmark/benchmark.h>

#include <cstdint>

#include "headgate/store/big_endian.h"

namespace headgate::store::redis {
namespace {

void BM_OneDecision(benchmark::State& state) {
  LimitTable limits;
  const LimitHandle limit = *limits.Intern(
      *algorithm::Limit::Make({.algorithm = static_cast<algorithm::Algorithm>(state.range(0)),
                               .requests = 100,
                               .period = std::chrono::seconds(1)}));
  const SharedRequest request{.name = "hg:{edge|api_key=0123456789|path=/login}", .limit = limit};
  wire::RespValue reply{
      .kind = wire::RespValue::Kind::kBulk, .integer = 0, .text = {}, .items = {}};
  const uint64_t now = 1'790'000'000'000'000'000;
  Packer(reply.text).U8(1).U8(1).U8(0).U64(now).U64(0).U32(0).U64(0).U32(0);
  std::string out;
  for (auto step : state) {
    out.clear();
    BucketCall call(request, {});
    call.AppendCommand(BucketCall::Form::kDigest, out);
    benchmark::DoNotOptimize(call.Read(reply));
    benchmark::DoNotOptimize(out);
  }
}
BENCHMARK(BM_OneDecision)->ArgName("algorithm")->DenseRange(0, 5);

}  // namespace
}  // namespace headgate::store::redis

BENCHMARK_MAIN();

#include "headgate/store/redis/bucket_caller.h"

#include <algorithm>
#include <array>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/store/redis/error_text.h"

namespace headgate::store::redis {
namespace {

constexpr size_t kArgumentsMax = 8;

}  // namespace

void BucketCaller::Ask(const SharedRequest& request, const CallContext& context,
                       SharedStore::Done done) {
  if (const auto answer = BucketCall::AnswerWithoutStore(request)) return done(*answer);
  PendingRequest& pending = pending_.Take();
  pending.call.emplace(request, context, std::move(pending.memory));
  pending.done = std::move(done);
  const base::Duration timeout =
      request.timeout.count() > 0 ? request.timeout : client_.options().timeout;
  pending.timeout = timeout;
  pending.give_up_at = client_.Now() + std::max(timeout, client_.options().wait_max);
  Send(pending);
}

void BucketCaller::Send(PendingRequest& pending) {
  const BucketCall& call = *pending.call;
  std::array<std::string_view, kArgumentsMax> arguments;
  const size_t count = call.part_count() - 1;
  HEADGATE_CHECK(count <= arguments.size());
  for (size_t i = 0; i < count; ++i) arguments[i] = call.Part(i + 1);
  client_.Call({.script = &call.script(),
                .key = call.key(),
                .arguments = std::span(arguments).first(count),
                .learns = call.learns(),
                .give_up_at = pending.give_up_at},
               pending.timeout,
               [this, &pending](const PendingCall::Outcome& reply) { OnReply(pending, reply); });
}

void BucketCaller::OnReply(PendingRequest& pending, const PendingCall::Outcome& reply) {
  if (!reply.ok()) {
    SharedAnswer answer;
    answer.status = reply.status();
    return Finish(pending, answer);
  }
  if ((*reply)->is_error()) {
    script_errors_.Add();
    if (events_.on_error) events_.on_error(WithoutArguments((*reply)->text));
  }
  if (const auto answer = pending.call->Read(**reply)) return Finish(pending, *answer);
  // The bucket was made under another limit: a second call carries it over.
  if (client_.loop().Now() < pending.give_up_at) return Send(pending);
  SharedAnswer late;
  late.status =
      absl::UnavailableError("no time was left to carry the bucket over to its new limit");
  Finish(pending, late);
}

void BucketCaller::Finish(PendingRequest& pending, const SharedAnswer& answer) {
  Count(answer);
  const SharedStore::Done done = std::exchange(pending.done, nullptr);
  pending.memory = std::move(*pending.call).TakeMemory();
  pending.call.reset();
  pending_.Release(pending);
  done(answer);
}

void BucketCaller::Count(const SharedAnswer& answer) {
  if (absl::IsDataLoss(answer.status)) {
    damaged_.Add();
    if (events_.on_damaged) events_.on_damaged();
  }
  if (answer.events.clock_reset) clock_reset_.Add();
  if (answer.events.carried_over) carried_over_.Add();
}

void BucketCaller::AddTo(StoreCounters& counters) const {
  counters.calls_damaged += damaged_.value();
  counters.buckets_clock_reset += clock_reset_.value();
  counters.buckets_carried_over += carried_over_.value();
  counters.script_errors += script_errors_.value();
}

}  // namespace headgate::store::redis

#include "headgate/store/redis/redis_store.h"

#include <array>
#include <utility>

#include "headgate/base/check.h"

namespace headgate::store::redis {
namespace {

constexpr size_t kArgumentsMax = 8;
// How long the server keeps a key whose time it does not know.
constexpr base::Duration kVirtualKept = std::chrono::hours(1);

}  // namespace

void RedisStore::Ask(const SharedRequest& request, Done done) {
  if (const auto answer = BucketCall::AnswerWithoutStore(request)) return done(*answer);
  PendingRequest& pending = pending_.Take();
  pending.call.emplace(request, Context(), std::move(pending.memory));
  pending.done = std::move(done);
  const base::Duration timeout =
      request.timeout.count() > 0 ? request.timeout : client_.options().timeout;
  pending.give_up_at = client_.Now() + timeout;
  Send(pending, timeout);
}

CallContext RedisStore::Context() const {
  CallContext context{.lease_ttl = client_.options().lease_ttl};
  if (options_.virtual_now != nullptr) {
    context.now = *options_.virtual_now;
    context.kept_least = kVirtualKept;
  }
  return context;
}

void RedisStore::Send(PendingRequest& pending, base::Duration timeout) {
  const BucketCall& call = *pending.call;
  std::array<std::string_view, kArgumentsMax> arguments;
  const size_t count = call.part_count() - 1;
  HEADGATE_CHECK(count <= arguments.size());
  for (size_t i = 0; i < count; ++i) arguments[i] = call.Part(i + 1);
  client_.Call({.script = &call.script(),
                .key = call.key(),
                .arguments = std::span(arguments).first(count),
                .learns = call.learns()},
               timeout,
               [this, &pending](const PendingCall::Outcome& reply) { OnReply(pending, reply); });
}

void RedisStore::OnReply(PendingRequest& pending, const PendingCall::Outcome& reply) {
  if (!reply.ok()) {
    SharedAnswer answer;
    answer.status = reply.status();
    return Finish(pending, answer);
  }
  if ((*reply)->is_error()) {
    script_errors_.Add();
    if (options_.on_script_error) options_.on_script_error((*reply)->text);
  }
  if (const auto answer = pending.call->Read(**reply)) return Finish(pending, *answer);
  // The bucket was another limit's: a second call carries it over, within the time of the first.
  const base::Duration left = pending.give_up_at - client_.loop().Now();
  if (left.count() > 0) return Send(pending, left);
  SharedAnswer late;
  late.status =
      absl::UnavailableError("no time was left to carry the bucket over to its new limit");
  Finish(pending, late);
}

void RedisStore::Finish(PendingRequest& pending, const SharedAnswer& answer) {
  Count(answer.events);
  const Done done = std::exchange(pending.done, nullptr);
  pending.memory = std::move(*pending.call).TakeMemory();
  pending.call.reset();
  pending_.Release(pending);
  done(answer);
}

void RedisStore::Count(const SharedEvents& events) {
  if (events.replaced_corrupt) replaced_corrupt_.Add();
  if (events.clock_reset) clock_resets_.Add();
  if (events.carried_over) carried_over_.Add();
}

BucketEvents RedisStore::ReadEvents() const {
  return {.replaced_corrupt = replaced_corrupt_.value(),
          .clock_resets = clock_resets_.value(),
          .carried_over = carried_over_.value(),
          .script_errors = script_errors_.value()};
}

}  // namespace headgate::store::redis

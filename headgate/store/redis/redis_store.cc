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
  Question& question = questions_.Take();
  question.call.emplace(request, Context(), std::move(question.memory));
  question.done = std::move(done);
  const base::Duration timeout =
      request.timeout.count() > 0 ? request.timeout : client_.options().timeout;
  question.give_up_at = client_.Now() + timeout;
  Send(question, timeout);
}

CallContext RedisStore::Context() const {
  CallContext context{.lease_ttl = client_.options().lease_ttl};
  if (options_.virtual_now != nullptr) {
    context.now = *options_.virtual_now;
    context.kept_least = kVirtualKept;
  }
  return context;
}

void RedisStore::Send(Question& question, base::Duration timeout) {
  const BucketCall& call = *question.call;
  std::array<std::string_view, kArgumentsMax> arguments;
  const size_t count = call.part_count() - 1;
  HEADGATE_CHECK(count <= arguments.size());
  for (size_t i = 0; i < count; ++i) arguments[i] = call.Part(i + 1);
  client_.Call({.script = &call.script(),
                .key = call.key(),
                .arguments = std::span(arguments).first(count),
                .learns = call.learns()},
               timeout,
               [this, &question](const PendingCall::Outcome& reply) { OnReply(question, reply); });
}

void RedisStore::OnReply(Question& question, const PendingCall::Outcome& reply) {
  if (!reply.ok()) {
    SharedAnswer answer;
    answer.status = reply.status();
    return Finish(question, answer);
  }
  if ((*reply)->is_error()) {
    script_errors_.Add();
    if (options_.on_script_error) options_.on_script_error((*reply)->text);
  }
  if (const auto answer = question.call->Read(**reply)) return Finish(question, *answer);
  // The bucket was another limit's: a second call carries it over, within the time of the first.
  const base::Duration left = question.give_up_at - client_.loop().Now();
  if (left.count() > 0) return Send(question, left);
  SharedAnswer late;
  late.status =
      absl::UnavailableError("no time was left to carry the bucket over to its new limit");
  Finish(question, late);
}

void RedisStore::Finish(Question& question, const SharedAnswer& answer) {
  Count(answer.events);
  const Done done = std::exchange(question.done, nullptr);
  question.memory = std::move(*question.call).TakeMemory();
  question.call.reset();
  questions_.Release(question);
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

#include "headgate/answer/limit_answer.h"

#include <algorithm>

#include "headgate/answer/tightest.h"
#include "headgate/base/check.h"
#include "headgate/base/time_of_day.h"
#include "headgate/http/problem.h"
#include "headgate/wire/digest.h"

namespace headgate::answer {

limiter::Mode ModeOf(const limiter::Response& decided) {
  limiter::Mode mode = limiter::Mode::kMemory;
  for (const limiter::DescriptorAnswer& outcome : decided.descriptors)
    mode = std::max(mode, outcome.mode);
  return mode;
}

limiter::Question& QuestionOf(const http::Request& request) {
  HEADGATE_CHECK(request.suspension != nullptr);
  http::Suspension& suspension = *request.suspension;
  return suspension.Ensure<limiter::Question>([&suspension] { suspension.wake(); });
}

rule::Refused RefusedOf(const wire::RateLimitState& state) {
  rule::Refused refused{.rule = state.policy, .limit = state.limit};
  if (state.retry_after) refused.seconds = wire::RetryAfterSeconds(*state.retry_after);
  return refused;
}

std::optional<wire::RateLimitState> LimitAnswer::StateOf(const limiter::Request& request,
                                                         uint64_t cost_default,
                                                         const limiter::Response& response,
                                                         base::Instant now) {
  std::optional<wire::RateLimitState> state = Tightest(response);
  if (state && !options_.partition_secret.empty()) {
    state->partition_key =
        PartitionKey(request.domain, request.descriptors[*TightestDescriptor(response)]);
  }
  if (!state || !state->denied) return state;
  state->retry_after = HonestRetryAfter(request, cost_default, response, now);
  if (state->retry_after && options_.retry_after_jitter_percent > 0) {
    auto more = static_cast<uint64_t>(state->retry_after->count()) / 100 *
                options_.retry_after_jitter_percent;
    if (const auto most = static_cast<uint64_t>(options_.retry_after_jitter_max.count()); most > 0)
      more = std::min(more, most);
    const auto later = base::Duration(static_cast<int64_t>(random_.Below(more + 1)));
    *state->retry_after += later;
    // Clients that obey another field than Retry-After should not come back together either.
    state->reset_after += later;
  }
  return state;
}

std::array<uint8_t, 9> LimitAnswer::PartitionKey(std::string_view domain,
                                                 const rule::Descriptor& descriptor) {
  // Each text with its length, so that different descriptors have different inputs.
  scratch_.clear();
  const auto add = [&](std::string_view text) {
    scratch_.append(std::to_string(text.size())).append(":").append(text);
  };
  add(domain);
  for (const rule::Entry& entry : descriptor.entries) {
    add(entry.key);
    add(entry.value);
  }
  const wire::Mac mac = wire::HmacSha256(options_.partition_secret, scratch_);
  std::array<uint8_t, 9> key{};
  std::copy_n(mac.begin(), key.size(), key.begin());
  return key;
}

// A denied request may have consumed from the descriptors that allowed it, and one of these may now
// deny the next request. In this case a peek at the current state tells how long the client must
// wait.
std::optional<base::Duration> LimitAnswer::HonestRetryAfter(const limiter::Request& request,
                                                            uint64_t cost_default,
                                                            const limiter::Response& response,
                                                            base::Instant now) {
  peek_descriptors_.assign(request.descriptors.begin(), request.descriptors.end());
  bool spent = false;
  for (size_t i = 0; i < peek_descriptors_.size(); ++i) {
    peek_descriptors_[i].cost = peek_descriptors_[i].cost.value_or(cost_default);
    const limiter::DescriptorAnswer& outcome = response.descriptors[i];
    spent = spent || (outcome.allowed() && outcome.has_decision() &&
                      outcome.decision.remaining < *peek_descriptors_[i].cost);
  }
  // A shared bucket may change before another peek is answered, so the retry_after of this decision
  // is used.
  if (!spent || checker_.may_wait() ||
      !checker_
           .Check({.domain = request.domain,
                   .descriptors = peek_descriptors_,
                   .operation = limiter::Operation::kPeek},
                  peeked_, now)
           .ok()) {
    return RetryAfter(response);
  }
  return RetryAfter(peeked_);
}

void LimitAnswer::EmitFields(const wire::RateLimitState& state, base::Instant now,
                             wire::EmitField emit) {
  wire::EmitRateLimitFields(state, options_.dialect, base::TimeOfDay(options_.clock, now), scratch_,
                            emit);
}

void LimitAnswer::AddMode(limiter::Mode mode, http::Response& response) {
  if (mode != limiter::Mode::kMemory) response.AddField("X-RateLimit-Mode", Name(mode));
}

void LimitAnswer::AnswerError(const absl::Status& status, int status_unavailable,
                              http::Response& response) const {
  const std::string message(status.message());
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return http::AnswerProblem(400, message, "", response);
    case absl::StatusCode::kFailedPrecondition:
      if (checker_.rules() != nullptr) return http::AnswerProblem(409, message, "", response);
      http::AnswerProblem(status_unavailable, message,
                          "the source of the rules holds none yet, or only some with problems; "
                          "the log names them",
                          response);
      return response.AddField("Retry-After", kUnavailableRetryAfter);
    case absl::StatusCode::kUnavailable:
      http::AnswerProblem(status_unavailable, message, "", response);
      return response.AddField("Retry-After", kUnavailableRetryAfter);
    case absl::StatusCode::kResourceExhausted:
      return http::AnswerProblem(status_unavailable, message, "", response);
    default:
      return http::AnswerProblem(500, message, "", response);
  }
}

}  // namespace headgate::answer

// The end of the requests of an exchange: they are answered, fail with their round, or fail because
// their time is over.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "headgate/store/cas/key_exchange.h"
#include "headgate/store/damaged_value.h"

namespace headgate::store::cas {

using base::BootTime;

void KeyExchange::CountLoss() {
  for (auto& request : round_) ++request->losses;
}

void KeyExchange::FailOfDamagedValue() {
  const auto removes = [](const WaitingRequest& request) {
    return request.permit
               ? request.permit->kind == permit::Ask::Kind::kClear
               : !request.request.lease && request.request.operation == Operation::kReset;
  };
  uint64_t failed = 0;
  for (auto& request : round_) {
    if (removes(*request)) continue;
    Fail(std::move(request), DamagedValueError());
    ++failed;
  }
  std::erase(round_, nullptr);
  writer_.counters.damaged.Add(failed);
  if (failed > 0 && writer_.options.on_damaged) writer_.options.on_damaged();
}

void KeyExchange::AnswerRound() {
  CasCounters& counters = writer_.counters;
  fresh_ = false;
  pauses_ = 0;
  if (round_.empty()) return;
  counters.rounds.Add();
  counters.combined.Add(round_.size() - 1);
  for (auto& request : round_) {
    const SharedEvents& events = request->answer.events;
    if (events.replaced_corrupt) counters.replaced_corrupt.Add();
    if (events.clock_reset) counters.clock_reset.Add();
    if (events.carried_over) counters.carried_over.Add();
    answered_.push_back(std::move(request));
  }
  round_.clear();
}

void KeyExchange::FailRound(const absl::Status& status) {
  fresh_ = false;
  pauses_ = 0;
  if (absl::IsUnavailable(status)) writer_.counters.unavailable.Add(round_.size());
  for (auto& request : round_) Fail(std::move(request), status);
  round_.clear();
}

void KeyExchange::Fail(std::unique_ptr<WaitingRequest> request, absl::Status status) {
  request->answer = {};
  request->answer.status = std::move(status);
  answered_.push_back(std::move(request));
}

void KeyExchange::Expire(BootTime now) {
  earliest_deadline_ = BootTime{INT64_MAX};
  const auto expire = [&](Requests& requests, bool may_have_been_done) {
    for (auto& request : requests) {
      if (request->deadline > now) {
        earliest_deadline_ = std::min(earliest_deadline_, request->deadline);
        continue;
      }
      const bool lost = !may_have_been_done && request->losses > 0;
      (lost ? writer_.counters.exhausted : writer_.counters.timed_out).Add();
      absl::Status status =
          absl::UnavailableError("the time was over before the bucket could be written");
      if (request->request.locked && !may_have_been_done && request->losses == 0 &&
          lock_ != Lock::kHeld) {
        writer_.counters.locks_timed_out.Add();
        status = absl::CancelledError("other instances had the lock of the key for too long");
      }
      if (may_have_been_done) {
        status = absl::DeadlineExceededError("the store did not answer a write in time");
      } else if (lost) {
        status = absl::ResourceExhaustedError(
            fmt::format("the time was over after {} attempts to write the bucket: other instances "
                        "were faster, or the store is overloaded",
                        request->losses));
      }
      Fail(std::move(request), std::move(status));
    }
    std::erase(requests, nullptr);
  };
  expire(round_, /*may_have_been_done=*/put_.has_value());
  expire(waiting_, /*may_have_been_done=*/false);
}

}  // namespace headgate::store::cas

#include "tests/capacity/upstream.h"

#include <algorithm>
#include <cmath>

namespace headgate::capacity {

using base::Duration;
using base::Instant;

Duration DrawExponential(Duration mean, base::Random& random) {
  const double uniform = (static_cast<double>(random.Next() >> 11) + 0.5) / 9007199254740992.0;
  return Duration(static_cast<int64_t>(-std::log(uniform) * static_cast<double>(mean.count())) + 1);
}

Upstream::Upstream(const UpstreamOptions& options, uint64_t seed)
    : options_(options),
      random_(seed),
      pause_at_(options.pause_every.count() > 0 ? Instant{0} + options.pause_every
                                                : base::kInstantMax) {}

double Upstream::Best() const {
  const double pauses = options_.pause_every.count() > 0
                            ? std::chrono::duration<double>(options_.pause_length) /
                                  std::chrono::duration<double>(options_.pause_every)
                            : 0;
  return options_.workers / std::chrono::duration<double>(options_.service).count() * (1 - pauses);
}

void Upstream::SetWorkers(uint32_t workers, Instant now) {
  options_.workers = workers;
  StartJobs(now);
}

void Upstream::Crash(std::vector<Answer>& answers) {
  for (const Waiting& waiting : queue_) answers.push_back({waiting.request, true});
  for (const Job& job : jobs_) answers.push_back({job.request, true});
  for (const Job& job : delayed_) answers.push_back({job.request, true});
  queue_.clear();
  jobs_.clear();
  delayed_.clear();
}

bool Upstream::OnRequest(uint64_t request, Instant now, uint32_t length_percent) {
  if (failing_percent_ > 0 && random_.Below(100) < failing_percent_) return true;
  const bool waits = jobs_.size() >= options_.workers;
  if (waits && options_.queue_max > 0 && queue_.size() >= options_.queue_max) return true;
  queue_.push_back({request, length_percent});
  StartJobs(now);
  return false;
}

Instant Upstream::NextAt() const {
  Instant next = pause_at_;
  for (const Job& job : jobs_) next = std::min(next, job.end);
  return delayed_.empty() ? next : std::min(next, delayed_.front().end);
}

void Upstream::Step(std::vector<Answer>& answers) {
  const Instant now = NextAt();
  if (now == pause_at_) {
    for (Job& job : jobs_) job.end += options_.pause_length;
    paused_until_ = now + options_.pause_length;
    pause_at_ += options_.pause_every;
    return;
  }
  if (!delayed_.empty() && now == delayed_.front().end) {
    answers.push_back({.request = delayed_.front().request});
    delayed_.pop_front();
    return;
  }
  const auto job = std::find_if(jobs_.begin(), jobs_.end(),
                                [&](const Job& candidate) { return candidate.end == now; });
  if (options_.delay.count() > 0) {
    // A delay that has become shorter does not change the order.
    const Instant least = delayed_.empty() ? now : delayed_.back().end;
    delayed_.push_back({job->request, std::max(now + options_.delay, least)});
  } else {
    answers.push_back({.request = job->request});
  }
  *job = jobs_.back();
  jobs_.pop_back();
  StartJobs(now);
}

void Upstream::StartJobs(Instant now) {
  while (jobs_.size() < options_.workers && !queue_.empty()) {
    const Waiting& next = queue_.front();
    const Duration length = DrawService() * next.length_percent / kUsualPercent;
    jobs_.push_back({next.request, std::max(now, paused_until_) + length});
    queue_.pop_front();
  }
}

Duration Upstream::DrawService() {
  switch (options_.kind) {
    case Service::kFixed:
      break;
    case Service::kExponential:
      return DrawExponential(options_.service, random_);
    case Service::kBimodal:
      return random_.Below(10) == 0 ? options_.service * 41 / 5 : options_.service / 5;
    case Service::kTwoClasses:
      return random_.Below(11) == 0 ? options_.service * 10 : options_.service / 10;
  }
  return options_.service;
}

}  // namespace headgate::capacity

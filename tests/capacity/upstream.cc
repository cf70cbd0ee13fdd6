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

bool Upstream::OnRequest(uint64_t request, Instant now) {
  if (failing_percent_ > 0 && random_.Below(100) < failing_percent_) return true;
  const bool waits = jobs_.size() >= options_.workers;
  if (waits && options_.queue_max > 0 && queue_.size() >= options_.queue_max) return true;
  queue_.push_back(request);
  StartJobs(now);
  return false;
}

Instant Upstream::NextAt() const {
  Instant next = pause_at_;
  for (const Job& job : jobs_) next = std::min(next, job.end);
  return next;
}

void Upstream::Step(std::vector<Answer>& answers) {
  const Instant now = NextAt();
  if (now == pause_at_) {
    for (Job& job : jobs_) job.end += options_.pause_length;
    paused_until_ = now + options_.pause_length;
    pause_at_ += options_.pause_every;
    return;
  }
  const auto job = std::find_if(jobs_.begin(), jobs_.end(),
                                [&](const Job& candidate) { return candidate.end == now; });
  answers.push_back({.request = job->request});
  *job = jobs_.back();
  jobs_.pop_back();
  StartJobs(now);
}

void Upstream::StartJobs(Instant now) {
  while (jobs_.size() < options_.workers && !queue_.empty()) {
    jobs_.push_back({queue_.front(), std::max(now, paused_until_) + DrawService()});
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
  }
  return options_.service;
}

}  // namespace headgate::capacity

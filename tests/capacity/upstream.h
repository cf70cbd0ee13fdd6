// A benchmark upstream of known capacity: workers that take requests in order of arrival and need a
// time of service for each. In virtual time and seeded.
//
//   capacity = workers / mean time of service
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "headgate/base/random.h"
#include "headgate/base/time.h"

namespace headgate::capacity {

enum class Service : uint8_t {
  kFixed,
  kExponential,
  kBimodal,     // a fifth of the mean for nine of ten requests, 8.2 times the mean for the tenth
  kTwoClasses,  // a tenth of the mean for ten of eleven requests, ten times the mean for the other
};

struct UpstreamOptions {
  uint32_t workers = 10;
  base::Duration service = std::chrono::milliseconds(10);  // the mean
  Service kind = Service::kFixed;
  base::Duration delay{0};
  // All workers stop for pause_length once per this time, as in a garbage collection; 0: never.
  base::Duration pause_every{0};
  base::Duration pause_length = std::chrono::milliseconds(500);
  // Further requests get a 503 at once; 0: they wait, however many.
  uint32_t queue_max = 0;
};

// How long a request takes, compared with others.
inline constexpr uint32_t kUsualPercent = 100;

// Something that happens to a request: it has an answer, or a 503.
struct Answer {
  uint64_t request = 0;
  bool failed = false;
};

class Upstream {
 public:
  Upstream(const UpstreamOptions& options, uint64_t seed);

  // ---- Commands
  void SetWorkers(uint32_t workers, base::Instant now);
  void SetService(base::Duration mean) { options_.service = mean; }
  // Each answer needs this long in addition, in which no worker is busy: a network, or another
  // service that is asked and has time for everybody.
  void SetDelay(base::Duration delay) { options_.delay = delay; }
  // This many of a hundred requests get a 503 at once, without a worker.
  void SetFailing(uint32_t percent) { failing_percent_ = percent; }
  // All requests that it has are lost.
  void Crash(std::vector<Answer>& answers);

  // Answers per second if there is always a request to work on.
  double Best() const;

  // Returns true if the request has its 503 already.
  bool OnRequest(uint64_t request, base::Instant now, uint32_t length_percent = kUsualPercent);
  // The next time at which something happens; kInstantMax if nothing will.
  base::Instant NextAt() const;
  // Takes the event at NextAt().
  void Step(std::vector<Answer>& answers);

 private:
  struct Waiting {
    uint64_t request = 0;
    uint32_t length_percent = kUsualPercent;
  };
  struct Job {
    uint64_t request = 0;
    base::Instant end{0};
  };

  void StartJobs(base::Instant now);
  base::Duration DrawService();

  UpstreamOptions options_;
  base::Random random_;
  uint32_t failing_percent_ = 0;
  std::deque<Waiting> queue_;
  std::vector<Job> jobs_;    // at most one per worker, unless workers have been taken away
  std::deque<Job> delayed_;  // a worker is done with them
  base::Instant pause_at_;
  base::Instant paused_until_{0};
};

// -mean·ln(u)
base::Duration DrawExponential(base::Duration mean, base::Random& random);

}  // namespace headgate::capacity

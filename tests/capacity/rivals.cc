#include "tests/capacity/rivals.h"

#include <algorithm>
#include <cmath>

namespace headgate::capacity {

using base::Duration;
using base::Instant;

namespace {

constexpr double kLimitFirst = 20;
constexpr double kLimitLeast = 1;
constexpr double kLimitMost = 1000;

class Rival : public Guard {
 public:
  uint32_t limit() const override { return static_cast<uint32_t>(limit_); }
  void OnSent(Instant) override { ++in_flight_; }
  void OnRefused(RefusedBy, Instant) override {}
  void OnEnd(RequestEnd outcome, Instant sent_at, Instant now) override {
    const uint32_t in_flight = in_flight_--;
    OnSample(std::chrono::duration<double>(now - sent_at).count(), in_flight,
             outcome == RequestEnd::kFailed);
    limit_ = std::clamp(limit_, kLimitLeast, kLimitMost);
  }

 protected:
  virtual void OnSample(double latency, double in_flight, bool failed) = 0;
  double limit_ = kLimitFirst;

 private:
  uint32_t in_flight_ = 0;
};

// The limit follows the ratio of a slow mean of the latency to the present latency, and allows a
// queue of four.
class Gradient2 : public Rival {
  void OnSample(double latency, double in_flight, bool) override {
    constexpr double kTolerance = 1.5;
    constexpr double kSmoothing = 0.2;
    constexpr double kLongWindow = 600;
    slow_ = slow_ == 0 ? latency : slow_ + (latency - slow_) * 2 / (kLongWindow + 1);
    if (slow_ / latency > 2) slow_ *= 0.95;
    if (in_flight < limit_ / 2) return;
    const double gradient = std::clamp(kTolerance * slow_ / latency, 0.5, 1.0);
    limit_ = limit_ * (1 - kSmoothing) + kSmoothing * (limit_ * gradient + 4);
  }
  double slow_ = 0;
};

// Compares the estimated queue with marks that grow with the logarithm of the limit.
class Vegas : public Rival {
  void OnSample(double latency, double in_flight, bool failed) override {
    constexpr double kProbeEvery = 30;
    if (++samples_ >= kProbeEvery * limit_) {
      samples_ = 0;
      base_ = latency;
      return;
    }
    if (base_ == 0 || latency < base_) {
      base_ = latency;
      return;
    }
    const double log = std::max(1.0, std::floor(std::log10(limit_)));
    const double queue = std::ceil(limit_ * (1 - base_ / latency));
    if (failed) {
      limit_ -= log;
    } else if (in_flight * 2 < limit_) {
      return;
    } else if (queue <= log) {
      limit_ += 6 * log;
    } else if (queue < 3 * log) {
      limit_ += log;
    } else if (queue > 6 * log) {
      limit_ -= log;
    }
  }
  double base_ = 0;
  double samples_ = 0;
};

// One more for each answer while the limit is half used; a tenth less for each that took 100 ms.
class Aimd : public Rival {
  void OnSample(double latency, double in_flight, bool failed) override {
    if (failed || latency > 0.1) {
      limit_ *= 0.9;
    } else if (in_flight * 2 >= limit_) {
      limit_ += 1;
    }
  }
};

}  // namespace

std::unique_ptr<Guard> MakeRival(std::string_view name) {
  if (name == "Gradient2") return std::make_unique<Gradient2>();
  if (name == "Vegas") return std::make_unique<Vegas>();
  return std::make_unique<Aimd>();
}

}  // namespace headgate::capacity

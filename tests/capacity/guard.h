// The controller between the clients and the benchmark upstream: ours, or another one to
// compare it with.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "headgate/base/time.h"
#include "headgate/capacity/capacity_controller.h"

namespace headgate::capacity {

class Guard {
 public:
  virtual ~Guard() = default;
  virtual uint32_t limit() const = 0;
  virtual void OnSent(base::Instant now) = 0;
  virtual void OnEnd(RequestEnd outcome, base::Instant sent_at, base::Instant now) = 0;
  virtual void OnRefused(RefusedBy by, base::Instant now) = 0;
  virtual bool MayExceedPool(base::Instant) { return false; }
  // In requests per second; empty while unknown.
  virtual std::optional<double> PerSecond() const { return std::nullopt; }
};

// The product's controller.
class Ours : public Guard {
 public:
  explicit Ours(const CapacityOptions& options) : controller_(*CapacityController::Make(options)) {}
  uint32_t limit() const override { return controller_.limit(); }
  void OnSent(base::Instant now) override { controller_.OnSent(now); }
  void OnEnd(RequestEnd outcome, base::Instant sent_at, base::Instant now) override {
    controller_.OnEnd(outcome, sent_at, now);
  }
  void OnRefused(RefusedBy by, base::Instant now) override { controller_.OnRefused(by, now); }
  bool MayExceedPool(base::Instant now) override { return controller_.MayExceedPool(now); }
  std::optional<double> PerSecond() const override {
    const auto per_1000_s = controller_.PerCycle(std::chrono::seconds(1000));
    if (!per_1000_s) return std::nullopt;
    return static_cast<double>(*per_1000_s) / 1000;
  }
  const CapacityController& controller() const { return controller_; }

 private:
  CapacityController controller_;
};

}  // namespace headgate::capacity

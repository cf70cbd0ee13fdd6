// The permits of a request while it is in flight (limiter/permit_hold.h). They are given back when
// it ends, and renewed at half of their ttl: a long download keeps its permit, and a process that
// is killed loses it after the ttl.
#pragma once

#include <utility>

#include "headgate/limiter/permit_hold.h"
#include "headgate/proxy/request_end.h"
#include "headgate/proxy/tick_wheel.h"

namespace headgate::proxy {

class HeldPermits final : public EndListener, private TickWheel::Entry {
 public:
  // `permits` are not empty. `wheel` must outlive this object.
  HeldPermits(limiter::PermitHold permits, TickWheel& wheel, base::Instant now)
      : permits_(std::move(permits)), wheel_(wheel) {
    SetRenewal(now);
  }

  void OnEnded(const BodySizes& /*sizes*/, base::Instant now) override {
    TickWheel::Cancel(*this);
    permits_.Release(now);
  }

 private:
  void OnTick(base::Instant now) override {
    permits_.Renew(now);
    SetRenewal(now);
  }
  void SetRenewal(base::Instant now) {
    if (const auto ttl = permits_.ttl()) wheel_.Set(*this, now + *ttl / 2);
  }

  limiter::PermitHold permits_;
  TickWheel& wheel_;
};

}  // namespace headgate::proxy

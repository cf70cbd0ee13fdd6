// Admission by the pool of a fleet (share/fleet_pool.h).
#pragma once

#include <string_view>

#include "headgate/proxy/admission.h"
#include "headgate/share/fleet_pool.h"

namespace headgate::proxy {

class FleetAdmission final : public Admission {
 public:
  // `pool` must outlive this object.
  explicit FleetAdmission(share::FleetPool& pool) : pool_(pool) {}

  AdmissionVerdict Admit(std::string_view client, base::Instant now) override {
    return Ask(client, {.is_last = true}, now);
  }
  AdmissionVerdict Ask(std::string_view client, Asking asking, base::Instant now) override;
  bool SeesRoom(std::string_view client, base::Instant now) override;
  bool refuses() const override { return pool_.mode() == share::Mode::kEnforce; }
  void OnLeft(const Leaving& leaving, base::Instant now) override {
    // A request that passed by LetThrough has no number.
    if (leaving.number == 0) return;
    pool_.OnEnd(leaving.number, leaving.was_sent, now);
  }

 private:
  share::FleetPool& pool_;
};

}  // namespace headgate::proxy

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

  Verdict Admit(std::string_view client, base::Instant now) override {
    return Ask(client, {.is_last = true}, now);
  }
  Verdict Ask(std::string_view client, Asking asking, base::Instant now) override;
  bool SeesRoom(std::string_view client, base::Instant now) override;
  bool refuses() const override { return pool_.mode() == share::Mode::kEnforce; }
  // An admitted request is used, whatever becomes of it.
  void OnLeft(Left /*how*/, base::Instant /*sent_at*/, base::Instant /*now*/) override {}

 private:
  share::FleetPool& pool_;
};

}  // namespace headgate::proxy

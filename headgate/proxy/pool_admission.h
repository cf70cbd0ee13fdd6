// Admission by a pool that the clients share (headgate/share).
#pragma once

#include <string_view>

#include "headgate/proxy/admission.h"
#include "headgate/share/share_pool.h"

namespace headgate::proxy {

AdmissionVerdict Describe(const share::PoolAnswer& verdict);

class PoolAdmission final : public Admission {
 public:
  // `pool` must outlive this object.
  explicit PoolAdmission(share::SharePool& pool) : pool_(pool) {}

  AdmissionVerdict Admit(std::string_view client, base::Instant now) override;
  bool SeesRoom(std::string_view client, base::Instant now) override;
  uint64_t LetThrough(base::Instant now) override { return pool_.LetThrough(now); }
  bool refuses() const override { return pool_.mode() == share::Mode::kEnforce; }
  void OnLeft(const Leaving& leaving, base::Instant now) override;

 private:
  share::SharePool& pool_;
};

}  // namespace headgate::proxy

#include "headgate/proxy/fleet_admission.h"

#include "headgate/proxy/pool_admission.h"

namespace headgate::proxy {

AdmissionVerdict FleetAdmission::Ask(std::string_view client, Asking asking, base::Instant now) {
  const share::PoolAnswer verdict =
      pool_.Admit(client, 1, {.ticket = asking.ticket, .is_last = asking.is_last}, now);
  AdmissionVerdict answer = Describe(verdict);
  answer.ticket = verdict.ticket;
  return answer;
}

bool FleetAdmission::SeesRoom(std::string_view client, base::Instant now) {
  const share::PoolAnswer seen = pool_.Admit(client, 0, {}, now);
  return seen.admitted && seen.remaining > 0;
}

}  // namespace headgate::proxy

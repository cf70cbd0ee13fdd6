// A request that waits for its answer.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/store/shared_store.h"

namespace headgate::store::cas {

struct WaitingRequest {
  // `request_to_copy` must stay valid only during the call, except for its history.
  WaitingRequest(const SharedRequest& request_to_copy, base::BootTime give_up_at,
                 SharedStore::Done call)
      : request(request_to_copy), deadline(give_up_at), done(std::move(call)) {
    request.name = {};
    if (!request.lease) return;
    reports.assign(request.lease->reports.begin(), request.lease->reports.end());
    request.lease->reports = reports;
  }
  // A question about permits.
  WaitingRequest(const permit::Ask& ask, base::BootTime give_up_at, SharedStore::PermitsDone call)
      : deadline(give_up_at),
        done([this, to_call = std::move(call)](const SharedAnswer& given) {
          if (!given.status.ok()) return to_call(given.status);
          to_call(permit_answer);
        }),
        permit(ask) {}
  WaitingRequest(const WaitingRequest&) = delete;

  SharedRequest request{};  // without its name
  std::vector<LeaseReport> reports{};
  base::BootTime deadline;
  SharedStore::Done done;
  uint32_t losses = 0;    // failed attempts
  SharedAnswer answer{};  // of the present attempt
  // Set if this is a question about permits: the question and its answer. `request` and `answer`
  // are empty then.
  std::optional<permit::Ask> permit{};
  permit::Answer permit_answer{};
};

}  // namespace headgate::store::cas

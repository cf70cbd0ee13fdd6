// The path of a check without sockets and clocks, as CheckRig, with a shared store that answers
// later. For tests. Not thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "headgate/base/check.h"
#include "headgate/front/api/check_rig.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/testing/manual_shared_store.h"

namespace headgate::front::api {

struct SharedCheckRig {
  // `time` must outlive the rig, which decides at this time.
  SharedCheckRig(std::shared_ptr<const rule::RuleSet> rules, const base::Instant& time,
                 std::string reservation_secret = {})
      : now(time), shared(store, time), handler(checker, {}, std::move(reservation_secret)) {
    HEADGATE_CHECK(limiter.OnRules(std::move(rules), now).ok());
    handler.AddRoutes(router);
    suspension.wake = [] {};
  }

  // Lets the store answer as often as needed, and afterwards to calls that nobody waits for.
  http::Response AnswerTo(const std::string& path, const std::string& body) {
    http::Request request = RequestOf(path, body);
    request.suspension = &suspension;
    while (true) {
      http::Response response;
      router.Handle(request, response, now);
      for (; shared.waiting() > 0; shared.AnswerOne()) before_answer();
      if (!response.later) return response;
    }
  }

  const base::Instant& now;
  store::MemoryStore store{{.max_buckets = 4096}};
  testing::ManualSharedStore shared;
  limiter::shared::SharedDecider decider{shared, store, {}};
  limiter::Limiter limiter{store, nullptr};
  limiter::Checker checker{limiter, 0, decider, {}};
  CheckHandler handler;
  access::Access access;
  http::routing::Router router{"Headgate", access};
  http::Suspension suspension;
  std::function<void()> before_answer = [] {};  // of the store
};

}  // namespace headgate::front::api

// The fronts of one loop: what its connections' sessions are made of.
#pragma once

#include "headgate/app/engine.h"
#include "headgate/app/metered_session.h"
#include "headgate/front/resp/context.h"
#include "headgate/limiter/limiter.h"
#include "headgate/net/access.h"
#include "headgate/net/server.h"

namespace headgate::app {

// Front names in metrics, registered once.
struct FrontNames {
  explicit FrontNames(observe::Metrics& metrics) : resp(metrics.AddFront("resp")), http(metrics.AddFront("http")) {}
  observe::Metrics::Front resp;
  observe::Metrics::Front http;
};

class Fronts {
 public:
  // All of them must outlive this.
  Fronts(Engine& engine, const FrontNames& names, const net::Access& access, const base::Clock& clock, uint32_t loop);
  Fronts(const Fronts&) = delete;
  Fronts& operator=(const Fronts&) = delete;

  net::SessionFactories::Factory Resp();

 private:
  limiter::Checker checker_;
  front::resp::Context resp_;
  const Meter resp_meter_;
};

}  // namespace headgate::app

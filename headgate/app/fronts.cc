#include "headgate/app/fronts.h"

#include "headgate/app/version.h"
#include "headgate/front/resp/session.h"

namespace headgate::app {

Fronts::Fronts(Engine& engine, const FrontNames& names, const net::Access& access, const base::Clock& clock,
               uint32_t loop)
    : checker_(engine.limiter(), loop),
      resp_({.checker = checker_,
             .store = engine.store(),
             .access = access,
             .version = std::string(kVersion),
             .loop = loop}),
      resp_meter_{.metrics = engine.metrics(), .front = names.resp, .worker = loop, .clock = clock, .answered = [this] {
                    return resp_.counters.commands.value();
                  }} {}

net::SessionFactories::Factory Fronts::Resp() {
  return [this](const net::Peer& peer) {
    return std::make_unique<MeteredSession>(std::make_unique<front::resp::RespSession>(resp_, peer), resp_meter_);
  };
}

}  // namespace headgate::app

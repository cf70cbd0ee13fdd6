// Shared by the Redis sessions of one loop.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "headgate/access/access.h"
#include "headgate/front/resp/client_list.h"
#include "headgate/front/resp/connection_verbs.h"
#include "headgate/front/resp/counter_verbs.h"
#include "headgate/front/resp/counters.h"
#include "headgate/front/resp/key_verbs.h"
#include "headgate/front/resp/rule_verbs.h"
#include "headgate/front/resp/script_verbs.h"
#include "headgate/front/resp/server_verbs.h"
#include "headgate/front/resp/throttle.h"
#include "headgate/front/resp/throttle_group.h"
#include "headgate/limiter/checker.h"

namespace headgate::front::resp {

// The services that the front uses. They must outlive the context.
struct Services {
  limiter::Checker& checker;  // of this loop
  access::Access& access;
  access::Post post{};            // to the thread of this loop
  std::string version;            // Headgate's version, for INFO
  uint32_t loop = 0;              // makes client numbers unique among loops
  ClientList* clients = nullptr;  // of all loops; null if this loop is the only one
  Scripts* scripts = nullptr;     // of all loops; null if this loop is the only one
  std::function<ServerFigures()> figures{};
  const base::Clock* clock = nullptr;  // for TIME; null: the time of decisions
};

// One per loop, used only by its thread, except for `counters`.
class Context {
 public:
  explicit Context(const Services& services)
      : access(services.access),
        throttle(services.checker, counters),
        throttle_group(services.checker),
        counter_verbs(services.checker),
        key_verbs(services.checker, counter_verbs),
        rule_verbs(services.checker),
        script_verbs(services.scripts != nullptr ? *services.scripts : own_scripts_),
        connection_verbs(services.access, services.post),
        server_verbs(services.version, services.clock, services.figures),
        clients(services.clients != nullptr ? *services.clients : own_clients_),
        next_client_(uint64_t{services.loop} << 40) {}
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  uint64_t NextClientId() { return ++next_client_; }

  access::Access& access;
  Counters counters;
  ThrottleBatch throttle;
  ThrottleGroup throttle_group;
  CounterVerbs counter_verbs;
  KeyVerbs key_verbs;
  RuleVerbs rule_verbs;
  ScriptVerbs script_verbs;
  const ConnectionVerbs connection_verbs;
  const ServerVerbs server_verbs;
  ClientList& clients;

 private:
  ClientList own_clients_;
  Scripts own_scripts_;
  uint64_t next_client_;
};

}  // namespace headgate::front::resp

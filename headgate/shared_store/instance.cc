#include "headgate/shared_store/instance.h"

#include <utility>

#include "headgate/base/random_secret.h"
#include "headgate/base/text.h"

namespace headgate::shared_store {

std::string RandomInstanceName() {
  const base::HashSecret secret = base::RandomHashSecret();
  std::string name;
  for (size_t i = 0; i < 16; ++i) base::AppendHex(secret.bytes[i], name);
  return name;
}

void InstanceWatch::Step(uint32_t instances, std::string_view error) {
  if (instances != 0 && instances != logged_)
    log_.Info("instances.changed", {{"instances", uint64_t{instances}},
                                    {"before", uint64_t{std::exchange(logged_, instances)}}});
  if (error == error_) return;
  error_ = error;
  if (error.empty()) return log_.Info("instances.accepted", {});
  log_.Warning(
      "instances.refused",
      {{"reason", error},
       {"effect", std::string_view("this instance is not shown, and uses the last known number of "
                                   "instances (1 at start)")},
       {"hint", std::string_view("let Headgate's user create and list the nodes below instances, "
                                 "or set store_instances")}});
}

}  // namespace headgate::shared_store

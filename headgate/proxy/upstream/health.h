// The health of each address of the upstream, as the event loops judge it: in the log when an
// address is set aside and when it returns, in metrics, and in GET /v1/sidecar.
//
// Each loop judges by the requests that it has sent. For the log, an address is set aside from the
// first loop that sets it aside until no loop does.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "headgate/base/time.h"
#include "headgate/observe/log.h"
#include "headgate/observe/metrics.h"
#include "headgate/proxy/proxy_loop.h"

namespace headgate::proxy::upstream {

class Health {
 public:
  struct Address {
    std::string name;
    uint64_t in_progress = 0;
    size_t loops_aside = 0;     // the loops that have set it aside
    std::string_view reason{};  // empty: none has
  };

  explicit Health(observe::Log& log) : log_(log) {}

  // All addresses of one loop. Addresses that no loop has are forgotten.
  void Report(size_t loop, std::span<const ProxyLoop::DescribedAddress> addresses,
              base::Instant now);
  // In order of their names.
  std::vector<Address> addresses() const;
  void Collect(observe::Sink& sink) const;

 private:
  struct Known {
    std::map<size_t, AddressState> by_loop;
    AsideBecause aside = AsideBecause::kNot;
    base::Instant aside_since{0};
  };
  void Judge(const std::string& name, Known& known, base::Instant now);

  observe::Log& log_;
  mutable std::mutex mutex_;
  std::map<std::string, Known> known_;                // by address; guarded by mutex_
  std::map<size_t, std::vector<std::string>> names_;  // of each loop, in its order; guarded too
};

}  // namespace headgate::proxy::upstream

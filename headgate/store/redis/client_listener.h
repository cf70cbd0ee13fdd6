// Reports of the client to the store's listener, with the memory that suppresses repetitions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "headgate/base/time.h"
#include "headgate/store/store_listener.h"

namespace headgate::store::redis {

// Passes events to the listener, and remembers per server which state it reported last, so that
// only changes are reported. Removes the arguments of calls from errors. `index` is the server's
// index in the topology.
class ListenerReports {
 public:
  explicit ListenerReports(StoreListener listener) : listener_(std::move(listener)) {}

  void Connection(uint32_t index, const std::string& server, const absl::Status& state);
  // `policy` is nullopt if the server's policy gives no reason for concern.
  void EvictionPolicy(uint32_t index, const std::string& server,
                      const std::optional<std::string>& policy);
  // `problem` is empty if the answer was usable.
  void Topology(uint32_t index, const std::string& server, const std::string& problem);
  // A call was answered.
  void Used() {
    if (!std::exchange(was_used_, true)) Usability(absl::OkStatus());
  }
  // The server refuses us, or must not be used. Reported until a call was answered.
  void Refused(const std::string& server, std::string_view why);
  void Breaker(const std::string& server, bool open) const;
  void Learning(const std::string& server, HistoryChange change, base::Duration term) const;
  void Learned(const std::string& server) const;
  void PauseMissed(const std::string& server, base::Duration missed) const;
  void Alarm(const std::string& server, std::string_view error) const;

  // The server is gone; another one may get its index.
  void Forget(uint32_t index);

 private:
  struct Last {
    absl::Status connection = absl::UnknownError("");  // nothing reported yet
    std::optional<std::string> eviction_policy{};
    std::string topology_problem{};
  };
  Last& LastOf(uint32_t index);
  void Usability(const absl::Status& state) const;

  const StoreListener listener_;
  std::vector<Last> last_;
  bool was_used_ = false;
};

}  // namespace headgate::store::redis

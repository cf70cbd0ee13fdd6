#include "headgate/store/redis/client_listener.h"

#include <fmt/format.h>

#include "headgate/store/redis/error_text.h"

namespace headgate::store::redis {

ListenerReports::Last& ListenerReports::LastOf(uint32_t index) {
  if (index >= last_.size()) last_.resize(index + 1);
  return last_[index];
}

void ListenerReports::Forget(uint32_t index) {
  if (index < last_.size()) last_[index] = {};
}

void ListenerReports::Connection(uint32_t index, const std::string& server,
                                 const absl::Status& state) {
  absl::Status& last = LastOf(index).connection;
  if (last == state) return;
  last = state;
  if (listener_.on_connection) listener_.on_connection(server, state);
}

void ListenerReports::EvictionPolicy(uint32_t index, const std::string& server,
                                     const std::optional<std::string>& policy) {
  std::optional<std::string>& last = LastOf(index).eviction_policy;
  if (last == policy) return;
  last = policy;
  if (policy && listener_.on_eviction_policy) listener_.on_eviction_policy(server, *policy);
}

void ListenerReports::Topology(uint32_t index, const std::string& server,
                               const std::string& problem) {
  std::string& last = LastOf(index).topology_problem;
  if (last == problem) return;
  last = problem;
  if (!listener_.on_topology) return;
  listener_.on_topology(server,
                        problem.empty() ? absl::OkStatus() : absl::UnavailableError(problem));
}

void ListenerReports::Usability(const absl::Status& state) const {
  if (listener_.on_usability) listener_.on_usability(state);
}

void ListenerReports::Refused(const std::string& server, std::string_view why) {
  if (!was_used_) Usability(absl::PermissionDeniedError(fmt::format("{}: {}", server, why)));
}

void ListenerReports::Breaker(const std::string& server, bool open) const {
  if (listener_.on_breaker) listener_.on_breaker(server, open);
}

void ListenerReports::Learning(const std::string& server, HistoryChange change,
                               base::Duration term) const {
  if (listener_.on_learning) listener_.on_learning(server, change, term);
}

void ListenerReports::Learned(const std::string& server) const {
  if (listener_.on_learned) listener_.on_learned(server);
}

void ListenerReports::PauseMissed(const std::string& server, base::Duration missed) const {
  if (listener_.on_pause_missed) listener_.on_pause_missed(server, missed);
}

void ListenerReports::Alarm(const std::string& server, std::string_view error) const {
  if (listener_.on_alarm) listener_.on_alarm(server, WithoutArguments(error));
}

}  // namespace headgate::store::redis

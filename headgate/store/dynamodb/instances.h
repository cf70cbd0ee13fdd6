// Counts the instances of the fleet in an item of the table: each instance has an attribute with
// the time of its last heartbeat, by its own clock.
//
//   name = "headgate-instances" · "i:4f…" = 1795608000123 · "i:a0…" = 1795608001007
//
// A heartbeat is one write, whose answer shows the others. It also removes the attributes of
// instances that have been silent for long. Clocks that differ by seconds only make an instance
// count a little longer or shorter.
//
// A heartbeat in the future shows that the other clock is ahead by at least the difference, because
// some time has passed since the heartbeat was written. The pauses are uneven, so that sooner or
// later an instance sees every other one's heartbeat while it is fresh.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/base/random.h"
#include "headgate/net/event_loop.h"
#include "headgate/store/dynamodb/messages.h"
#include "headgate/store/dynamodb/table_client.h"

namespace headgate::store::dynamodb {

// No bucket has this name.
inline constexpr std::string_view kInstancesKey = "headgate-instances";

struct InstancesOptions {
  std::string instance;  // letters and digits
  base::Duration pause = std::chrono::seconds(5);
  // An instance counts for this long after its last heartbeat.
  base::Duration silence_max = std::chrono::seconds(15);
  // Called when heartbeats are refused, with the reason; with an empty text when they are accepted
  // again. Once for each change.
  std::function<void(const std::string& error)> on_error{};
  // Called when the clock of another instance is too far ahead of this one's (cas/clock_offset.h).
  // Once for each instance.
  std::function<void(const std::string& alarm)> on_alarm{};
  uint64_t seed = 0;  // for uneven pauses
};

class Instances {
 public:
  // All arguments must outlive this object.
  Instances(TableClient& client, net::EventLoop& loop, const base::Clock& clock,
            InstancesOptions options);

  // Sends the first heartbeat. On the loop's thread.
  void Begin() { Beat(); }
  // Removes this instance; calls `done` also if that fails. No heartbeat is sent afterwards. Call
  // it a second time to remove the entry of a heartbeat that arrived late.
  void Leave(base::Duration timeout, std::function<void()> done);

  // From any thread.
  uint32_t count() const { return count_.load(std::memory_order_relaxed); }
  // Heartbeats that DynamoDB refused.
  uint64_t errors() const { return errors_.load(std::memory_order_relaxed); }

 private:
  void Beat();
  void OnBeat(const absl::StatusOr<std::string>& body);
  void CompareClock(const Heartbeat& beat, int64_t now_ms);

  TableClient& client_;
  net::EventLoop& loop_;
  const base::Clock& clock_;
  const InstancesOptions options_;
  std::atomic<uint32_t> count_{1};
  std::atomic<uint64_t> errors_{0};
  std::string error_;                // the last reported one
  std::vector<std::string> silent_;  // attributes that the next heartbeat removes
  std::set<std::string> ahead_;      // instances that an alarm was raised for
  base::Random random_;
  bool is_leaving_ = false;
  net::Timer timer_;
};

}  // namespace headgate::store::dynamodb

// The rounds of one instance that shares a pool with others (share/fleet_pool.h): reads the value
// of the pool, applies the report of the instance, takes parts, and writes the value back if nobody
// has changed it meanwhile.
//
//   get           → the pool, version 7
//   put, version 7 → version 8: the parts can be spent
//                  → another version: a short pause, and again
//                  → no answer: it is read again to see whether it was written (cas/write_ids.h)
//
// A round begins at once if a request waits for a part, else after a pause. The whole fleet does at
// most kFleetRoundsPerSecond of them on one pool. An instance without requests does one in each
// cycle, and none when all clients have left the pool.
//
// The clock of the store decides about cycles (VersionedStore::TimeAt), or that of this machine if
// the store tells no time. Used on the thread of one event loop. Does no I/O but for calls to the
// store.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headgate/algorithm/fair_share_options.h"
#include "headgate/base/clock.h"
#include "headgate/base/counter.h"
#include "headgate/base/random.h"
#include "headgate/share/fleet/fleet_value.h"
#include "headgate/share/fleet_pool.h"
#include "headgate/store/cas/versioned_store.h"

namespace headgate::share::fleet {

inline constexpr uint32_t kFleetRoundsPerSecond = 200;

struct FleetOptions {
  std::string pool = "default";
  // The settings of this instance. When it starts, they replace the settings of the pool, from the
  // next cycle on; later the settings of the pool apply.
  algorithm::FairShareOptions settings{};
  // The number of instances, as far as known; from any thread.
  std::function<uint32_t()> instances{};
  // The timeout of a call to the store. Raise it for a distant store.
  base::Duration timeout = std::chrono::milliseconds(250);
  // The pause between two rounds if no request waits. Raise it if the store gets too many calls.
  base::Duration pace = std::chrono::milliseconds(50);
  // After the store has failed for this long, the instance uses a pool of its own.
  base::Duration alone_after = std::chrono::milliseconds(500);
  // Random: differs between instances, and between runs of one.
  uint64_t seed = 0;
};

// The loop writes them, any thread reads them.
struct FleetCounters {
  base::Counter written;    // rounds
  base::Counter conflicts;  // attempts that lost against another instance
  base::Counter failed;     // attempts that the store did not answer, or refused
  base::Counter unclear;    // writes that may or may not have been applied
  base::Counter replaced_corrupt;
  base::Counter clock_reset;
  base::Counter settings_changed;  // by another instance, or by this one
  base::Counter went_alone;
};

// Events for the log, on the loop's thread.
struct FleetListener {
  // The instance begins to use a pool of its own, or ends to.
  std::function<void(bool alone, const absl::Status& why)> on_alone{};
  // The settings of the pool differ from those of this instance. `replaced`: this instance has just
  // started, and has replaced them.
  std::function<void(const algorithm::FairShareOptions& settings, bool replaced)> on_settings{};
  // The value in the store was replaced by a new pool.
  std::function<void(Unusable why)> on_replaced{};
};

class FleetRounds {
 public:
  // All must outlive this object. `set_timer` is called when next_wake() has changed.
  FleetRounds(FleetPool& pool, store::cas::VersionedStore& service,
              const base::DisciplinedClock& clock, const FleetOptions& options,
              FleetListener listener, std::function<void()> set_timer);
  ~FleetRounds();
  FleetRounds(const FleetRounds&) = delete;

  // Call it when a request waits, or when the time of next_wake has come.
  void Step();
  base::BootTime next_wake() const { return wake_; }

  const FleetCounters& counters() const { return counters_; }

 private:
  // A put until its outcome is known.
  struct Put {
    store::cas::WriteId id{};
    std::optional<store::cas::Version> version{};  // of the value before
    std::vector<store::cas::WriteId> writes_before{};
    uint64_t generation = 0;
    std::string bytes{};
    base::Instant expires_at{0};
    FleetReport report{};
    std::vector<ClientGrant> grants{};
    FleetState state;
    bool is_unclear = false;
  };

  base::BootTime Now() const { return clock_.source().BootNow(); }
  base::BootTime DueAt(base::BootTime now);
  base::Duration Gap() const;
  void WakeAt(base::BootTime at);
  void Get();
  void OnGot(absl::StatusOr<std::optional<store::cas::Versioned>> answer);
  // Whether the last put is settled, so that a round can begin.
  bool Resolve(const std::optional<store::cas::Versioned>& found, const ReadValue& read);
  void BeginRound(const std::optional<store::cas::Versioned>& found, ReadValue read,
                  base::Instant now);
  void FollowSettings(algorithm::FairSharePool& pool);
  void SendPut();
  void OnPut(const absl::StatusOr<store::cas::Version>& answer);
  void Finish();
  void Abandon();
  void Lose();
  void Fail(const absl::Status& why);

  FleetPool& pool_;
  store::cas::VersionedStore& service_;
  const base::DisciplinedClock& clock_;
  const FleetOptions options_;
  const FleetListener listener_;
  const std::function<void()> set_timer_;
  const std::string name_;
  base::Random random_;
  const uint64_t writer_;
  uint64_t last_write_ = 0;
  FleetCounters counters_;

  bool is_calling_ = false;
  base::BootTime begun_{0};        // the last attempt that was not a repetition
  base::BootTime pause_until_{0};  // after a lost race, or a failure
  uint32_t losses_ = 0;            // in a row
  uint32_t failures_ = 0;          // in a row
  base::BootTime failing_since_{0};
  base::BootTime wake_{INT64_MAX};
  std::optional<Put> put_;
  algorithm::FairShareOptions settings_;  // of this instance, or as last heard
  bool is_introduced_ = false;            // its settings have been compared with the pool's
  bool replaces_settings_ = false;        // the first round replaces the settings of the pool
  // How long after the end of a cycle an instance without requests looks at the new one.
  const base::Duration look_after_;
  // Null once this object is destroyed, for calls that are answered later.
  std::shared_ptr<FleetRounds*> self_;
};

}  // namespace headgate::share::fleet

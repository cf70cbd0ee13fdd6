// A service for tests, in memory and in virtual time. It loses races, loses answers to writes that
// were applied or not, applies writes late, and is slow, overloaded or unreachable. As in
// ZooKeeper, versions start again when a value is removed and made again.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "headgate/store/cas/versioned_store.h"

namespace headgate::store::cas {

// The faults that may happen to a call, in percent.
struct ServiceFaults {
  uint32_t lost_race = 0;       // Aborted, although the version was right
  uint32_t lost_answer = 0;     // applied, and the answer is Unknown
  uint32_t lost_write = 0;      // not applied, and the answer is Unknown
  uint32_t late_write = 0;      // the answer is Unknown, and the write is tried later
  uint32_t throttled = 0;       // ResourceExhausted
  uint32_t unavailable = 0;     // Unavailable
  base::Duration delay_max{0};  // of a call, and again of its answer
};

// The values, and the events to come. All instances of a test share it.
class ServiceRig {
 public:
  explicit ServiceRig(base::ManualClock& clock, uint64_t seed = 1) : clock_(clock), random_(seed) {}

  uint64_t Below(uint64_t end) { return random_() % end; }
  bool Percent(uint32_t percent) { return Below(100) < percent; }
  base::BootTime Now() const { return clock_.BootNow(); }

  // Calls `event` after this time. All events are called from RunNext.
  void After(base::Duration time, std::function<void()> event) {
    events_.emplace(Now() + time, std::move(event));
  }
  std::optional<base::BootTime> next_event() const {
    return events_.empty() ? std::nullopt : std::optional(events_.begin()->first);
  }
  // Moves the clock to the next event, and calls it.
  void RunNext() {
    auto next = events_.extract(events_.begin());
    if (next.key() > Now()) clock_.Advance(next.key() - Now());
    next.mapped()();
  }

  // Replaces the value if it has the expected version.
  absl::StatusOr<Version> Apply(const std::string& name, const std::optional<std::string>& bytes,
                                std::optional<Version> expected) {
    const auto found = values.find(name);
    const bool exists = found != values.end();
    if (exists != expected.has_value() || (exists && found->second.version != *expected))
      return absl::AbortedError("another version");
    ++puts_applied;
    if (!bytes) {
      values.erase(found);
      return Version{};
    }
    const Version version{exists ? expected->number + 1 : 0};
    values[name] = {.bytes = *bytes, .version = version};
    return version;
  }

  std::map<std::string, Versioned> values;
  ServiceFaults faults{};
  uint64_t gets = 0;
  uint64_t puts = 0;
  uint64_t puts_applied = 0;

 private:
  base::ManualClock& clock_;
  std::mt19937_64 random_;
  std::multimap<base::BootTime, std::function<void()>> events_;
};

// The service as one event loop of one instance sees it.
class VersionedStoreRig final : public VersionedStore {
 public:
  explicit VersionedStoreRig(ServiceRig& service) : service_(service) {}

  void Get(std::string_view name, base::BootTime deadline, GetDone done) override {
    ++service_.gets;
    absl::Status refused = Refused();
    service_.After(Delay(), [this, name = std::string(name), deadline, done = std::move(done),
                             refused, answers_in = Delay()] {
      std::optional<Versioned> found;
      if (const auto value = service_.values.find(name); value != service_.values.end())
        found = value->second;
      absl::StatusOr<std::optional<Versioned>> answer = std::move(found);
      if (!refused.ok()) answer = refused;
      const base::Duration left = deadline - service_.Now();
      if (answers_in > left) answer = absl::DeadlineExceededError("slow");
      service_.After(std::clamp(left, base::Duration(0), answers_in),
                     [done, answer] { done(answer); });
    });
  }

  void Put(const PutRequest& request, PutDone done) override {
    ++service_.puts;
    const ServiceFaults& faults = service_.faults;
    const auto apply = [this, name = std::string(request.name), expected = request.expected,
                        bytes = request.bytes ? std::optional(std::string(*request.bytes))
                                              : std::nullopt] {
      return service_.Apply(name, bytes, expected);
    };
    std::function<absl::StatusOr<Version>()> outcome = apply;
    const auto unknown = [] { return absl::UnknownError("the connection broke"); };
    absl::Status refused = Refused();
    if (!refused.ok()) {
      outcome = [refused] { return refused; };
    } else if (service_.Percent(faults.lost_race)) {
      outcome = [] { return absl::AbortedError("lost"); };
    } else if (service_.Percent(faults.lost_answer)) {
      outcome = [apply, unknown] {
        apply().IgnoreError();
        return unknown();
      };
    } else if (service_.Percent(faults.lost_write)) {
      outcome = unknown;
    } else if (service_.Percent(faults.late_write)) {
      service_.After(Delay() + Delay() + Delay() + Delay(), [apply] { apply().IgnoreError(); });
      outcome = unknown;
    }
    service_.After(Delay(), [this, outcome, done = std::move(done), deadline = request.deadline,
                             answers_in = Delay()] {
      absl::StatusOr<Version> answer = outcome();
      const base::Duration left = deadline - service_.Now();
      if (answers_in > left) answer = absl::DeadlineExceededError("slow");
      service_.After(std::clamp(left, base::Duration(0), answers_in),
                     [done, answer] { done(answer); });
    });
  }

 private:
  base::Duration Delay() {
    return base::Duration(static_cast<int64_t>(
        service_.Below(static_cast<uint64_t>(service_.faults.delay_max.count()) + 1)));
  }
  absl::Status Refused() {
    if (service_.Percent(service_.faults.throttled))
      return absl::ResourceExhaustedError("slow down");
    if (service_.Percent(service_.faults.unavailable)) return absl::UnavailableError("away");
    return absl::OkStatus();
  }

  ServiceRig& service_;
};

}  // namespace headgate::store::cas

// For tests: several instances that share one service, in virtual time on one thread.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/base/clock.h"
#include "headgate/store/answer_without_store.h"
#include "headgate/store/cas/key_owner.h"
#include "headgate/store/cas/versioned_store_rig.h"

namespace headgate::store::cas {

// A clock whose wall time is ahead of another one's.
class SkewedClock final : public base::Clock {
 public:
  SkewedClock(const base::Clock& clock, base::Duration ahead) : clock_(clock), ahead_(ahead) {}
  base::BootTime BootNow() const override { return clock_.BootNow(); }
  base::WallTime WallNow() const override { return clock_.WallNow() + ahead_; }

 private:
  const base::Clock& clock_;
  const base::Duration ahead_;
};

class FleetRig {
 public:
  static constexpr base::WallTime kStart = base::WallTime::FromNanos(1'790'000'000'000'000'000);

  explicit FleetRig(size_t instances, uint64_t seed = 1, const CasOptions& options = {},
                    const std::vector<base::Duration>& skews = {})
      : service(clock, seed) {
    for (size_t i = 0; i < instances; ++i) {
      const base::Duration skew = i < skews.size() ? skews[i] : base::Duration(0);
      instances_.push_back(std::make_unique<Instance>(*this, skew, seed * 1'000 + i, options));
    }
  }

  LimitHandle Limit(const algorithm::LimitSpec& spec) {
    return *limits.Intern(*algorithm::Limit::Make(spec));
  }

  // The answer comes from Run or Flush. `done` is called once.
  void Ask(size_t instance, std::string_view name, const SharedRequest& request,
           base::Duration timeout, SharedStore::Done done) {
    if (const auto answer = AnswerWithoutStore(request)) return done(*answer);
    owner(instance).Ask(name, std::make_unique<WaitingRequest>(request, clock.BootNow() + timeout,
                                                               std::move(done)));
  }
  // Asks and waits for the answer.
  SharedAnswer Ask(size_t instance, std::string_view name, const SharedRequest& request) {
    std::optional<SharedAnswer> answer;
    Ask(instance, name, request, std::chrono::seconds(1),
        [&](const SharedAnswer& given) { answer = given; });
    Run([&] { return answer.has_value(); });
    EXPECT_TRUE(answer.has_value());
    return answer.value_or(SharedAnswer{});
  }

  // Ends the turn of every instance.
  void Flush() {
    for (const auto& instance : instances_) instance->owner.Send();
  }
  // Runs until `done` returns true, or nothing is left to do.
  void Run(const std::function<bool()>& done = [] { return false; }) {
    Flush();
    while (!done()) {
      const auto event = service.next_event();
      base::BootTime wake{INT64_MAX};
      for (const auto& instance : instances_) wake = std::min(wake, instance->owner.next_wake());
      if (event && *event <= wake) {
        service.RunNext();
      } else if (wake.ns != INT64_MAX) {
        if (wake > clock.BootNow()) clock.Advance(wake - clock.BootNow());
        for (const auto& instance : instances_) instance->owner.OnTime();
      } else {
        return;
      }
      Flush();
    }
  }

  KeyOwner& owner(size_t instance) { return instances_[instance]->owner; }
  size_t instances() const { return instances_.size(); }

  base::ManualClock clock{kStart};
  ServiceRig service;
  LimitTable limits;

 private:
  struct Instance {
    Instance(FleetRig& rig, base::Duration skew, uint64_t writer, const CasOptions& options)
        : wall(rig.clock, skew),
          decisions(wall),
          connection(rig.service),
          owner(connection, decisions, writer, options, [] {}) {}

    SkewedClock wall;
    base::DisciplinedClock decisions;
    VersionedStoreRig connection;
    KeyOwner owner;
  };

  std::vector<std::unique_ptr<Instance>> instances_;
};

}  // namespace headgate::store::cas

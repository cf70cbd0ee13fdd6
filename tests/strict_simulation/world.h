// A fleet with strict buckets, the service in which they live, and the network between, in virtual
// time. A seed determines the whole run.
//
// Faults come first, as the plan says. Then the calm phase begins without faults, and every request
// must be answered. At the end the answers are compared with the reference model (replay.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headgate/base/random.h"
#include "tests/simulation/coverage.h"
#include "tests/strict_simulation/instance.h"
#include "tests/strict_simulation/service.h"

namespace headgate::strict_simulation {

struct Outcome {
  std::string failure;  // empty: all checks passed
  uint64_t digest = 0;  // of all answers
  uint64_t operations = 0;
  uint64_t admitted = 0;
  uint64_t failed = 0;
};

// Branches that a run of many seeds has to see.
inline constexpr auto kMarks = std::to_array<std::string_view>({
    "a write lost against another instance",
    "a write whose answer was lost had been applied",
    "a write whose answer was lost was sent again",
    "the fate of a write stayed unknown",
    "a request that failed had been counted",
    "a request gave up after too many attempts",
    "a request gave up because its time was over",
    "requests travelled together",
    "the service asked to slow down",
    "a value was removed",
    "a value was made again after its removal",
    "an instance died while requests waited",
    "the write of an instance that had died was applied",
    "a wall clock was set",
    "a request was answered from a lease",
    "a writer used a remembered value",
});

class World final : public InstanceHost {
 public:
  World(const Plan& plan, std::optional<Mutant> mutant, simulation::Coverage& coverage);

  Outcome Run();

  base::Duration now() const override { return now_; }
  const base::Clock& clock() const override { return clock_; }
  void Get(Instance& instance, size_t key, base::BootTime deadline,
           Connection::GetDone done) override;
  void Put(Instance& instance, size_t key, uint64_t number, const store::cas::PutRequest& request,
           Connection::PutDone done) override;
  std::vector<Operation>& operations() override { return operations_; }
  std::vector<strict_simulation::Put>& puts() override { return puts_; }
  void Tell(const Told& told) override { told_.push_back(told); }

 private:
  struct Machine {
    std::unique_ptr<Instance> instance;  // empty: not running
    uint64_t incarnation = 0;
    base::Duration paused_until{0};
    base::Duration cut_until{0};
    base::Duration wakes_at = base::Duration::max();
  };
  // A call until it is answered, or its deadline is over.
  template <typename Answer>
  struct Call {
    std::function<void(Answer)> done;
    bool finished = false;
  };

  struct Caller {
    uint32_t index;
    uint64_t incarnation;
  };

  void Schedule(base::Duration at, std::function<void()> happen);
  // Happens when the instance is not paused, and only if it has not died since.
  void OnInstance(const Caller& caller, base::Duration at, std::function<void(Instance&)> happen);
  Caller CallerOf(uint32_t index) const { return {index, machines_[index].incarnation}; }
  // Answers the call on its instance, unless it has been answered.
  template <typename Answer>
  void Finish(const Caller& caller, base::Duration at, const std::shared_ptr<Call<Answer>>& call,
              std::function<Answer(Instance&)> answer);
  void Start(uint32_t index);
  void Crash(uint32_t index);
  void NextRequest(uint32_t index, size_t key);
  void Request(uint32_t index, size_t key);
  void NextDiscipline(uint32_t index);
  void ScheduleFaults();
  void Sweep(size_t key);
  // Why the call is not sent; OK if it is. `lost`: it is sent, and does not arrive.
  absl::Status Refusal(uint32_t index, bool& lost);
  void Arrive(const Caller& caller, size_t key, uint64_t number,
              const std::optional<std::string>& bytes, std::optional<store::cas::Version> expected,
              const std::shared_ptr<Call<absl::StatusOr<store::cas::Version>>>& call);
  bool Chance(uint32_t ppm) { return !calm() && random_.Below(1'000'000) < ppm; }
  bool Half() { return random_.Below(2) == 0; }
  bool calm() const { return now_ >= plan_.calm_from; }
  base::Duration Below(base::Duration most) {
    return base::Duration(
        static_cast<int64_t>(random_.Below(static_cast<uint64_t>(most.count()) + 1)));
  }
  base::Duration Delay() {
    if (calm()) return Below(std::chrono::microseconds(300));
    return Below(Chance(plan_.faults.slow) ? plan_.slow_max : plan_.delay_max);
  }
  void CountBranches(const Instance& instance);
  void Mark(std::string_view mark, uint64_t count = 1) {
    if (count > 0) coverage_.Mark(mark);
  }
  Outcome Check();

  const Plan plan_;
  const std::optional<Mutant> mutant_;
  simulation::Coverage& coverage_;
  base::Random random_;
  base::ManualClock clock_;
  base::Duration now_{0};
  std::multimap<base::Duration, std::function<void()>> events_;
  std::vector<Value> values_;
  std::vector<Operation> operations_;
  std::vector<strict_simulation::Put> puts_;
  std::vector<Told> told_;
  std::vector<Machine> machines_;
};

}  // namespace headgate::strict_simulation

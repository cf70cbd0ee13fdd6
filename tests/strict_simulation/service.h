// The service of a simulated fleet: values with versions, and the history of each, for the checks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "headgate/base/random.h"
#include "headgate/base/status.h"
#include "headgate/base/time.h"
#include "headgate/store/cas/versioned_store.h"
#include "tests/strict_simulation/mutants.h"

namespace headgate::strict_simulation {

// A state of a value, since it was written.
struct Change {
  base::Duration at{0};  // when it was written
  uint64_t put = 0;      // the number of the call that wrote it
  std::optional<std::string> bytes{};
  store::cas::Version version{};
};

// One value. Its states are counted from 0, when it does not exist.
class Value {
 public:
  Value(bool random_versions, uint64_t seed, std::optional<Mutant> mutant)
      : random_versions_(random_versions), random_(seed), mutant_(mutant) {}

  const std::vector<Change>& states() const { return states_; }
  size_t latest() const { return states_.size() - 1; }
  // The state at this time.
  size_t StateAt(base::Duration at) const {
    size_t state = latest();
    while (state > 0 && states_[state].at > at) --state;
    return state;
  }

  // Writes the next state if the present one has the expected version. `bytes` empty: removes the
  // value.
  absl::StatusOr<store::cas::Version> Put(uint64_t put, const std::optional<std::string>& bytes,
                                          std::optional<store::cas::Version> expected,
                                          base::Duration at);

 private:
  store::cas::Version NextVersion();

  const bool random_versions_;
  base::Random random_;
  const std::optional<Mutant> mutant_;
  std::vector<Change> states_{1};
  uint32_t made_ = 0;  // how often the value was made
};

}  // namespace headgate::strict_simulation

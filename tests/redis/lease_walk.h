// Random steps of one bucket from which nodes get leases: asks with a request and reports (some
// repeated, reordered or late), requests, refunds, changes of the limit, and a clock that is set
// back. Used to compare two implementations.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "headgate/algorithm/lease.h"
#include "headgate/store/shared_store.h"
#include "tests/model/random_walk.h"

namespace headgate::redis_host {

struct LeaseStep {
  enum class Kind : uint8_t { kRequest, kLease };

  Kind kind = Kind::kRequest;
  algorithm::LimitSpec spec{};
  algorithm::Cost cost = 1;
  store::Operation operation = store::Operation::kTake;
  algorithm::LeaseAsk ask{};  // without its reports
  std::vector<algorithm::LeaseReport> reports{};
  base::Instant now{0};
  base::Instant taken_at{0};  // of an undo
  bool keeps_limit = false;
};

class LeaseWalk {
 public:
  // The walk begins with limits of `kind`, and changes to others.
  LeaseWalk(uint64_t seed, const algorithm::LimitSpec& kind);

  LeaseStep Next();
  // The store's answer to the step.
  void Note(const LeaseStep& step, const store::SharedAnswer& answer);

  // Describes the steps so far.
  const std::string& story() const { return story_; }
  bool at_the_end_of_time() const;

 private:
  struct Node {
    uint64_t id = 0;
    uint64_t numbers_used = 0;
    std::vector<std::pair<uint64_t, uint64_t>>
        granted{};  // the number of a lease, and its requests
  };

  algorithm::LimitSpec OfTheKind();
  LeaseStep Ask();
  LeaseStep Request();
  void ChangeTheLimit();
  void GatherACrowd();
  algorithm::Cost NextCost();
  int64_t NextTime();
  int64_t Beside() { return static_cast<int64_t>(random_() % 3) - 1; }

  model::Random random_;
  const algorithm::LimitSpec kind_;
  algorithm::LimitSpec spec_;
  std::vector<Node> nodes_;
  std::vector<LeaseStep> asks_;        // kept to be repeated
  std::vector<int64_t> lease_ends_{};  // the latest time, for steps that go forward
  uint64_t granted_ = 0;               // according to the last answer
  algorithm::Decision last_{};
  uint64_t crowd_in_ = 0;  // steps until many nodes ask; 0: not planned
  uint64_t crowd_ = 0;     // nodes that still have to ask
  bool leaves_ = false;    // the crowd has asked
  int64_t now_;
  std::string story_;
};

}  // namespace headgate::redis_host

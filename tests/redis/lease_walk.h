// Random steps of one bucket that nodes hold leases of: asks with reports, repeated and reordered
// ones, requests, refunds, changes of the limit, and a clock that is set back. For whoever compares
// two ways to carry them out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "headgate/algorithm/lease.h"
#include "headgate/store/shared_store.h"
#include "tests/model/random_walk.h"

namespace headgate::redis_host {

struct LeaseStep {
  enum class Kind : uint8_t { kRequest, kLease, kDebit };

  Kind kind = Kind::kRequest;
  algorithm::LimitSpec spec{};
  algorithm::Cost cost = 1;
  store::Operation operation = store::Operation::kTake;
  algorithm::LeaseAsk ask{};  // its reports are `reports`
  std::vector<algorithm::LeaseReport> reports{};
  base::Instant now{0};
};

class LeaseWalk {
 public:
  // The walk begins with `kind`, whose numbers it draws, and changes to others.
  LeaseWalk(uint64_t seed, const algorithm::LimitSpec& kind);

  LeaseStep Next();
  // What the store answered to the step.
  void Note(const LeaseStep& step, const store::SharedAnswer& answer);

  // The steps so far, in words.
  const std::string& story() const { return story_; }
  bool at_the_end_of_time() const;

 private:
  struct Node {
    uint64_t id = 0;
    uint64_t numbers_used = 0;
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
  std::vector<LeaseStep> asks_;        // for repetition
  std::vector<int64_t> lease_ends_{};  // the latest, for steps in time
  uint64_t granted_ = 0;               // by the last answer
  algorithm::Decision last_{};
  uint64_t crowd_in_ = 0;  // steps until a crowd comes; 0: none does
  uint64_t crowd_ = 0;     // nodes of it that still come, one after the other
  int64_t now_;
  std::string story_;
};

}  // namespace headgate::redis_host

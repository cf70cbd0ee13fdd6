// A shared store without a network: one process's memory, which answers when it is told to, or fails as it is told to.
// For tests of whatever asks a SharedStore. Not thread-safe.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/store/memory.h"
#include "headgate/store/shared_store.h"

namespace headgate::testing {

class ManualSharedStore final : public store::SharedStore {
 public:
  struct Asked {
    std::string name;
    store::LimitHandle limit;
    algorithm::Cost cost;
    store::Operation operation;
    std::span<const store::LimitChange> history;
    Done done;
  };

  // Decides in `memory`, by the time that `now` says.
  ManualSharedStore(store::Store& memory, const base::Instant& now) : memory_(memory), now_(now) {}

  // What it answers instead of deciding.
  absl::Status failure;
  // Answers in the same call, as a store does that is known to be away.
  bool at_once = false;
  uint32_t instance_count = 1;

  void Ask(const store::SharedRequest& request, Done done) override {
    Asked asked{.name = std::string(request.name),
                .limit = request.limit,
                .cost = request.cost,
                .operation = request.operation,
                .history = request.history,
                .done = std::move(done)};
    names_.push_back(asked.name);
    HEADGATE_CHECK(!request.lease);  // it gives none: decide exactly
    if (at_once) return Answer(asked);
    asked_.push_back(std::move(asked));
  }
  // Moves with the time of decisions.
  base::BootTime Now() const override { return base::BootTime{now_.ns}; }
  uint32_t instances() const override { return instance_count; }
  store::LimitTable& limits() override { return memory_.limits(); }

  size_t waiting() const { return asked_.size(); }
  // Every name that was asked for, in order.
  const std::vector<std::string>& names() const { return names_; }

  // Answers the oldest question.
  void AnswerOne() {
    Asked asked = std::move(asked_.front());
    asked_.pop_front();
    Answer(asked);
  }
  // Answers until nobody waits, those included that ask again meanwhile.
  void AnswerAll() {
    while (!asked_.empty()) AnswerOne();
  }

 private:
  void Answer(Asked& asked) {
    store::SharedAnswer answer;
    answer.status = failure;
    if (failure.ok()) {
      const store::TakeRequest request{.key = base::HashBytes(memory_.hash_secret(), base::KeyKind::kRaw, asked.name),
                                       .limit = asked.limit.get(),
                                       .history = asked.history,
                                       .cost = asked.cost,
                                       .operation = asked.operation};
      memory_.Take({&request, 1}, {&answer.decision, 1}, now_);
    }
    asked.done(answer);
  }

  store::Store& memory_;
  const base::Instant& now_;
  std::deque<Asked> asked_;
  std::vector<std::string> names_;
};

}  // namespace headgate::testing

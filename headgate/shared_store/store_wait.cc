#include "headgate/shared_store/store_wait.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "headgate/base/monotonic_time.h"

namespace headgate::shared_store {
namespace {

// With three servers, one of them has none of 16 keys in 1 of 200 cases.
constexpr size_t kKeys = 16;
// A read also waits for the connection.
constexpr base::Duration kReadTimeout = std::chrono::milliseconds(500);
// A turn of each loop, and the pause before a read that has failed is repeated.
constexpr base::Duration kSlice = std::chrono::milliseconds(10);

bool IsAnswer(const absl::Status& status) {
  return !absl::IsUnavailable(status) && !absl::IsDeadlineExceeded(status) &&
         !absl::IsAborted(status) && !absl::IsUnknown(status);
}

// The reads on one loop.
class Reads {
 public:
  explicit Reads(const LoopOfStore& on) : on_(on) {}

  // Runs the loop for a moment, also if only other loops still wait: its timers must be called.
  void Step() {
    if (state_->under_way == 0) Ask();
    bool ran = false;
    on_.loop.RunUntil([&] { return std::exchange(ran, true) && is_done(); }, kSlice);
  }
  bool is_done() const { return state_->answered_count == kKeys; }
  const absl::Status& why() const { return state_->why; }

 private:
  // Answers may come after the wait.
  struct State {
    std::array<bool, kKeys> answered{};
    size_t answered_count = 0;
    size_t under_way = 0;
    absl::Status why = absl::UnavailableError("it has not answered yet");
  };

  void Ask() {
    for (size_t i = 0; i < kKeys; ++i) {
      if (state_->answered[i]) continue;
      ++state_->under_way;
      on_.values.Get(fmt::format("hg:{{ready|{}}}", i), on_.loop.Now() + kReadTimeout,
                     [state = state_, i](const auto& answer) {
                       --state->under_way;
                       state->answered[i] = IsAnswer(answer.status());
                       if (state->answered[i]) {
                         ++state->answered_count;
                       } else {
                         state->why = answer.status();
                       }
                     });
    }
  }

  const LoopOfStore on_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace

absl::Status AwaitStore(std::span<const LoopOfStore> loops, base::Duration timeout) {
  const base::MonotonicTime end = base::MonotonicNow() + timeout;
  std::vector<Reads> reads;
  for (const LoopOfStore& on : loops) reads.emplace_back(on);
  while (true) {
    const Reads* waiting = nullptr;
    for (Reads& each : reads) {
      each.Step();
      if (!each.is_done()) waiting = &each;
    }
    if (waiting == nullptr) return absl::OkStatus();
    if (base::MonotonicNow() >= end) return waiting->why();
  }
}

}  // namespace headgate::shared_store

#include "headgate/store/dynamodb/instances.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "headgate/base/json.h"
#include "headgate/store/cas/clock_offset.h"
#include "headgate/store/dynamodb/messages.h"

namespace headgate::store::dynamodb {
namespace {

// A request has at most 4 KB of expressions.
constexpr size_t kRemovedAtOnce = 20;
// The item expires if no instance writes it for that long.
constexpr base::Duration kKept = std::chrono::hours(1);
constexpr uint32_t kUnevenPercent = 50;
// Each of the two clocks may be wrong by half of this.
constexpr int64_t kAheadMsMax =
    std::chrono::duration_cast<std::chrono::milliseconds>(2 * cas::kClockOffsetMax).count();

int64_t Milliseconds(base::WallTime time) { return time.ns / 1'000'000; }

}  // namespace

Instances::Instances(TableClient& client, net::EventLoop& loop, const base::Clock& clock,
                     InstancesOptions options)
    : client_(client),
      loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      random_(options_.seed),
      timer_(loop, [this] { Beat(); }) {}

void Instances::Beat() {
  if (is_leaving_) return;
  timer_.SetAfter(random_.Jitter(options_.pause, kUnevenPercent));
  const base::WallTime now = clock_.WallNow();
  client_.Call(
      "UpdateItem",
      HeartbeatBody(client_.table().name, kInstancesKey, options_.instance, Milliseconds(now),
                    Milliseconds(now + kKept) / 1'000, silent_),
      loop_.Now() + options_.pause,
      [this](const absl::StatusOr<std::string>& body, bool /*answered*/) { OnBeat(body); });
}

void Instances::OnBeat(const absl::StatusOr<std::string>& body) {
  if (is_leaving_) return;
  const auto beats =
      body.ok() ? ParseHeartbeats(*body) : absl::StatusOr<std::vector<Heartbeat>>(body.status());
  if (!beats.ok()) {
    timer_.SetAfter(options_.pause / 5);
    // A heartbeat without an answer is reported elsewhere.
    const bool is_refused =
        absl::IsPermissionDenied(beats.status()) || absl::IsInvalidArgument(beats.status());
    if (is_refused) errors_.fetch_add(1, std::memory_order_relaxed);
    std::string error = is_refused ? std::string(beats.status().message()) : error_;
    if (std::exchange(error_, error) != error && options_.on_error) options_.on_error(error);
    return;
  }
  silent_.clear();
  const int64_t now_ms = Milliseconds(clock_.WallNow());
  const int64_t silence_max_ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(options_.silence_max).count();
  uint32_t count = 0;
  for (const Heartbeat& beat : *beats) {
    if (now_ms - beat.time_ms <= silence_max_ms) {
      ++count;
      CompareClock(beat, now_ms);
    } else if (beat.instance != options_.instance && silent_.size() < kRemovedAtOnce) {
      silent_.push_back(beat.instance);
      ahead_.erase(beat.instance);
    }
  }
  count_.store(std::max(count, 1u), std::memory_order_relaxed);
  if (!std::exchange(error_, "").empty() && options_.on_error) options_.on_error("");
}

void Instances::CompareClock(const Heartbeat& beat, int64_t now_ms) {
  const int64_t ahead_ms = beat.time_ms - now_ms;
  if (ahead_ms <= kAheadMsMax || beat.instance == options_.instance) return;
  if (!ahead_.insert(beat.instance).second || !options_.on_alarm) return;
  options_.on_alarm(fmt::format(
      "the clock of the instance {} is {} ms or more ahead of this one's; with more than {} ms, "
      "more may be let through than the limits say, unless both correct their clocks by DynamoDB's "
      "time; let NTP set the clocks of all machines",
      beat.instance, ahead_ms, kAheadMsMax));
}

void Instances::Leave(base::Duration timeout, std::function<void()> done) {
  is_leaving_ = true;
  timer_.Cancel();
  client_.Call(
      "UpdateItem", LeaveBody(client_.table().name, kInstancesKey, options_.instance),
      loop_.Now() + timeout,
      [done = std::move(done)](const absl::StatusOr<std::string>& /*body*/, bool) { done(); });
}

}  // namespace headgate::store::dynamodb

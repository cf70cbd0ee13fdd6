#include "headgate/store/zookeeper/lock_place.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <utility>

#include "headgate/base/check.h"

namespace headgate::store::zookeeper {
namespace {

using Kind = LockAction::Kind;

constexpr std::string_view kPrefix = "lock-";
constexpr size_t kIdDigits = 16;

// The number of a node in the queue; nothing if the name is not that of a place.
std::optional<uint32_t> NumberOf(std::string_view name) {
  constexpr size_t kBegin = kPrefix.size() + kIdDigits + 1;
  if (!name.starts_with(kPrefix) || name.size() <= kBegin || name[kBegin - 1] != '-')
    return std::nullopt;
  // After 2^31 - 1 ZooKeeper's counter continues with negative numbers.
  int32_t number = 0;
  const auto [end, error] =
      std::from_chars(name.data() + kBegin, name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return static_cast<uint32_t>(number);
}

bool IsBefore(uint32_t a, uint32_t b) { return static_cast<int32_t>(a - b) < 0; }

// Whether the same call may succeed later.
bool IsPassing(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsUnknown(status) ||
         absl::IsResourceExhausted(status);
}

}  // namespace

LockPlace::LockPlace(uint64_t id) : prefix_(fmt::format("{}{:016x}-", kPrefix, id)) {}

LockAction LockPlace::Next() {
  if (in_flight_ || must_retry_) return {};
  if (left_ && (state_ == State::kNew || state_ == State::kNoQueue)) state_ = State::kGone;
  if (state_ == State::kGone) return {.kind = Kind::kEnd};
  if (left_ && state_ != State::kUnsure) {
    in_flight_ = true;
    return {.kind = Kind::kDelete, .name = own_};
  }
  if (state_ == State::kHeld || state_ == State::kWatching) return {};
  in_flight_ = true;
  switch (state_) {
    case State::kNoQueue:
      return {.kind = Kind::kMakeQueue};
    case State::kNew:
      return {.kind = Kind::kCreate, .name = prefix_};
    case State::kUnsure:
      return {.kind = Kind::kSyncAndList};
    case State::kQueued:
      return {.kind = Kind::kList};
    case State::kUnread:
      return {.kind = Kind::kRead, .name = own_};
    case State::kBehind:
      return {.kind = Kind::kWatch, .name = predecessor_};
    case State::kWatching:
    case State::kHeld:
    case State::kGone:
      break;
  }
  HEADGATE_CHECK(false);
}

void LockPlace::OnQueueMade(const absl::Status& status) {
  in_flight_ = false;
  if (!status.ok() && !absl::IsAlreadyExists(status)) return RetryOrFail(status);
  state_ = State::kNew;
}

void LockPlace::OnCreated(const absl::StatusOr<std::string>& name, uint64_t fence) {
  in_flight_ = false;
  if (name.ok()) {
    own_ = *name;
    fence_ = fence;
    state_ = State::kQueued;
    return;
  }
  if (absl::IsNotFound(name.status())) {
    // The queue was never created, or the ensemble has removed it because it was empty.
    state_ = State::kNoQueue;
    return;
  }
  if (absl::IsUnknown(name.status())) state_ = State::kUnsure;
  RetryOrFail(name.status());
}

void LockPlace::OnListed(const absl::StatusOr<std::vector<std::string>>& names) {
  in_flight_ = false;
  if (absl::IsNotFound(names.status())) return FindPlace({});
  if (!names.ok()) return RetryOrFail(names.status());
  FindPlace(*names);
}

void LockPlace::FindPlace(const std::vector<std::string>& names) {
  std::optional<uint32_t> own;
  std::string found;
  for (const std::string& name : names) {
    const auto number = IsOwn(name) ? NumberOf(name) : std::nullopt;
    if (!number || (own && IsBefore(*own, *number))) continue;
    found = name;
    own = number;
  }
  // If another node of this place was found than before, it was made in another transaction, so its
  // fence is unknown.
  if (std::exchange(own_, found) != found) fence_ = 0;
  if (!own) {
    // The node was never created, or somebody has deleted it.
    repeats_ = repeats_ || state_ == State::kUnsure;
    fence_ = 0;
    state_ = State::kNew;
    return;
  }
  std::optional<uint32_t> nearest;
  for (const std::string& name : names) {
    const auto number = NumberOf(name);
    if (!number || !IsBefore(*number, *own)) continue;
    if (nearest && IsBefore(*number, *nearest)) continue;
    nearest = number;
    predecessor_ = name;
  }
  state_ = nearest ? State::kBehind : fence_ == 0 ? State::kUnread : State::kHeld;
}

void LockPlace::OnLooked(const absl::StatusOr<uint64_t>& fence) {
  in_flight_ = false;
  if (absl::IsNotFound(fence.status())) {
    state_ = State::kQueued;
    return;
  }
  if (!fence.ok()) return RetryOrFail(fence.status());
  fence_ = *fence;
  state_ = State::kHeld;
}

void LockPlace::OnWatched(const absl::Status& status) {
  in_flight_ = false;
  if (absl::IsNotFound(status)) {
    state_ = State::kQueued;
    return;
  }
  if (!status.ok()) return RetryOrFail(status);
  // Otherwise the watch has fired already.
  if (state_ == State::kBehind) state_ = State::kWatching;
}

void LockPlace::OnDeleted(const absl::Status& status) {
  in_flight_ = false;
  if (status.ok() || absl::IsNotFound(status)) {
    state_ = repeats_ ? State::kUnsure : State::kGone;
    return;
  }
  // Nothing but the end of the session would remove the node, so the deletion is tried again.
  must_retry_ = true;
}

void LockPlace::OnPredecessorGone() {
  // The predecessor may go while the call that sets the watch is in flight; then the answer to that
  // call no longer counts.
  if (state_ == State::kWatching || state_ == State::kBehind) state_ = State::kQueued;
}

void LockPlace::OnSessionLost() {
  in_flight_ = must_retry_ = repeats_ = false;
  if (state_ == State::kHeld && !left_)
    failure_ = absl::UnavailableError("the session that had the lock of the key has ended");
  left_ = left_ || !failure_.ok();
  own_.clear();
  fence_ = 0;
  state_ = left_ ? State::kGone : State::kNew;
}

void LockPlace::Leave() { left_ = true; }

void LockPlace::Fail(const absl::Status& status) {
  failure_ = status;
  left_ = true;
}

void LockPlace::RetryOrFail(const absl::Status& status) {
  if (IsPassing(status) || left_) {
    must_retry_ = true;
    return;
  }
  Fail(status);
}

}  // namespace headgate::store::zookeeper

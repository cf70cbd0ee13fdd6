#include "headgate/store/zookeeper/sweeper.h"

#include <algorithm>
#include <utility>

#include "headgate/client/zookeeper/node_name.h"
#include "headgate/store/cas/envelope.h"
#include "headgate/store/cas/removal.h"

namespace headgate::store::zookeeper {

using absl::Status;
using client::zookeeper::Below;
using client::zookeeper::Children;
using client::zookeeper::Client;
using client::zookeeper::Created;
using client::zookeeper::CreateMode;
using client::zookeeper::Node;
using client::zookeeper::NodeStat;
using client::zookeeper::Watch;

namespace {

// The work of a second is done in this many slices.
constexpr uint32_t kSlicesPerSecond = 10;
constexpr base::Duration kSlice = std::chrono::milliseconds(1'000 / kSlicesPerSecond);

}  // namespace

Sweeper::Sweeper(Client& client, net::EventLoop& loop, const base::DisciplinedClock& clock,
                 SweeperOptions options)
    : client_(client),
      loop_(loop),
      clock_(clock),
      options_(std::move(options)),
      nodes_(options_.root),
      locks_(Below(options_.root, "locks")),
      timer_(loop, [this] { OnTime(); }) {}

void Sweeper::OnConnected(bool new_session) {
  if (new_session) lock_session_ = 0;
  if (in_flight_ == 0) timer_.SetAfter(kSlice);
}

void Sweeper::OnTime() {
  if (!client_.connected() || in_flight_ > 0) return;
  if (lock_session_ == 0 || lock_session_ != client_.session_id()) return TakeLock();
  budget_ = std::max(1u, options_.nodes_per_second / kSlicesPerSecond);
  Step();
}

void Sweeper::TakeLock() {
  lock_session_ = 0;
  ++in_flight_;
  client_.Create(locks_ + "/gc", options_.instance, CreateMode::kEphemeral,
                 [this](const absl::StatusOr<Created>& made) {
                   --in_flight_;
                   if (made.ok()) return OnLocked();
                   if (absl::IsAlreadyExists(made.status())) return CheckLock();
                   if (!absl::IsNotFound(made.status())) return Fail();
                   ++in_flight_;
                   client_.CreateAll(locks_, [this](const Status& status) {
                     --in_flight_;
                     if (!status.ok()) return Fail();
                     timer_.SetAfter(kSlice);
                   });
                 });
}

// The existing lock may be ours: the answer to its creation may have been lost.
void Sweeper::CheckLock() {
  ++in_flight_;
  client_.Exists(locks_ + "/gc", Watch::kNo, [this](const absl::StatusOr<NodeStat>& stat) {
    --in_flight_;
    if (stat.ok() && stat->owner == client_.session_id()) return OnLocked();
    timer_.SetAfter(options_.lock_pause);
  });
}

void Sweeper::OnLocked() {
  lock_session_ = client_.session_id();
  shard_ = 0;
  names_.clear();
  timer_.SetAfter(kSlice);
}

// Takes the next step when the calls of the previous step have ended.
void Sweeper::Step() {
  if (budget_ == 0) return timer_.SetAfter(kSlice);
  if (names_.empty()) return ListShard();
  const uint32_t count = static_cast<uint32_t>(std::min<size_t>(names_.size(), budget_));
  budget_ -= count;
  ++in_flight_;  // counts this function as a call, so that the step does not end within it
  for (uint32_t i = 0; i < count; ++i) {
    const std::string name = std::move(names_.back());
    names_.pop_back();
    Look(name);
  }
  EndCall();
}

void Sweeper::ListShard() {
  if (shard_ == kShardCount) {
    shard_ = 0;
    counters_.passes.Add();
    return timer_.SetAfter(options_.pause);
  }
  shard_path_ = nodes_.ShardPath(shard_++);
  --budget_;
  ++in_flight_;
  client_.List(shard_path_, Watch::kNo, [this](absl::StatusOr<Children> children) {
    if (children.ok()) {
      names_ = std::move(children->names);
    } else if (!absl::IsNotFound(children.status())) {
      counters_.failed.Add();
    }
    EndCall();
  });
}

void Sweeper::Look(const std::string& name) {
  ++in_flight_;
  const std::string path = Below(shard_path_, name);
  client_.Get(path, Watch::kNo, [this, path](const absl::StatusOr<Node>& node) {
    OnNode(path, node);
    EndCall();
  });
}

void Sweeper::OnNode(const std::string& path, const absl::StatusOr<Node>& node) {
  if (!node.ok()) {
    if (!absl::IsNotFound(node.status())) counters_.failed.Add();
    return;
  }
  counters_.looked.Add();
  const auto envelope = cas::ParseEnvelope(node->data);
  if (!envelope) return counters_.foreign.Add();
  if (!cas::MayRemove(*envelope, clock_.Now())) return;
  // The lock must be ours since before the node was read.
  if (client_.session_id() != lock_session_ || lock_session_ == 0) return;
  ++in_flight_;
  client_.Delete(path, node->stat.version, [this](const Status& status) {
    if (status.ok()) {
      counters_.removed.Add();
    } else if (!absl::IsAborted(status) && !absl::IsNotFound(status)) {
      counters_.failed.Add();
    }
    EndCall();
  });
}

void Sweeper::EndCall() {
  if (--in_flight_ > 0) return;
  if (!client_.connected()) return timer_.SetAfter(kSlice);
  Step();
}

void Sweeper::Fail() {
  counters_.failed.Add();
  timer_.SetAfter(options_.lock_pause);
}

}  // namespace headgate::store::zookeeper

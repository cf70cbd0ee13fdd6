#include "headgate/store/zookeeper/locks.h"

#include <utility>

#include "headgate/base/check.h"
#include "headgate/client/zookeeper/node_name.h"
#include "headgate/store/zookeeper/state_nodes.h"

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
using client::zookeeper::WatchEvent;

namespace {

std::string LastName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Locks::Locks(Client& client, net::EventLoop& loop, LocksOptions options)
    : client_(client),
      options_(std::move(options)),
      locks_(Below(options_.root, "locks")),
      random_(options_.seed),
      retry_timer_(loop, [this] { OnTime(); }) {}

void Locks::Take(std::string_view name, Listener listener) {
  if (!client_.connected())
    return listener(absl::UnavailableError("ZooKeeper is away; the lock was not asked for"));
  const uint64_t id = random_.Next();
  const bool is_new = taken_.emplace(std::string(name), id).second;
  HEADGATE_CHECK(is_new);
  places_.emplace(
      id, std::make_unique<Place>(id, std::string(name), Below(locks_, BucketNodeName(name)),
                                  std::move(listener)));
  Drive(id);
}

void Locks::Release(std::string_view name) {
  const auto taken = taken_.find(absl::string_view(name.data(), name.size()));
  HEADGATE_CHECK(taken != taken_.end());
  const uint64_t id = taken->second;
  taken_.erase(taken);
  Place& place = *places_.at(id);
  place.listener = nullptr;
  place.steps.Leave();
  ForgetWatch(place);
  Drive(id);
}

void Locks::OnConnected(bool new_session) {
  for (const uint64_t id : Ids()) {
    const auto found = places_.find(id);
    if (found == places_.end()) continue;
    Place& place = *found->second;
    if (new_session) {
      ++place.call;
      ForgetWatch(place);
      place.steps.OnSessionLost();
    } else {
      place.steps.Retry();
      // A watch is set again by the client, but a place that reads the queue again does not depend
      // on it.
      place.steps.OnPredecessorGone();
    }
    Drive(id);
  }
}

void Locks::OnWatch(const WatchEvent& event) {
  const auto watching = watching_.find(event.path);
  if (watching == watching_.end()) return;
  const uint64_t id = watching->second;
  Place& place = *places_.at(id);
  // A watch fires once, so it is gone now.
  ForgetWatch(place);
  place.steps.OnPredecessorGone();
  Drive(id);
}

std::vector<uint64_t> Locks::Ids() const {
  std::vector<uint64_t> ids;
  for (const auto& [id, place] : places_) ids.push_back(id);
  return ids;
}

void Locks::Drive(uint64_t id) {
  while (true) {
    const auto found = places_.find(id);
    if (found == places_.end()) return;
    Place& place = *found->second;
    const LockAction action = place.steps.Next();
    switch (action.kind) {
      case LockAction::Kind::kWait:
        // If there is no connection now, the retry follows when the next one opens.
        if (place.steps.must_retry() && client_.connected() && !std::exchange(retries_, true))
          retry_timer_.SetAfter(options_.retry_pause);
        return Tell(place);
      case LockAction::Kind::kEnd: {
        ForgetWatch(place);
        const std::unique_ptr<Place> ended = std::move(found->second);
        places_.erase(found);
        // The ensemble removes empty queues only if they have ever had a node.
        if (ended->queue_unused) client_.Delete(ended->queue, -1, [](const Status&) {});
        return Tell(*ended);
      }
      default:
        Do(id, place, action);
    }
  }
}

// The listener may take and release locks, so this comes last.
void Locks::Tell(Place& place) {
  if (place.listener == nullptr) return;
  if (!place.steps.failure().ok()) {
    taken_.erase(place.name);
    const Status why = place.steps.failure();
    return std::exchange(place.listener, nullptr)(why);
  }
  if (!place.steps.held() || std::exchange(place.told, true)) return;
  const Listener listener = place.listener;
  listener(place.steps.fence());
}

template <typename Hand>
void Locks::Answer(uint64_t id, uint64_t call, const Hand& hand) {
  const auto found = places_.find(id);
  if (found == places_.end() || found->second->call != call) return;
  hand(found->second->steps);
  Drive(id);
}

void Locks::Do(uint64_t id, Place& place, const LockAction& action) {
  const uint64_t call = ++place.call;
  const std::string path = Below(place.queue, action.name);
  switch (action.kind) {
    case LockAction::Kind::kMakeQueue:
      return MakeQueue(id, call, place.queue, /*may_make_parent=*/true);
    case LockAction::Kind::kCreate:
      return client_.Create(path, {}, CreateMode::kEphemeralSequential,
                            [this, id, call](const absl::StatusOr<Created>& made) {
                              if (made.ok()) NoteQueue(id, /*unused=*/false);
                              Answer(id, call, [&](LockPlace& steps) {
                                if (!made.ok()) return steps.OnCreated(made.status(), 0);
                                steps.OnCreated(LastName(made->path),
                                                static_cast<uint64_t>(made->stat.created_zxid));
                              });
                            });
    case LockAction::Kind::kSyncAndList:
      return List(id, call, place.queue, /*sync=*/true);
    case LockAction::Kind::kList:
      return List(id, call, place.queue, /*sync=*/false);
    case LockAction::Kind::kRead:
      return client_.Exists(path, Watch::kNo,
                            [this, id, call](const absl::StatusOr<NodeStat>& stat) {
                              Answer(id, call, [&](LockPlace& steps) {
                                if (!stat.ok()) return steps.OnLooked(stat.status());
                                steps.OnLooked(static_cast<uint64_t>(stat->created_zxid));
                              });
                            });
    case LockAction::Kind::kWatch:
      ForgetWatch(place);
      place.watched = path;
      watching_[path] = id;
      // If the node is gone already, there is no watch.
      return client_.Get(path, Watch::kYes, [this, id, call](const absl::StatusOr<Node>& node) {
        Answer(id, call, [&](LockPlace& steps) { steps.OnWatched(node.status()); });
      });
    case LockAction::Kind::kDelete:
      return client_.Delete(path, -1, [this, id, call](const Status& status) {
        Answer(id, call, [&](LockPlace& steps) { steps.OnDeleted(status); });
      });
    case LockAction::Kind::kWait:
    case LockAction::Kind::kEnd:
      break;
  }
}

void Locks::NoteQueue(uint64_t id, bool unused) {
  if (const auto found = places_.find(id); found != places_.end())
    found->second->queue_unused = unused;
}

void Locks::MakeQueue(uint64_t id, uint64_t call, const std::string& path, bool may_make_parent) {
  client_.Create(path, {}, CreateMode::kContainer,
                 [this, id, call, path, may_make_parent](const absl::StatusOr<Created>& made) {
                   if (made.ok()) NoteQueue(id, /*unused=*/true);
                   if (!absl::IsNotFound(made.status()) || !may_make_parent)
                     return Answer(id, call,
                                   [&](LockPlace& steps) { steps.OnQueueMade(made.status()); });
                   client_.CreateAll(locks_, [this, id, call, path](const Status& status) {
                     if (status.ok()) return MakeQueue(id, call, path, /*may_make_parent=*/false);
                     Answer(id, call, [&](LockPlace& steps) { steps.OnQueueMade(status); });
                   });
                 });
}

void Locks::List(uint64_t id, uint64_t call, const std::string& path, bool sync) {
  auto synced = std::make_shared<Status>();
  // The Sync is answered before the list, because a session answers in order.
  if (sync) client_.Sync(path, [synced](const Status& status) { *synced = status; });
  client_.List(path, Watch::kNo,
               [this, id, call, synced](const absl::StatusOr<Children>& children) {
                 Answer(id, call, [&](LockPlace& steps) {
                   // A list from a server that lags behind might not show a node that exists.
                   if (!synced->ok())
                     return steps.OnListed(absl::UnavailableError(synced->message()));
                   if (!children.ok()) return steps.OnListed(children.status());
                   steps.OnListed(children->names);
                 });
               });
}

void Locks::ForgetWatch(Place& place) {
  if (place.watched.empty()) return;
  watching_.erase(place.watched);
  place.watched.clear();
}

void Locks::OnTime() {
  retries_ = false;
  if (!client_.connected()) return;
  for (const uint64_t id : Ids()) {
    const auto found = places_.find(id);
    if (found == places_.end()) continue;
    found->second->steps.Retry();
    Drive(id);
  }
}

}  // namespace headgate::store::zookeeper

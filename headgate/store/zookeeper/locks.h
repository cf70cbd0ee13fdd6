// The locks of keys in ZooKeeper, over the session of one event loop: performs the actions of the
// places in the queues (lock_place.h), and keeps abandoned places until their nodes are gone.
//
//   ROOT/locks/hg:%7Bt%7Cuser123%7D/lock-ID-NUMBER
//
// The queue of a key is a container node, so the ensemble removes it when nobody uses it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/base/random.h"
#include "headgate/client/zookeeper/client.h"
#include "headgate/net/event_loop.h"
#include "headgate/store/cas/key_locks.h"
#include "headgate/store/zookeeper/lock_place.h"

namespace headgate::store::zookeeper {

struct LocksOptions {
  std::string root;
  uint64_t seed = 0;  // random: differs between processes, event loops, and runs
  // Before a call that has failed is repeated over a connection.
  base::Duration retry_pause = std::chrono::milliseconds(50);
};

class Locks final : public cas::KeyLocks {
 public:
  // Both must outlive the locks. The client must not call back once the locks are destroyed.
  Locks(client::zookeeper::Client& client, net::EventLoop& loop, LocksOptions options);

  void Take(std::string_view name, Listener listener) override;
  void Release(std::string_view name) override;

  // The events of the session.
  void OnConnected(bool new_session);
  void OnWatch(const client::zookeeper::WatchEvent& event);

  // The places in all queues, those included that were left and whose nodes are not gone yet.
  size_t places() const { return places_.size(); }

 private:
  struct Place {
    Place(uint64_t id, std::string key_name, std::string queue_path, Listener its_listener)
        : steps(id),
          name(std::move(key_name)),
          queue(std::move(queue_path)),
          listener(std::move(its_listener)) {}

    LockPlace steps;
    const std::string name;     // of the key
    const std::string queue;    // path
    Listener listener;          // null: left
    bool told = false;          // whether the listener knows that the lock is held
    uint64_t call = 0;          // the call whose answer counts
    std::string watched{};      // path
    bool queue_unused = false;  // this place has created the queue, but no node in it
  };

  std::vector<uint64_t> Ids() const;
  // Takes the next steps of a place, and tells its listener.
  void Drive(uint64_t id);
  void Tell(Place& place);
  void Do(uint64_t id, Place& place, const LockAction& action);
  void NoteQueue(uint64_t id, bool unused);
  void MakeQueue(uint64_t id, uint64_t call, const std::string& path, bool may_make_parent);
  void List(uint64_t id, uint64_t call, const std::string& path, bool sync);
  // Passes the answer to a call to the place through `hand`, if the answer still counts.
  template <typename Hand>
  void Answer(uint64_t id, uint64_t call, const Hand& hand);
  void ForgetWatch(Place& place);
  void OnTime();

  client::zookeeper::Client& client_;
  const LocksOptions options_;
  const std::string locks_;  // path
  base::Random random_;
  std::map<uint64_t, std::unique_ptr<Place>> places_;    // by id
  absl::flat_hash_map<std::string, uint64_t> taken_;     // ids by key, without abandoned places
  absl::flat_hash_map<std::string, uint64_t> watching_;  // ids by the path that is watched
  bool retries_ = false;                                 // the timer is set
  net::Timer retry_timer_;
};

}  // namespace headgate::store::zookeeper

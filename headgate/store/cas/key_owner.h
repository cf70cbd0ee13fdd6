// The keys that one event loop owns for the whole process: their exchanges with the service, and
// the values that the loop remembers. Bounded: the values that were not used for longest are
// forgotten first.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/base/clock.h"
#include "headgate/store/cas/key_exchange.h"

namespace headgate::store::cas {

class KeyOwner {
 public:
  // The service and the clock must outlive this object, and the service must not call back once it
  // is destroyed. `writer_id` is random, so that no other owner of any process has it. `on_wake` is
  // called when next_wake() becomes earlier.
  KeyOwner(VersionedStore& service, const base::DisciplinedClock& clock, uint64_t writer_id,
           const CasOptions& options, std::function<void()> on_wake)
      : service_(service),
        clock_(clock),
        on_wake_(std::move(on_wake)),
        writer_{.id = writer_id, .random = base::Random(writer_id), .options = options} {}
  KeyOwner(const KeyOwner&) = delete;

  // Sends the request with the next Send. If too many requests wait, it fails at once.
  void Ask(std::string_view name, std::unique_ptr<WaitingRequest> request);
  // Call it at the end of a turn in which Ask was called.
  void Send();
  // Call it at next_wake(), or a little later.
  void OnTime();
  base::BootTime next_wake() const;

  base::BootTime Now() const { return clock_.source().BootNow(); }
  const CasCounters& counters() const { return writer_.counters; }
  const CasOptions& options() const { return writer_.options; }
  bool has_locks() const { return service_.locks() != nullptr; }
  size_t keys() const { return keys_.size(); }

 private:
  struct Key {
    Key(std::string key_name, Writer& writer) : name(std::move(key_name)), exchange(writer) {}

    const std::string name;
    KeyExchange exchange;
    bool in_drive = false;
    bool to_send = false;
    base::BootTime wakes_at{INT64_MAX};
    // While the key is idle: its place in the list of idle keys, and the bytes that it counts for.
    bool is_idle = false;
    std::list<Key*>::iterator place{};
    size_t bytes = 0;
  };

  Key& Find(std::string_view name);
  void Drive(Key& key);
  void Call(Key& key, const ExchangeAction& action);
  // Calls the requests that have their answer. Returns whether there were any.
  bool Answer(Key& key);
  void SetWake(Key& key, base::BootTime at);
  void BeginIdle(Key& key);
  void EndIdle(Key& key);
  bool IsFull() const;

  VersionedStore& service_;
  const base::DisciplinedClock& clock_;
  const std::function<void()> on_wake_;
  Writer writer_;
  absl::flat_hash_map<std::string, std::unique_ptr<Key>> keys_;  // by name
  std::vector<Key*> to_send_;
  std::set<std::pair<base::BootTime, Key*>> wakes_;
  std::list<Key*> idle_;  // the longest idle first
  size_t idle_bytes_ = 0;
  size_t requests_ = 0;
};

}  // namespace headgate::store::cas

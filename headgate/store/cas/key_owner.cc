#include "headgate/store/cas/key_owner.h"

#include "headgate/base/check.h"

namespace headgate::store::cas {

using base::BootTime;

void KeyOwner::Ask(std::string_view name, std::unique_ptr<WaitingRequest> request) {
  writer_.counters.requests.Add();
  Key& key = Find(name);
  request->request.locked = request->request.locked && has_locks();
  if (requests_ >= writer_.options.requests_max ||
      key.exchange.requests() >= writer_.options.requests_per_key_max) {
    writer_.counters.refused.Add();
    request->answer.status =
        absl::ResourceExhaustedError("too many requests wait for the store; not sent");
    return request->done(request->answer);
  }
  ++requests_;
  key.exchange.Add(std::move(request));
  EndIdle(key);
  if (std::exchange(key.to_send, true)) return;
  to_send_.push_back(&key);
}

KeyOwner::Key& KeyOwner::Find(std::string_view name) {
  const auto found = keys_.find(absl::string_view(name.data(), name.size()));
  if (found != keys_.end()) return *found->second;
  auto key = std::make_unique<Key>(std::string(name), writer_);
  Key& made = *key;
  keys_.emplace(made.name, std::move(key));
  BeginIdle(made);
  return made;
}

void KeyOwner::Send() {
  for (Key* key : std::exchange(to_send_, {})) {
    key->to_send = false;
    Drive(*key);
  }
}

void KeyOwner::OnTime() {
  const BootTime now = Now();
  while (!wakes_.empty() && wakes_.begin()->first <= now) {
    Key& key = *wakes_.begin()->second;
    SetWake(key, BootTime{INT64_MAX});
    Drive(key);
  }
}

BootTime KeyOwner::next_wake() const {
  return wakes_.empty() ? BootTime{INT64_MAX} : wakes_.begin()->first;
}

void KeyOwner::Drive(Key& key) {
  // Drive is running already, and has called the service or a caller, which has called back; its
  // loop continues by itself.
  if (key.in_drive) return;
  key.in_drive = true;
  while (true) {
    const BootTime now = Now();
    const ExchangeAction action =
        key.exchange.Next(now, service_.TimeAt(now).value_or(clock_.Now()));
    const bool waits = action.kind == ExchangeAction::Kind::kWait;
    // A caller that gets its answer may ask again at once.
    if (Answer(key) && waits) continue;
    if (waits) {
      SetWake(key, action.at);
      break;
    }
    Call(key, action);
  }
  key.in_drive = false;
  if (key.exchange.idle() && !key.to_send) BeginIdle(key);
}

void KeyOwner::Call(Key& key, const ExchangeAction& action) {
  if (action.kind == ExchangeAction::Kind::kLock) {
    return service_.locks()->Take(key.name, [this, &key](const absl::StatusOr<uint64_t>& fence) {
      key.exchange.OnLock(Now(), fence);
      Drive(key);
    });
  }
  if (action.kind == ExchangeAction::Kind::kUnlock) return service_.locks()->Release(key.name);
  if (action.kind == ExchangeAction::Kind::kGet) {
    service_.Get(key.name, action.at,
                 [this, &key](absl::StatusOr<std::optional<Versioned>> answer) {
                   key.exchange.OnGot(Now(), std::move(answer));
                   Drive(key);
                 });
    return;
  }
  service_.Put({.name = key.name,
                .bytes = action.bytes,
                .expected = action.expected,
                .expires_at = action.expires_at,
                .deadline = action.at},
               [this, &key](const absl::StatusOr<Version>& answer) {
                 key.exchange.OnPut(Now(), answer);
                 Drive(key);
               });
}

bool KeyOwner::Answer(Key& key) {
  const KeyExchange::Requests answered = key.exchange.TakeAnswered();
  requests_ -= answered.size();
  for (const auto& request : answered) request->done(request->answer);
  return !answered.empty();
}

void KeyOwner::SetWake(Key& key, BootTime at) {
  if (key.wakes_at == at) return;
  if (key.wakes_at.ns != INT64_MAX) wakes_.erase({key.wakes_at, &key});
  key.wakes_at = at;
  if (at.ns == INT64_MAX) return;
  wakes_.insert({at, &key});
  if (wakes_.begin()->second == &key) on_wake_();
}

void KeyOwner::BeginIdle(Key& key) {
  if (key.is_idle) return;
  key.is_idle = true;
  key.place = idle_.insert(idle_.end(), &key);
  key.bytes = key.exchange.remembered_bytes();
  idle_bytes_ += key.bytes;
  SetWake(key, BootTime{INT64_MAX});
  while (IsFull()) {
    Key& oldest = *idle_.front();
    EndIdle(oldest);
    keys_.erase(oldest.name);
  }
}

void KeyOwner::EndIdle(Key& key) {
  if (!std::exchange(key.is_idle, false)) return;
  idle_.erase(key.place);
  idle_bytes_ -= key.bytes;
}

bool KeyOwner::IsFull() const {
  return idle_.size() > 1 && (idle_.size() > writer_.options.remembered_max ||
                              idle_bytes_ > writer_.options.remembered_bytes_max);
}

}  // namespace headgate::store::cas

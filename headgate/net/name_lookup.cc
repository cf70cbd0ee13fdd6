#include "headgate/net/name_lookup.h"

#include <absl/container/flat_hash_map.h>
#include <netdb.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "headgate/base/monotonic_time.h"
#include "headgate/net/kept_answers.h"

namespace headgate::net {

struct NameWaiter {
  EventLoop& loop;
  // For the loop's thread; null once it has been called or the lookup is destroyed.
  NameLookup::Done done;
};

namespace {

// Answers that took long are kept for a while. A client that tries again and again, and gives up
// each time before the name servers answer, then finds the answer.
constexpr base::Duration kLong = std::chrono::milliseconds(10);
constexpr base::Duration kLateAnswerKept = std::chrono::seconds(5);

using Name = std::pair<std::string, uint16_t>;
using Answer = absl::StatusOr<SocketAddresses>;

Answer Resolve(const Name& name, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* results = nullptr;
  const int error =
      ::getaddrinfo(name.first.c_str(), std::to_string(name.second).c_str(), &hints, &results);
  if (error == EAI_SYSTEM) return absl::UnavailableError(std::generic_category().message(errno));
  if (error != 0) return absl::UnavailableError(::gai_strerror(error));
  SocketAddresses addresses;
  for (const addrinfo* result = results; result != nullptr; result = result->ai_next) {
    SocketAddress& address = addresses.emplace_back();
    std::memcpy(&address.storage, result->ai_addr, result->ai_addrlen);
    address.size = result->ai_addrlen;
  }
  ::freeaddrinfo(results);
  return addresses;
}

// The lookups in progress in this process.
class Lookups {
 public:
  // Never destroyed, because a lookup may be in progress when the process ends.
  static Lookups& OfThisProcess() {
    static auto* const lookups = new Lookups();
    return *lookups;
  }

  void Join(const Name& name, std::shared_ptr<NameWaiter> waiter) {
    const std::lock_guard lock(mutex_);
    if (const auto late = late_.find(name); late != late_.end()) {
      if (base::MonotonicNow() < late->second.until)
        return Tell({std::move(waiter)}, late->second.answer);
      late_.erase(late);
    }
    const auto [found, is_first] = waiters_.try_emplace(name);
    found->second.push_back(std::move(waiter));
    if (!is_first) return;
    try {
      std::thread([this, name] {
        const base::MonotonicTime begin = base::MonotonicNow();
        const Answer answer = Resolve(name, 0);
        Finish(name, answer, base::MonotonicNow() - begin);
      }).detach();
    } catch (const std::system_error& error) {
      Answer none = absl::UnavailableError(error.what());
      Tell(std::exchange(found->second, {}), none);
      waiters_.erase(name);
    }
  }

  void ForgetLate(const Name& name) {
    const std::lock_guard lock(mutex_);
    late_.erase(name);
  }

  // Afterwards the loop of this waiter is not used.
  void Leave(const NameWaiter& waiter) {
    const std::lock_guard lock(mutex_);
    for (auto& [name, waiters] : waiters_)
      std::erase_if(waiters, [&](const auto& held) { return held.get() == &waiter; });
  }

 private:
  using Waiters = std::vector<std::shared_ptr<NameWaiter>>;
  struct Late {
    Answer answer;
    base::MonotonicTime until;
  };

  void Finish(const Name& name, const Answer& answer, base::Duration took) {
    const std::lock_guard lock(mutex_);
    Waiters waiters = std::move(waiters_[name]);
    waiters_.erase(name);
    if ((waiters.empty() || took > kLong) && answer.ok())
      late_.insert_or_assign(name, Late{answer, base::MonotonicNow() + kLateAnswerKept});
    Tell(std::move(waiters), answer);
  }

  // Under the lock, so that no waiter's loop ends meanwhile.
  static void Tell(Waiters waiters, const Answer& answer) {
    for (const auto& waiter : waiters) {
      waiter->loop.Post([waiter, answer] {
        if (const auto done = std::exchange(waiter->done, nullptr)) done(answer);
      });
    }
  }

  std::mutex mutex_;
  // Guarded by mutex_:
  absl::flat_hash_map<Name, Waiters> waiters_;
  absl::flat_hash_map<Name, Late> late_;
};

}  // namespace

SocketAddresses AddressIn(const std::string& host, uint16_t port) {
  auto addresses = Resolve({host, port}, AI_NUMERICHOST);
  return addresses.ok() ? *std::move(addresses) : SocketAddresses();
}

void ForgetKeptAnswer(const std::string& host, uint16_t port) {
  Lookups::OfThisProcess().ForgetLate({host, port});
}

NameLookup::NameLookup(EventLoop& loop, const std::string& host, uint16_t port, Done done)
    : waiter_(new NameWaiter{loop, std::move(done)}) {
  Lookups::OfThisProcess().Join({host, port}, waiter_);
}

NameLookup::~NameLookup() {
  Lookups::OfThisProcess().Leave(*waiter_);
  waiter_->done = nullptr;
}

}  // namespace headgate::net

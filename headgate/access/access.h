// Decides who may do what, in the same way for every protocol.
//
//   users are stated          the rights of the user that logged in; `*` without a login
//   only a credential         everything after a login with it; checks without one
//   neither                   everything from this machine; checks from elsewhere
//
// Thread-safe: all loops share one. A password whose hash was compared before is recognised at
// once; otherwise a thread of its own computes the hash, because that takes too long for a loop.
// Failed logins are limited per user and address. So are the computations for one address, whatever
// users it names, so that one client cannot keep the others from logging in. A guess counts as
// failed from the moment at which it is queued; if it proves right, it no longer counts. If all
// places are taken, the address with the most waiting passwords gives way. An IPv6 network of 64
// bits counts as one address.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "headgate/access/rights.h"
#include "headgate/access/user_table.h"
#include "headgate/base/clock.h"
#include "headgate/base/counter.h"
#include "headgate/base/hash.h"
#include "headgate/base/time.h"
#include "headgate/net/peer.h"
#include "headgate/store/memory.h"

namespace headgate::access {

// The user as which a client has logged in; empty if it has not logged in.
struct Identity {
  std::string user{};
  Rights rights{};
  // The password that was presented, and the table in which it was found.
  PasswordHash password{};
  uint64_t generation = 0;

  bool logged_in() const { return !user.empty(); }
};

struct Login {
  enum class Result : uint8_t {
    kAccepted,
    kWrong,    // no such user, or another password
    kLimited,  // too many wrong ones; nothing was compared
    kBusy,     // too many are being verified
  };
  static constexpr size_t kResults = 4;

  Result result = Result::kWrong;
  Identity identity{};
  base::Duration retry_after{0};  // if limited
};

// The result of a login as metrics name it.
std::string_view Name(Login::Result result);

// A login that is being verified. If it is destroyed before the result is there, the result is
// dropped. Used on one thread.
class PendingLogin {
 public:
  // `wake` is called on the client's thread when there is a result.
  explicit PendingLogin(std::function<void()> wake);
  ~PendingLogin();
  PendingLogin(const PendingLogin&) = delete;

  const std::optional<Login>& result() const { return state_->result; }

 private:
  friend class Access;
  struct State {
    std::function<void()> wake;  // null: the client no longer waits
    std::optional<Login> result;
  };
  std::shared_ptr<State> state_;
};

// Runs work on the thread of a client.
using Post = std::function<void(std::function<void()> work)>;

struct AccessOptions {
  std::string credential{};  // empty: not set
  // Null: no users are stated.
  std::shared_ptr<const UserTable> users{};
  // Failed logins of one user from one address: this many at once, and per minute.
  uint64_t failures_per_minute = 10;
  // Logins from one address that failed or were refused as busy. Beyond it no hash is computed for
  // the address; passwords that were verified before, and the credential, are still accepted.
  uint64_t address_failures_per_minute = 100;
  // Passwords that wait for the computation of a hash. One address may have a quarter of them, and
  // gives way to addresses with fewer if no place is left.
  uint32_t waiting_max = 128;
  // A login that has waited this long is refused as busy. Shorter than the request timeout, after
  // which the client would get no answer.
  base::Duration wait_max = std::chrono::seconds(5);
  // For `wait_max`. Null: the system's.
  std::shared_ptr<const base::Clock> clock{};
};

class Access {
 public:
  explicit Access(AccessOptions options = {});
  // Logins that wait are forgotten.
  ~Access();
  Access(const Access&) = delete;

  // Whether a client can log in at all.
  bool has_logins() const { return !credential_.empty() || has_users_; }
  bool has_users() const { return has_users_; }

  // No login is verified afterwards. Call it before the threads end on which `post` runs work.
  void End();

  // Replaces the users. A client keeps its login if user and password are as before, with the
  // rights of the new table.
  void Replace(std::shared_ptr<const UserTable> users);
  // Changes when the users change.
  uint64_t generation() const { return generation_.load(std::memory_order_acquire); }

  // The rights of a client at this peer without a login.
  Rights WithoutLogin(const net::Peer& peer) const;
  // The rights of the client. Brings the identity up to date if the users have changed.
  Rights RightsOf(const net::Peer& peer, Identity& identity);

  // An absent result comes later, in `pending`; then `post` is called from another thread. The
  // credential is the password of the user "default", which an empty `user` also means.
  std::optional<Login> LogIn(std::string_view user, std::string_view password,
                             const net::Peer& peer, base::Instant now, const Post& post,
                             PendingLogin& pending);

  // Logins by result. From any thread.
  uint64_t logins(Login::Result result) const {
    return logins_[static_cast<size_t>(result)].load(std::memory_order_relaxed);
  }

 private:
  using Digest = std::string;

  // The keys of the limits of failed logins.
  struct FailureKeys {
    base::Hash128 of_user;     // of the user at this address
    base::Hash128 of_address;  // of all users at this address
  };
  // A password that an address guesses for a user. It has been taken from both limits.
  struct Guess {
    FailureKeys keys;
    base::Instant now;
    base::BootTime since;
  };
  struct HashOf {
    size_t operator()(const base::Hash128& hash) const { return hash.low; }
  };
  // A client that waits for its login.
  struct Waiter {
    base::BootTime since;
    Post post;
    std::weak_ptr<PendingLogin::State> state;
  };
  // A password to verify. The job counts as one of the first waiter's address.
  struct Job {
    std::string user;
    std::string password;
    Digest digest;
    base::Hash128 address;        // FailureKeys::of_address of the first waiter
    std::vector<Waiter> waiters;  // at least one login; all gave this user and this password
    // By FailureKeys::of_user: the clients of one address guess together.
    absl::flat_hash_map<base::Hash128, Guess, HashOf> guesses;
    int64_t round = 0;  // the passwords of the same address that came before it
  };

  Login Count(Login login);
  algorithm::Decision AskFailures(store::Operation operation, const base::Hash128& failures,
                                  const store::LimitHandle& limit, base::Instant now,
                                  base::Instant taken_at = {});
  // Counts a login as failed, in both limits, or returns how long to wait until the next one may be
  // tried.
  std::optional<base::Duration> Take(const FailureKeys& keys, base::Instant now);
  // Undoes the count of the guess: for the user, and with `of_address` for the address too.
  void GiveBack(const Guess& guess, bool of_address);
  // Accepts the client, unless too many logins have failed.
  Login Accept(const FailureKeys& keys, Identity identity, base::Instant now);
  // `user` is absent for all users together.
  base::Hash128 FailuresKey(std::optional<std::string_view> user, const net::Peer& peer) const;
  int64_t CountOfAddress(const base::Hash128& address) const;
  // Removes the newest job of the address with the most, if it has at least two more than
  // `of_address`.
  std::optional<Job> Displace(int64_t of_address);
  void Enqueue(Job job);
  // Refuses a guess that was not compared. It stays counted against the address: else a crowd of
  // connections that are refused costs nothing.
  Login Busy(const Guess& guess);
  // Refuses all clients that wait for the job, as Busy does.
  void GiveUp(const Job& job);
  Digest DigestOf(std::string_view user, std::string_view password) const;
  bool IsCredential(std::string_view password) const;
  std::optional<Identity> Known(const Digest& digest);
  void Run();
  // Null if the password is wrong.
  std::optional<Identity> Verify(const Job& job);
  // Whether this client still waits, and has not waited for too long.
  bool IsWanted(const Waiter& waiter) const;
  // Tells a client the result, on its thread.
  void Tell(const Waiter& waiter, Login login);

  const std::string credential_;
  const bool has_users_;
  const uint32_t waiting_max_;
  const base::Duration wait_max_;
  const std::shared_ptr<const base::Clock> clock_;
  const std::string digest_key_;
  std::atomic<uint64_t> generation_{1};
  std::atomic<Rights> anonymous_;
  std::array<std::atomic<uint64_t>, Login::kResults> logins_{};

  std::unique_ptr<store::MemoryStore> failures_;  // null without logins
  store::LimitHandle user_limit_;
  store::LimitHandle address_limit_;

  std::mutex mutex_;
  std::shared_ptr<const UserTable> users_;  // never null if has_users_
  std::vector<PasswordHash> costs_;         // of `users_`
  absl::flat_hash_map<Digest, Identity> verified_;
  std::list<Job> jobs_;
  std::condition_variable has_job_;
  bool ending_ = false;
  std::thread worker_;  // only with users
};

}  // namespace headgate::access

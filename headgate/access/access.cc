#include "headgate/access/access.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "headgate/algorithm/limit.h"
#include "headgate/base/check.h"
#include "headgate/base/random_secret.h"
#include "headgate/net/connection_limits.h"
#include "headgate/wire/digest.h"

namespace headgate::access {
namespace {

constexpr std::string_view kDefaultUser = "default";
// Passwords that were verified and are remembered.
constexpr size_t kVerifiedMax = 10'000;
// Clients that wait for one password. More than the default number of connections, so that a fleet
// may log in at the same time.
constexpr size_t kWaitersMax = 16'384;
// Users and addresses whose failed logins are counted.
constexpr uint64_t kFailureBucketsMax = 1 << 16;

}  // namespace

std::string_view Name(Login::Result result) {
  constexpr std::array<std::string_view, Login::kResults> kNames = {"accepted", "wrong", "limited",
                                                                    "busy"};
  return kNames[static_cast<size_t>(result)];
}

PendingLogin::PendingLogin(std::function<void()> wake) : state_(std::make_shared<State>()) {
  state_->wake = std::move(wake);
}

PendingLogin::~PendingLogin() { state_->wake = nullptr; }

Access::Access(AccessOptions options)
    : credential_(std::move(options.credential)),
      has_users_(options.users != nullptr),
      waiting_max_(options.waiting_max),
      wait_max_(options.wait_max),
      clock_(options.clock != nullptr ? std::move(options.clock)
                                      : std::make_shared<base::SystemClock>()),
      digest_key_(RandomBytes(32)),
      users_(std::move(options.users)) {
  if (has_users_) {
    anonymous_ = users_->anonymous;
    costs_ = CostsOf(*users_);
  }
  if (!has_logins()) return;
  failures_ = std::make_unique<store::MemoryStore>(store::MemoryOptions{
      .max_buckets = kFailureBucketsMax, .max_limits = 2, .secret = base::RandomHashSecret()});
  const auto per_minute = [this](uint64_t requests) {
    const auto limit =
        algorithm::Limit::Make({.requests = requests, .period = std::chrono::minutes(1)});
    HEADGATE_CHECK(limit.ok());
    auto handle = failures_->limits().Intern(*limit);
    HEADGATE_CHECK(handle.ok());
    return *std::move(handle);
  };
  user_limit_ = per_minute(options.failures_per_minute);
  address_limit_ = per_minute(options.address_failures_per_minute);
  if (has_users_) worker_ = std::thread([this] { Run(); });
}

Access::~Access() { End(); }

void Access::End() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  has_job_.notify_all();
  if (worker_.joinable()) worker_.join();
}

void Access::Replace(std::shared_ptr<const UserTable> users) {
  HEADGATE_CHECK(has_users_ && users != nullptr);
  const std::lock_guard lock(mutex_);
  users_ = std::move(users);
  anonymous_ = users_->anonymous;
  costs_ = CostsOf(*users_);
  verified_.clear();
  generation_.fetch_add(1, std::memory_order_release);
}

Rights Access::WithoutLogin(const net::Peer& peer) const {
  if (has_users_) return anonymous_.load(std::memory_order_relaxed);
  return credential_.empty() && peer.loopback ? Rights::All() : Rights::Of(Right::kCheck);
}

Rights Access::RightsOf(const net::Peer& peer, Identity& identity) {
  if (!identity.logged_in()) return WithoutLogin(peer);
  if (!has_users_) return identity.rights;
  if (const uint64_t generation = this->generation(); identity.generation != generation) {
    const std::lock_guard lock(mutex_);
    const bool by_credential = identity.password == PasswordHash();
    if (!by_credential) {
      const auto user = users_->users.find(identity.user);
      if (user == users_->users.end() || user->second.password != identity.password) {
        identity = {};
        return users_->anonymous;
      }
      identity.rights = user->second.rights;
    }
    identity.generation = generation_.load(std::memory_order_relaxed);
  }
  return identity.rights;
}

std::optional<Login> Access::LogIn(std::string_view user, std::string_view password,
                                   const net::Peer& peer, base::Instant now, const Post& post,
                                   PendingLogin& pending) {
  if (!has_logins()) return Count({.result = Login::Result::kWrong});
  // If there are no users, all names lead to the credential. With a key for each name, a client
  // could fill the table and so push out the count of its guesses.
  const bool is_default = user.empty() || user == kDefaultUser || !has_users_;
  const FailureKeys keys{.of_user = FailuresKey(is_default ? kDefaultUser : user, peer),
                         .of_address = FailuresKey(std::nullopt, peer)};
  const bool by_credential = user.empty() || user == kDefaultUser;
  if (by_credential && IsCredential(password))
    return Accept(keys, {.user = std::string(kDefaultUser), .rights = Rights::All()}, now);
  if (!has_users_ || user.empty()) {
    // The limit of an address bounds computations of hashes. This password needs no hash, so only
    // the user's limit counts.
    const auto decision = AskFailures(store::Operation::kTake, keys.of_user, user_limit_, now);
    if (!decision.allowed)
      return Count({.result = Login::Result::kLimited, .retry_after = decision.retry_after});
    AskFailures(store::Operation::kTake, keys.of_address, address_limit_, now);
    return Count({.result = Login::Result::kWrong});
  }
  Digest digest = DigestOf(user, password);
  if (std::optional<Identity> identity = Known(digest))
    return Accept(keys, *std::move(identity), now);
  std::optional<Job> displaced;
  {
    const std::lock_guard lock(mutex_);
    const Guess guess{.keys = keys, .now = now, .since = clock_->BootNow()};
    Waiter waiter{.since = guess.since, .post = post, .state = pending.state_};
    const auto same = std::find_if(jobs_.begin(), jobs_.end(),
                                   [&](const Job& job) { return job.digest == digest; });
    const bool is_guessed = same != jobs_.end() && same->guesses.contains(keys.of_user);
    if (!is_guessed) {
      if (const auto wait = Take(keys, now))
        return Count({.result = Login::Result::kLimited, .retry_after = *wait});
    }
    if (same != jobs_.end()) {
      if (same->waiters.size() >= kWaitersMax)
        return is_guessed ? Count({.result = Login::Result::kBusy}) : Busy(guess);
      same->guesses.try_emplace(keys.of_user, guess);
      same->waiters.push_back(std::move(waiter));
      return std::nullopt;
    }
    const int64_t of_address = CountOfAddress(keys.of_address);
    if (of_address * 4 >= static_cast<int64_t>(waiting_max_)) return Busy(guess);
    if (jobs_.size() >= waiting_max_) {
      displaced = Displace(of_address);
      if (!displaced) return Busy(guess);
    }
    Job job{.user = std::string(user),
            .password = std::string(password),
            .digest = std::move(digest),
            .address = keys.of_address,
            .waiters = {},
            .guesses = {{keys.of_user, guess}},
            .round = of_address};
    job.waiters.push_back(std::move(waiter));
    Enqueue(std::move(job));
  }
  has_job_.notify_one();
  if (displaced) GiveUp(*displaced);
  return std::nullopt;
}

Login Access::Count(Login login) {
  logins_[static_cast<size_t>(login.result)].fetch_add(1, std::memory_order_relaxed);
  return login;
}

algorithm::Decision Access::AskFailures(store::Operation operation, const base::Hash128& failures,
                                        const store::LimitHandle& limit, base::Instant now,
                                        base::Instant taken_at) {
  const store::TakeRequest request{
      .key = failures, .limit = limit.get(), .operation = operation, .taken_at = taken_at};
  algorithm::Decision decision;
  failures_->TakeOne(request, decision, now);
  return decision;
}

std::optional<base::Duration> Access::Take(const FailureKeys& keys, base::Instant now) {
  using store::Operation;
  const auto of_user = AskFailures(Operation::kTake, keys.of_user, user_limit_, now);
  if (!of_user.allowed) return of_user.retry_after;
  const auto of_address = AskFailures(Operation::kTake, keys.of_address, address_limit_, now);
  if (of_address.allowed) return std::nullopt;
  AskFailures(Operation::kUndo, keys.of_user, user_limit_, now, now);
  return of_address.retry_after;
}

void Access::GiveBack(const Guess& guess, bool of_address) {
  const base::Instant now = guess.now + (clock_->BootNow() - guess.since);
  AskFailures(store::Operation::kUndo, guess.keys.of_user, user_limit_, now, guess.now);
  if (!of_address) return;
  AskFailures(store::Operation::kUndo, guess.keys.of_address, address_limit_, now, guess.now);
}

// A right password only peeks at the bucket of failures, and a wrong one takes from it, each in one
// step. So exactly as many guesses can be accepted as the limit allows, on any number of threads.
Login Access::Accept(const FailureKeys& keys, Identity identity, base::Instant now) {
  const auto decision = AskFailures(store::Operation::kPeek, keys.of_user, user_limit_, now);
  if (!decision.allowed)
    return Count({.result = Login::Result::kLimited, .retry_after = decision.retry_after});
  return Count({.result = Login::Result::kAccepted, .identity = std::move(identity)});
}

int64_t Access::CountOfAddress(const base::Hash128& address) const {
  return std::count_if(jobs_.begin(), jobs_.end(),
                       [&](const Job& job) { return job.address == address; });
}

// The first job may be in progress. At most `waiting_max` jobs are compared with each other, and
// only while the queue is full. This takes less time than one hash.
std::optional<Access::Job> Access::Displace(int64_t of_address) {
  auto newest = jobs_.end();
  int64_t most = of_address + 1;
  for (auto job = std::next(jobs_.begin()); job != jobs_.end(); ++job) {
    const int64_t count = CountOfAddress(job->address);
    if (count < most || count < of_address + 2) continue;
    most = count;
    newest = job;
  }
  if (newest == jobs_.end()) return std::nullopt;
  std::optional<Job> displaced = std::move(*newest);
  jobs_.erase(newest);
  return displaced;
}

Login Access::Busy(const Guess& guess) {
  GiveBack(guess, /*of_address=*/false);
  return Count({.result = Login::Result::kBusy});
}

void Access::GiveUp(const Job& job) {
  for (const auto& [key, guess] : job.guesses) GiveBack(guess, /*of_address=*/false);
  for (const Waiter& waiter : job.waiters) Tell(waiter, {.result = Login::Result::kBusy});
}

// The addresses take turns, so that one with many passwords does not delay the others. The first
// job may be in progress.
void Access::Enqueue(Job job) {
  if (jobs_.empty()) return jobs_.push_back(std::move(job));
  const auto later = std::find_if(std::next(jobs_.begin()), jobs_.end(),
                                  [&](const Job& other) { return other.round > job.round; });
  jobs_.insert(later, std::move(job));
}

base::Hash128 Access::FailuresKey(std::optional<std::string_view> user,
                                  const net::Peer& peer) const {
  base::KeyHasher hasher(failures_->hash_secret(), base::KeyKind::kRaw);
  if (user) hasher.Add(*user);
  // The addresses of one IPv6 network are one client's, as for connections.
  const net::AddressKey address = net::KeyOf(peer);
  hasher.Add({static_cast<const char*>(static_cast<const void*>(&address)), sizeof(address)});
  return hasher.Finish();
}

Access::Digest Access::DigestOf(std::string_view user, std::string_view password) const {
  std::string text = std::to_string(user.size());
  text.append(":").append(user).append(password);
  const wire::Mac mac = wire::HmacSha256(digest_key_, text);
  OPENSSL_cleanse(text.data(), text.size());
  return {mac.begin(), mac.end()};
}

bool Access::IsCredential(std::string_view password) const {
  return !credential_.empty() && wire::EqualSecrets(password, credential_);
}

std::optional<Identity> Access::Known(const Digest& digest) {
  const std::lock_guard lock(mutex_);
  const auto found = verified_.find(digest);
  if (found == verified_.end()) return std::nullopt;
  return found->second;
}

void Access::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    has_job_.wait(lock, [this] { return ending_ || !jobs_.empty(); });
    if (ending_) return;
    // The job stays in the queue meanwhile, so that more clients with this password can join it.
    const Job& job = jobs_.front();
    const bool wanted = std::any_of(job.waiters.begin(), job.waiters.end(),
                                    [this](const Waiter& waiter) { return IsWanted(waiter); });
    lock.unlock();
    std::optional<Identity> identity;
    if (wanted) identity = Verify(job);
    lock.lock();
    Job done = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    OPENSSL_cleanse(done.password.data(), done.password.size());
    if (!wanted) {
      GiveUp(done);
    } else {
      if (identity) {
        for (const auto& [key, guess] : done.guesses) GiveBack(guess, /*of_address=*/true);
      }
      const Login login{.result = identity ? Login::Result::kAccepted : Login::Result::kWrong,
                        .identity = identity.value_or(Identity())};
      for (const Waiter& waiter : done.waiters) Tell(waiter, login);
    }
    lock.lock();
  }
}

bool Access::IsWanted(const Waiter& waiter) const {
  return !waiter.state.expired() && clock_->BootNow() - waiter.since < wait_max_;
}

std::optional<Identity> Access::Verify(const Job& job) {
  PasswordHash expected;
  std::optional<Identity> identity;
  std::vector<PasswordHash> others;
  {
    const std::lock_guard lock(mutex_);
    const auto user = users_->users.find(job.user);
    if (user != users_->users.end()) {
      expected = user->second.password;
      identity = {.user = job.user,
                  .rights = user->second.rights,
                  .password = expected,
                  .generation = generation_.load(std::memory_order_relaxed)};
    }
    others = HashesBeside(identity ? &expected : nullptr, costs_);
  }
  for (const PasswordHash& other : others) (void)Matches(other, job.password);
  if (!identity || !Matches(expected, job.password)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (verified_.size() >= kVerifiedMax) verified_.clear();
  if (identity->generation == generation_.load(std::memory_order_relaxed))
    verified_.emplace(job.digest, *identity);
  return identity;
}

void Access::Tell(const Waiter& waiter, Login login) {
  if (waiter.state.expired()) return;
  waiter.post([state = waiter.state, login = Count(std::move(login))]() mutable {
    const auto waiting = state.lock();
    if (waiting == nullptr || !waiting->wake) return;
    waiting->result = std::move(login);
    waiting->wake();
  });
}

}  // namespace headgate::access

#include "headgate/access/access.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <latch>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "headgate/access/access_rig.h"

namespace headgate::access {
namespace access_test {

using namespace std::chrono_literals;
using Result = Login::Result;

constexpr base::Instant kStart = base::Instant::FromNanos(1'790'000'000'000'000'000);

net::Peer At(const char* address) {
  return {.loopback = false, .ip = base::ParseIpAddress(address), .address = address};
}
const net::Peer kLocal{.loopback = true, .ip = base::ParseIpAddress("127.0.0.1")};
const net::Peer kElsewhere = At("192.0.2.1");

std::shared_ptr<const UserTable> Users(
    const std::vector<std::tuple<std::string, std::string, Rights>>& users, Rights anonymous = {}) {
  auto table = std::make_shared<UserTable>();
  for (const auto& [name, password, rights] : users)
    table->users.emplace(name, User{*ParsePasswordHash(HashPassword(password)), rights});
  table->anonymous = anonymous;
  return table;
}

struct Door {
  explicit Door(AccessOptions options) : access(std::move(options)) {}

  // Waits for the result if it comes later; `waited` tells whether it did.
  Login LogIn(std::string_view user, std::string_view password,
              const net::Peer& peer = kElsewhere) {
    bool woken = false;
    PendingLogin pending([&] { woken = true; });
    const auto login = access.LogIn(
        user, password, peer, now, [this](auto work) { posted.Add(std::move(work)); }, pending);
    waited = !login;
    if (login) return *login;
    EXPECT_FALSE(pending.result());
    EXPECT_TRUE(posted.RunNext());
    EXPECT_TRUE(woken);
    return pending.result().value_or(Login{.result = Result::kBusy});
  }

  base::Instant now = kStart;
  PostedWork posted;
  bool waited = false;
  Access access;
};

TEST(Access, WithoutLoginsOnlyThisMachineMayDoEverything) {
  Door door({});
  Identity nobody;
  EXPECT_FALSE(door.access.has_logins());
  EXPECT_EQ(door.access.RightsOf(kLocal, nobody), Rights::All());
  EXPECT_EQ(door.access.RightsOf(kElsewhere, nobody), Rights::Of(Right::kCheck));
}

TEST(Access, OnlyTheCredentialMatches) {
  Door door({.credential = "s3cret-\xff", .failures_per_minute = 1'000'000});
  Identity nobody;
  EXPECT_EQ(door.access.RightsOf(kLocal, nobody), Rights::Of(Right::kCheck));
  Login login = door.LogIn("", "s3cret-\xff");
  EXPECT_EQ(login.result, Result::kAccepted);
  EXPECT_EQ(door.access.RightsOf(kElsewhere, login.identity), Rights::All());
  EXPECT_EQ(door.LogIn("default", "s3cret-\xff").result, Result::kAccepted);
  EXPECT_EQ(door.LogIn("admin", "s3cret-\xff").result, Result::kWrong);
  for (const std::string_view wrong : {"", "s3cret-", "s3cret-\xff\xff"})
    EXPECT_EQ(door.LogIn("", wrong).result, Result::kWrong);
  const std::string right = "s3cret-\xff";
  for (size_t i = 0; i < right.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::string other = right;
      other[i] = static_cast<char>(static_cast<unsigned char>(other[i]) ^ (1u << bit));
      EXPECT_EQ(door.LogIn("", other).result, Result::kWrong) << i << ", bit " << bit;
    }
  }
}

TEST(Access, WithoutACredentialNothingMatches) {
  Door door({});
  EXPECT_EQ(door.LogIn("", "").result, Result::kWrong);
}

TEST(Access, AUserHasItsRightsFromAnywhere) {
  Door door(
      {.users = Users({{"ann", "apple", Rights::Of(Right::kRefund)}}, Rights::Of(Right::kCheck))});
  Identity nobody;
  EXPECT_EQ(door.access.RightsOf(kLocal, nobody), Rights::Of(Right::kCheck));
  Login login = door.LogIn("ann", "apple");
  ASSERT_EQ(login.result, Result::kAccepted);
  EXPECT_EQ(login.identity.user, "ann");
  EXPECT_EQ(door.access.RightsOf(kLocal, login.identity), Rights::Of(Right::kRefund));
  EXPECT_EQ(door.access.logins(Result::kAccepted), 1u);
}

TEST(Access, RefusesWrongPasswordsAndUnknownUsersAlike) {
  Door door({.users = Users({{"ann", "apple", Rights::All()}})});
  EXPECT_EQ(door.LogIn("ann", "pear").result, Result::kWrong);
  EXPECT_TRUE(door.waited);
  EXPECT_EQ(door.LogIn("bob", "apple").result, Result::kWrong);
  EXPECT_TRUE(door.waited) << "the hash of nobody is computed";
  EXPECT_EQ(door.LogIn("", "apple").result, Result::kWrong);
  EXPECT_EQ(door.access.logins(Result::kWrong), 3u);
}

TEST(Access, KnowsAPasswordThatWasVerified) {
  Door door({.users = Users({{"ann", "apple", Rights::All()}})});
  EXPECT_EQ(door.LogIn("ann", "apple").result, Result::kAccepted);
  EXPECT_TRUE(door.waited);
  EXPECT_EQ(door.LogIn("ann", "apple").result, Result::kAccepted);
  EXPECT_FALSE(door.waited);
  EXPECT_EQ(door.LogIn("ann", "pear").result, Result::kWrong);
  EXPECT_TRUE(door.waited);
}

TEST(Access, LimitsFailedLoginsPerUserAndAddress) {
  Door door({.users = Users({{"ann", "apple", Rights::All()}, {"bob", "beer", Rights::All()}}),
             .failures_per_minute = 2});
  EXPECT_EQ(door.LogIn("ann", "a").result, Result::kWrong);
  EXPECT_EQ(door.LogIn("ann", "b").result, Result::kWrong);
  const Login limited = door.LogIn("ann", "apple");
  EXPECT_EQ(limited.result, Result::kLimited) << "the right password, too: else one could guess on";
  EXPECT_EQ(limited.retry_after, 30s);
  EXPECT_EQ(door.LogIn("bob", "beer").result, Result::kAccepted);
  EXPECT_EQ(door.LogIn("ann", "apple", At("192.0.2.2")).result, Result::kAccepted);
  door.now = door.now + 30s;
  EXPECT_EQ(door.LogIn("ann", "apple").result, Result::kAccepted);
}

TEST(Access, TheAddressesOfOneIpv6NetworkCountTogether) {
  Door door({.users = Users({{"ann", "apple", Rights::All()}}),
             .failures_per_minute = 2,
             .address_failures_per_minute = 3});
  EXPECT_EQ(door.LogIn("ann", "x", At("2001:db8::1")).result, Result::kWrong);
  EXPECT_EQ(door.LogIn("ann", "y", At("2001:db8::2")).result, Result::kWrong);
  EXPECT_EQ(door.LogIn("ann", "z", At("2001:db8::3")).result, Result::kLimited);
  EXPECT_EQ(door.LogIn("ben", "z", At("2001:db8::ffff:4")).result, Result::kWrong);
  EXPECT_EQ(door.LogIn("cid", "z", At("2001:db8::5")).result, Result::kLimited) << "of all users";
  EXPECT_EQ(door.LogIn("ann", "apple", At("2001:db8:0:1::1")).result, Result::kAccepted)
      << "another network";
  EXPECT_EQ(door.LogIn("ann", "z", At("192.0.2.1")).result, Result::kWrong);
  EXPECT_EQ(door.LogIn("ann", "z", At("192.0.2.2")).result, Result::kWrong) << "IPv4";
}

TEST(Access, LimitsTheComputationsForOneAddress) {
  Door door({.users = Users({{"ann", "apple", Rights::All()}}),
             .failures_per_minute = 2,
             .address_failures_per_minute = 3});
  EXPECT_EQ(door.LogIn("ann", "apple").result, Result::kAccepted);
  for (const char* const invented : {"a", "b", "c"})
    EXPECT_EQ(door.LogIn(invented, "x").result, Result::kWrong);
  EXPECT_EQ(door.LogIn("d", "x").result, Result::kLimited);
  EXPECT_FALSE(door.waited);
  EXPECT_EQ(door.LogIn("ann", "apple").result, Result::kAccepted) << "it was verified before";
  EXPECT_EQ(door.LogIn("d", "x", At("192.0.2.2")).result, Result::kWrong);
}

TEST(Access, OneAddressGetsAQuarterOfThePlaces) {
  Door door({.users = Users({{"ann", "apple", Rights::All()}}), .waiting_max = 8});
  std::vector<std::unique_ptr<PendingLogin>> waiting;
  const auto ask = [&](const net::Peer& peer) {
    waiting.push_back(std::make_unique<PendingLogin>([] {}));
    return door.access.LogIn(
        "ann", "wrong" + std::to_string(waiting.size()), peer, door.now,
        [&](auto work) { door.posted.Add(std::move(work)); }, *waiting.back());
  };
  int busy = 0;
  for (int i = 0; i < 8; ++i) busy += ask(kElsewhere).has_value() ? 1 : 0;
  // At most two of these logins wait at a time. The thread that verifies may have taken up one or
  // more of them meanwhile.
  EXPECT_GE(busy, 1);
  EXPECT_FALSE(ask(At("192.0.2.2")).has_value());
  door.access.End();
}

// Far more clients than there are places: they need one place, and one computation.
TEST(Access, ClientsWithOnePasswordAreVerifiedTogether) {
  Door door({.users = Users({{"ann", "apple", Rights::All()}}), .waiting_max = 4});
  constexpr int kClients = 100;
  std::vector<std::unique_ptr<PendingLogin>> waiting;
  int at_once = 0;
  for (int i = 0; i < kClients; ++i) {
    waiting.push_back(std::make_unique<PendingLogin>([] {}));
    const auto login = door.access.LogIn(
        "ann", "apple", kElsewhere, door.now, [&](auto work) { door.posted.Add(std::move(work)); },
        *waiting.back());
    if (!login) continue;
    EXPECT_EQ(login->result, Result::kAccepted) << "it was verified meanwhile";
    ++at_once;
  }
  for (int i = at_once; i < kClients; ++i) ASSERT_TRUE(door.posted.RunNext());
  EXPECT_EQ(door.access.logins(Result::kAccepted), uint64_t{kClients});
}

// One address fills its places, then another one comes.
TEST(Access, AddressesTakeTurns) {
  Door door({.users = Users({{"ann", "apple", Rights::All()}}), .waiting_max = 64});
  std::vector<std::unique_ptr<PendingLogin>> waiting;
  std::vector<std::string> told;
  const auto ask = [&](std::string name, std::string_view password, const net::Peer& peer) {
    waiting.push_back(std::make_unique<PendingLogin>([&told, name] { told.push_back(name); }));
    return door.access.LogIn(
        "ann", password, peer, door.now, [&](auto work) { door.posted.Add(std::move(work)); },
        *waiting.back());
  };
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(ask("crowd", "wrong" + std::to_string(i), kElsewhere));
  EXPECT_FALSE(ask("ann", "apple", At("192.0.2.2")));
  for (int i = 0; i < 11; ++i) ASSERT_TRUE(door.posted.RunNext());
  const auto ann = std::find(told.begin(), told.end(), "ann") - told.begin();
  EXPECT_LT(ann, 8) << "behind those that were verified before it came, and one turn of the crowd";
}

// Many logins while the thread that verifies passwords is held up, so that all places are taken.
struct Crowd {
  explicit Crowd(uint64_t failures_per_minute = 10)
      : door({.users = CheapUsers(),
              .failures_per_minute = failures_per_minute,
              .waiting_max = kPlaces}) {
    // The result of this login is delivered on the thread that verifies, which then waits here.
    Ask("opener", "wrong", At("198.51.100.1"), [this](auto) {
      held.count_down();
      released.wait();
    });
    held.wait();
  }
  ~Crowd() {
    Release();
    door.access.End();
  }

  // A hash that takes microseconds: apple.
  static std::shared_ptr<const UserTable> CheapUsers() {
    auto table = std::make_shared<UserTable>();
    table->users.emplace("ann",
                         User{*ParsePasswordHash("$scrypt$ln=1,r=1,p=1$MDEyMzQ1Njc4OWFiY2RlZg$"
                                                 "SjJ2uW19P0Q6Pe8RWsJtq2GJP6Kl5BstmYaeTnw5ClA"),
                              Rights::All()});
    return table;
  }
  static net::Peer Attacker(int number) {
    return At(("192.0.2." + std::to_string(number)).c_str());
  }

  std::optional<Login> Ask(std::string name, std::string_view password, const net::Peer& peer,
                           Post post = {}) {
    waiting.push_back(std::make_unique<PendingLogin>([this, name] { told.push_back(name); }));
    if (!post) post = [this](auto work) { door.posted.Add(std::move(work)); };
    return door.access.LogIn("ann", password, peer, door.now, post, *waiting.back());
  }
  // A login with a password of its own. Returns whether it is refused at once.
  bool Guess(int attacker) {
    return Ask("attacker " + std::to_string(attacker), "wrong" + std::to_string(++guesses),
               Attacker(attacker))
        .has_value();
  }
  void Release() {
    if (!std::exchange(is_released, true)) released.count_down();
  }

  static constexpr uint32_t kPlaces = 40;
  int guesses = 0;
  bool is_released = false;
  std::latch held{1};
  std::latch released{1};
  std::vector<std::unique_ptr<PendingLogin>> waiting;
  std::vector<std::string> told;
  Door door;
};

TEST(Access, ACrowdOfAddressesDoesNotLockOutAnother) {
  Crowd crowd;
  for (int turn = 0; turn < 3; ++turn) {
    for (int attacker = 0; attacker < 20; ++attacker)
      EXPECT_EQ(crowd.Guess(attacker), turn == 2) << "two of each take all places";
  }
  EXPECT_FALSE(crowd.Ask("ann", "apple", At("203.0.113.9"))) << "it takes a place of the crowd";
  ASSERT_TRUE(crowd.door.posted.RunNext());
  EXPECT_EQ(crowd.told, std::vector<std::string>{"attacker 19"}) << "the newest one gives way";
  EXPECT_EQ(crowd.waiting[40]->result()->result, Result::kBusy);
  crowd.Release();
  for (uint32_t i = 0; i < Crowd::kPlaces; ++i) ASSERT_TRUE(crowd.door.posted.RunNext());
  EXPECT_EQ(crowd.waiting.back()->result()->result, Result::kAccepted);
  EXPECT_EQ(std::find(crowd.told.begin(), crowd.told.end(), "ann") - crowd.told.begin(), 21)
      << "behind the one that gave way, and one of each address";
}

TEST(Access, NobodyGivesWayToAnAddressWithAsMany) {
  Crowd crowd;
  for (int turn = 0; turn < 2; ++turn) {
    for (int attacker = 0; attacker < 20; ++attacker) EXPECT_FALSE(crowd.Guess(attacker));
  }
  EXPECT_FALSE(crowd.Guess(20));
  EXPECT_TRUE(crowd.Guess(20)) << "it would have more than those that give way";
}

TEST(Access, TheClientsThatWaitForOnePasswordHaveABound) {
  Crowd crowd;
  for (int i = 0; i < 16'384; ++i) ASSERT_FALSE(crowd.Ask("", "apple", kElsewhere)) << i;
  const auto refused = crowd.Ask("", "apple", kElsewhere);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->result, Result::kBusy);
  EXPECT_FALSE(crowd.Ask("", "avocado", kElsewhere)) << "each password has its own";
  crowd.Release();
  for (int i = 0; i < 16'384; ++i) ASSERT_TRUE(crowd.door.posted.RunNext());
  EXPECT_EQ(crowd.waiting[16'384]->result()->result, Result::kAccepted);
}

TEST(Access, LoginsThatAreRefusedAsBusyCountAgainstTheirAddress) {
  Crowd crowd(/*failures_per_minute=*/1000);
  const auto result = [&](int i) {
    const auto login = crowd.Ask("a", "wrong" + std::to_string(i), kElsewhere);
    return login ? std::optional(login->result) : std::nullopt;
  };
  for (int i = 0; i < 10; ++i) EXPECT_EQ(result(i), std::nullopt);
  for (int i = 10; i < 100; ++i) EXPECT_EQ(result(i), Result::kBusy) << i;
  EXPECT_EQ(result(100), Result::kLimited);
}

// However many connections guess at the same time, no more passwords are compared than one
// connection may guess.
TEST(Access, AGuessCountsBeforeItIsCompared) {
  Crowd crowd;
  for (int i = 0; i < 40; ++i) {
    const auto login = crowd.Ask("guess", "wrong" + std::to_string(i), kElsewhere);
    EXPECT_EQ(login.has_value(), i >= 10) << i;
    EXPECT_TRUE(!login || login->result == Result::kLimited);
  }
  EXPECT_FALSE(crowd.Ask("other", "apple", At("203.0.113.9"))) << "another address";
  crowd.Release();
  for (int i = 0; i < 11; ++i) ASSERT_TRUE(crowd.door.posted.RunNext());
  EXPECT_EQ(crowd.door.LogIn("ann", "apple").result, Result::kLimited) << "all ten were wrong";
  EXPECT_EQ(crowd.waiting[41]->result()->result, Result::kAccepted);
}

TEST(Access, AGuessOfManyUsersCountsForTheAddressBeforeItIsCompared) {
  Crowd crowd;
  int limited = 0;
  for (int i = 0; i < 400; ++i) {
    PendingLogin pending([] {});
    const auto login = crowd.door.access.LogIn(
        "user" + std::to_string(i), "x", kElsewhere, crowd.door.now, [](auto) {}, pending);
    limited += login && login->result == Result::kLimited ? 1 : 0;
  }
  EXPECT_EQ(limited, 300) << "a hundred waited or were refused as busy";
}

// A fleet behind one address that starts again: more clients than may fail.
TEST(Access, ClientsOfOneAddressWithTheRightPasswordGuessOnce) {
  Crowd crowd(/*failures_per_minute=*/1);
  for (int i = 0; i < 30; ++i) EXPECT_FALSE(crowd.Ask("fleet", "apple", kElsewhere)) << i;
  EXPECT_EQ(crowd.Ask("", "pear", kElsewhere)->result, Result::kLimited);
  crowd.Release();
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(crowd.door.posted.RunNext());
  EXPECT_EQ(crowd.waiting[30]->result()->result, Result::kAccepted);
  EXPECT_EQ(crowd.door.LogIn("ann", "pear").result, Result::kWrong) << "nothing is counted";
  EXPECT_EQ(crowd.door.LogIn("ann", "pear").result, Result::kLimited);
}

TEST(Access, ARightPasswordIsGivenBackToUserAndAddress) {
  Door door({.users = Users({{"ann", "apple", Rights::All()}, {"bob", "beer", Rights::All()}}),
             .failures_per_minute = 1,
             .address_failures_per_minute = 1});
  EXPECT_EQ(door.LogIn("ann", "apple").result, Result::kAccepted);
  EXPECT_EQ(door.LogIn("bob", "beer").result, Result::kAccepted);
  EXPECT_EQ(door.LogIn("ann", "pear").result, Result::kWrong);
  EXPECT_EQ(door.LogIn("bob", "pear").result, Result::kLimited);
}

TEST(Access, APasswordThatWasNotComparedIsGivenBackToTheUser) {
  Door door({.users = Users({{"ann", "apple", Rights::All()}}),
             .failures_per_minute = 1,
             .waiting_max = 0});
  EXPECT_EQ(door.LogIn("ann", "apple").result, Result::kBusy);
  EXPECT_EQ(door.LogIn("ann", "apple").result, Result::kBusy) << "not limited";
}

TEST(Access, ALoginThatWaitedTooLongIsRefusedAsBusy) {
  struct Clock final : base::Clock {
    base::BootTime BootNow() const override {
      // Each reading is a second later.
      return base::BootTime::FromNanos(1'000'000'000 * ++readings);
    }
    base::WallTime WallNow() const override { return base::WallTime::FromNanos(0); }
    mutable std::atomic<int64_t> readings{0};
  };
  Door door({.users = Users({{"ann", "apple", Rights::All()}}),
             .wait_max = 1s,
             .clock = std::make_shared<Clock>()});
  EXPECT_EQ(door.LogIn("ann", "apple").result, Result::kBusy);
  EXPECT_EQ(door.access.logins(Result::kBusy), 1u);
}

TEST(Access, LimitsGuessesOfTheCredential) {
  Door door({.credential = "secret", .failures_per_minute = 2});
  EXPECT_EQ(door.LogIn("", "a").result, Result::kWrong);
  EXPECT_EQ(door.LogIn("", "b").result, Result::kWrong);
  EXPECT_EQ(door.LogIn("", "secret").result, Result::kLimited);
  EXPECT_EQ(door.LogIn("default", "secret").result, Result::kLimited) << "the same user";
}

// Else a client that invents names would push the count of its guesses out of the table.
TEST(Access, WithOnlyACredentialAllNamesCountTogether) {
  Door door({.credential = "secret", .failures_per_minute = 2});
  EXPECT_EQ(door.LogIn("a", "x").result, Result::kWrong);
  EXPECT_EQ(door.LogIn("b", "x").result, Result::kWrong);
  EXPECT_EQ(door.LogIn("c", "x").result, Result::kLimited);
  EXPECT_EQ(door.LogIn("", "secret").result, Result::kLimited);
  EXPECT_EQ(door.LogIn("", "secret", At("192.0.2.2")).result, Result::kAccepted);
}

TEST(Access, GuessesOfTheCredentialCountAgainstTheAddress) {
  Door door({.credential = "secret",
             .users = Users({{"ann", "apple", Rights::All()}}),
             .address_failures_per_minute = 2});
  EXPECT_EQ(door.LogIn("", "x").result, Result::kWrong);
  EXPECT_EQ(door.LogIn("", "y").result, Result::kWrong);
  EXPECT_EQ(door.LogIn("ann", "apple").result, Result::kLimited);
  EXPECT_EQ(door.LogIn("", "secret").result, Result::kAccepted) << "it needs no computation";
}

TEST(Access, RefusesLoginsBeyondThoseThatWait) {
  Door door({.users = Users({{"ann", "apple", Rights::All()}}), .waiting_max = 0});
  EXPECT_EQ(door.LogIn("ann", "apple").result, Result::kBusy);
}

TEST(Access, FollowsChangesOfTheUsers) {
  const auto before = Users({{"ann", "apple", Rights::All()}, {"bob", "beer", Rights::All()}});
  Door door({.users = before});
  Login ann = door.LogIn("ann", "apple");
  Login bob = door.LogIn("bob", "beer");
  auto after = std::make_shared<UserTable>(*before);
  after->users.at("ann").rights = Rights::Of(Right::kCheck);
  after->users.erase("bob");
  after->anonymous = Rights::Of(Right::kRead);
  door.access.Replace(after);
  EXPECT_EQ(door.access.RightsOf(kElsewhere, ann.identity), Rights::Of(Right::kCheck));
  EXPECT_EQ(door.access.RightsOf(kElsewhere, bob.identity), Rights::Of(Right::kRead));
  EXPECT_FALSE(bob.identity.logged_in());
  EXPECT_EQ(door.LogIn("bob", "beer").result, Result::kWrong);
  door.access.Replace(Users({{"ann", "avocado", Rights::All()}}));
  EXPECT_EQ(door.access.RightsOf(kElsewhere, ann.identity), Rights());
  EXPECT_EQ(door.LogIn("ann", "apple").result, Result::kWrong);
}

TEST(Access, TheCredentialIsAUserBesideTheOthers) {
  Door door({.credential = "secret", .users = Users({{"ann", "apple", Rights()}})});
  Login login = door.LogIn("default", "secret");
  ASSERT_EQ(login.result, Result::kAccepted);
  door.access.Replace(Users({}));
  EXPECT_EQ(door.access.RightsOf(kElsewhere, login.identity), Rights::All());
}

TEST(Access, AClientThatLeavesIsForgotten) {
  PostedWork posted;
  Access access({.users = Users({{"ann", "apple", Rights::All()}})});
  {
    PendingLogin pending([] { FAIL() << "nobody waits"; });
    EXPECT_FALSE(access.LogIn(
        "ann", "apple", kElsewhere, kStart, [&](auto work) { posted.Add(std::move(work)); },
        pending));
  }
  access.End();
}

}  // namespace access_test
}  // namespace headgate::access

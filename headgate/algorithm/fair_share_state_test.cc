// The bytes of a pool: what is read from them decides as the pool that was written.
#include "headgate/algorithm/fair_share_state.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <tuple>

#include "headgate/algorithm/fair_share_rig.h"
#include "tests/source_dir.h"

namespace headgate::algorithm {
namespace fair_share_state_test {

using base::Duration;
using base::Instant;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::string BytesOf(const FairSharePool& pool) {
  std::string bytes;
  FairShareState::Append(pool, bytes);
  return bytes;
}

struct Traffic {
  explicit Traffic(uint64_t seed) : random(seed) {}

  uint64_t Below(uint64_t end) { return random() % end; }
  FairShareOptions AnyOptions() {
    return {.capacity = 1 + Below(80),
            .cycle = seconds(1 + Below(10)),
            .reservation = {static_cast<uint32_t>(Below(11)), 10},
            .lending = static_cast<Lending>(Below(2)),
            .on_new_client = static_cast<OnNewClient>(Below(2)),
            .reclaim = static_cast<Reclaim>(Below(2)),
            .leave_after_cycles = static_cast<uint32_t>(Below(4)),
            .clients_max = static_cast<uint32_t>(1 + Below(8))};
  }
  // One event, the same for both pools. Returns whether both decided the same.
  bool Step(FairSharePool& one, FairSharePool& two) {
    now += milliseconds(Below(Below(50) == 0 ? 30'000 : 300));
    const std::string name(1 + Below(2), static_cast<char>('a' + Below(6)));
    const auto weight = static_cast<uint32_t>(1 + Below(3));
    const FairShareRequest request{.client = name, .cost = 1 + Below(4), .weight = weight};
    switch (Below(8)) {
      case 0:
        return one.AddDemand(request, now) == two.AddDemand(request, now);
      case 1: {
        const uint64_t want = Below(5);
        return one.TakePart(name, want) == two.TakePart(name, want);
      }
      case 2: {
        const uint64_t amount = Below(3), cycle = one.cycle().number - Below(2);
        one.ReturnPart(name, amount, cycle);
        two.ReturnPart(name, amount, cycle);
        return one.RoomFor(name) == two.RoomFor(name);
      }
      case 3: {
        const FairShareOptions options = AnyOptions();
        if (Below(10) != 0) return true;
        one.SetOptions(options);
        two.SetOptions(options);
        return true;
      }
      default: {
        const Decision a = one.Decide(request, now), b = two.Decide(request, now);
        return a.allowed == b.allowed && a.limit == b.limit && a.remaining == b.remaining &&
               a.retry_after == b.retry_after && a.reset_after == b.reset_after;
      }
    }
  }

  std::mt19937_64 random;
  Instant now = At(seconds(100));
};

TEST(FairShareState, APoolThatWasReadDecidesAsTheOneThatWasWritten) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Traffic traffic(seed);
    FairSharePool one = MakePool(traffic.AnyOptions());
    FairSharePool two = one;
    for (int step = 0; step < 400; ++step) {
      ASSERT_TRUE(traffic.Step(one, two)) << "seed " << seed << ", step " << step;
      one.Advance(traffic.now);
      two.Advance(traffic.now);
      const std::string bytes = BytesOf(one);
      auto read = FairShareState::Parse(bytes);
      ASSERT_TRUE(read.has_value()) << "seed " << seed << ", step " << step;
      two = *std::move(read);
      ASSERT_EQ(BytesOf(two), bytes);
      ASSERT_EQ(CapacitiesOf(two), CapacitiesOf(one));
      ASSERT_EQ(two.cycle().number, one.cycle().number);
      ASSERT_EQ(two.cycle().end, one.cycle().end);
    }
  }
}

FairSharePool FourShareForty() {
  FairSharePool pool = MakePool({.capacity = 40, .cycle = seconds(10), .reservation = {1, 10}});
  for (const auto* name : {"A", "B", "C", "D"}) Ask(pool, name, 3, At(seconds(100)));
  return pool;
}

TEST(FairShareState, IsSmall) {
  EXPECT_LT(BytesOf(FourShareForty()).size(), 400u);
  FairSharePool many = MakePool({.capacity = 4'000'000, .cycle = seconds(10), .clients_max = 1024});
  for (int i = 0; i < 1024; ++i) {
    const std::string name = std::to_string(100'000'000 + i) + std::string(55, 'x');
    Ask(many, name, 1, At(seconds(1'790'000'000)));
  }
  many.Advance(At(seconds(1'790'000'011)));
  EXPECT_LT(BytesOf(many).size(), 150'000u);
}

TEST(FairShareState, DamagedBytesAreNotAPoolOrAreOneWithinTheBounds) {
  const std::string bytes = BytesOf(FourShareForty());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(FairShareState::Parse(bytes.substr(0, size))) << size;
  EXPECT_FALSE(FairShareState::Parse(bytes + '\0'));
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      auto pool = FairShareState::Parse(damaged);
      if (!pool) continue;
      EXPECT_EQ(BytesOf(*pool), damaged) << i;
      uint64_t sum = 0;
      for (const uint64_t capacity : CapacitiesOf(*pool)) sum += capacity;
      EXPECT_EQ(sum, pool->capacity()) << i;
    }
  }
}

// A process that is replaced hands over its pool, and a store keeps one, from before.
TEST(FairShareState, EarlierVersionsAreRead) {
  for (const auto& [file, version, clients] :
       {std::tuple("four_clients", 1, 4u), std::tuple("second_version", 2, 5u),
        std::tuple("third_version", 3, 5u)}) {
    SCOPED_TRACE(file);
    std::ifstream in(SourceDir() / "tests/corpus/algorithm_fair_share_state_fuzz" / file,
                     std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    ASSERT_FALSE(bytes.empty());
    ASSERT_EQ(bytes.front(), version);
    auto pool = FairShareState::Parse(bytes);
    ASSERT_TRUE(pool.has_value());
    EXPECT_EQ(pool->client_count(), clients);
    const std::string written = BytesOf(*pool);
    EXPECT_EQ(written.front(), 4);
    const auto again = FairShareState::Parse(written);
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(BytesOf(*again), written);
    const Instant now = pool->cycle().end;
    const std::string name(pool->client(0).name);
    EXPECT_TRUE(pool->Decide({.client = name}, now).allowed);
  }
}

TEST(FairShareState, KnowsItsVersionAndRefusesTwoClientsOfOneName) {
  std::string bytes = BytesOf(FourShareForty());
  const size_t a = bytes.find(
      "\x01"
      "A");
  ASSERT_NE(a, std::string::npos);
  std::string twice = bytes;
  twice[a + 1] = 'B';
  EXPECT_FALSE(FairShareState::Parse(twice));
  bytes[0] = 5;
  EXPECT_FALSE(FairShareState::Parse(bytes));
}

}  // namespace fair_share_state_test
}  // namespace headgate::algorithm

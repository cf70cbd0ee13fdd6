// Clients of every temper in front of a pool with a fixed capacity, in virtual time. A seed repeats
// a run. They see times as the clients of a sidecar do: in whole seconds, rounded up.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "headgate/base/random.h"
#include "headgate/share/share_pool.h"

namespace headgate::share {

enum class Temper : uint8_t {
  kQuiet,           // requests at random times (Poisson), whatever the answers
  kStorm,           // requests in a steady stream, whatever the answers
  kObedient,        // a steady stream until the first refusal, then waits for Retry-After
  kObeysRemaining,  // the same, but waits for the end of `t` as soon as `r` is 0
  kAtTheBeginning,  // all requests of a cycle in its first moments
  kAtOneTime,       // all requests of a cycle at the same time of each
  kFirstHalf,       // a storm in the first half of each cycle
  kSecondHalf,      // a storm in the second half of each cycle
  kComesAndGoes,    // quiet for some cycles, silent for as many, and so on
  kOnce,            // one request at the beginning of the run
};

struct CrowdMember {
  std::string name;
  Temper temper = Temper::kQuiet;
  double per_second = 0;  // kAtTheBeginning, kAtOneTime: per cycle
  int silence = 5;        // kComesAndGoes: cycles
  int phase = 0;          // the first request comes after this part of a cycle, in percent
  int every = 1;          // kAtOneTime: in one cycle of this many
};

struct Counted {
  uint64_t asked = 0;
  uint64_t passed = 0;
};

class CrowdRig {
 public:
  CrowdRig(SharePool& pool, base::Duration cycle, std::vector<CrowdMember> members, uint64_t seed)
      : pool_(pool), cycle_(cycle), random_(seed) {
    for (CrowdMember& member : members) {
      Client client{.member = std::move(member)};
      client.next = IsRandom(client) ? Later(client)
                                     : At(cycle * client.member.phase / 100) +
                                           base::Duration(random_.Below(1000));
      clients_.push_back(std::move(client));
    }
  }

  // The requests of the next cycles, by client and cycle.
  using Cycles = std::vector<Counted>;
  std::vector<Cycles> Run(size_t cycles) {
    const base::Instant begin = end_;
    end_ = begin + cycle_ * static_cast<int64_t>(cycles);
    std::vector<Cycles> counted(clients_.size(), Cycles(cycles));
    while (true) {
      const auto first = std::min_element(
          clients_.begin(), clients_.end(),
          [](const Client& left, const Client& right) { return left.next < right.next; });
      if (first->next >= end_) return counted;
      now_ = first->next;
      const auto cycle = static_cast<size_t>((now_ - begin) / cycle_);
      Counted& count = counted[static_cast<size_t>(first - clients_.begin())][cycle];
      Ask(*first, count);
    }
  }

 private:
  struct Client {
    CrowdMember member;
    base::Instant next{0};
  };

  static bool IsRandom(const Client& client) {
    return client.member.temper == Temper::kQuiet || client.member.temper == Temper::kComesAndGoes;
  }
  static base::Instant At(base::Duration time) { return base::Instant::FromNanos(0) + time; }
  static base::Duration WholeSeconds(base::Duration time) {
    return std::max<base::Duration>(std::chrono::ceil<std::chrono::seconds>(time),
                                    std::chrono::seconds(1));
  }

  base::Instant Later(const Client& client) {
    const double part =
        (static_cast<double>(random_.Next() >> 12) + 0.5) / double(uint64_t{1} << 52);
    return now_ +
           base::Duration(static_cast<int64_t>(-std::log(part) * 1e9 / client.member.per_second));
  }

  void Ask(Client& client, Counted& count) {
    if (client.member.temper == Temper::kAtTheBeginning ||
        client.member.temper == Temper::kAtOneTime) {
      for (int i = 0; i < static_cast<int>(client.member.per_second); ++i)
        (void)Send(client, count);
      const int64_t cycles = (now_ - At({})) / cycle_ + client.member.every;
      client.next = At(cycle_ * cycles) + cycle_ * client.member.phase / 100 +
                    base::Duration(static_cast<int64_t>(random_.Below(10'000'000)));
      return;
    }
    if (client.member.temper == Temper::kOnce) {
      (void)Send(client, count);
      client.next = base::kInstantMax;
      return;
    }
    const base::Duration gap(static_cast<int64_t>(1e9 / client.member.per_second));
    if (IsAway(client)) {
      client.next = IsRandom(client) ? Later(client) : now_ + gap;
      return;
    }
    const PoolAnswer verdict = Send(client, count);
    switch (client.member.temper) {
      case Temper::kQuiet:
      case Temper::kComesAndGoes:
        client.next = Later(client);
        return;
      case Temper::kStorm:
      case Temper::kFirstHalf:
      case Temper::kSecondHalf:
        client.next = now_ + gap;
        return;
      case Temper::kObeysRemaining:
        if (verdict.admitted && verdict.remaining == 0) {
          client.next = now_ + WholeSeconds(verdict.reset_after);
          return;
        }
        break;
      default:
        break;
    }
    client.next = now_ + (verdict.admitted ? gap : WholeSeconds(verdict.retry_after));
  }

  bool IsAway(const Client& client) const {
    const base::Duration time = now_ - At({});
    const bool is_second_half = time % cycle_ >= cycle_ / 2;
    switch (client.member.temper) {
      case Temper::kFirstHalf:
        return is_second_half;
      case Temper::kSecondHalf:
        return !is_second_half;
      case Temper::kComesAndGoes:
        return time / cycle_ / client.member.silence % 2 == 1;
      default:
        return false;
    }
  }

  PoolAnswer Send(const Client& client, Counted& count) {
    const PoolAnswer verdict = pool_.Admit(client.member.name, 1, now_);
    ++count.asked;
    count.passed += verdict.admitted;
    return verdict;
  }

  SharePool& pool_;
  const base::Duration cycle_;
  base::Random random_;
  std::vector<Client> clients_;
  base::Instant now_ = At({});
  base::Instant end_ = At({});
};

}  // namespace headgate::share

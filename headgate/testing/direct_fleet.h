// A shared decider without rules, fronts and a network, over a shared store that answers when the
// test tells it to. For tests of the calls that the decider sends. Not thread-safe.
#pragma once

#include <span>
#include <string>

#include "headgate/base/hash_rig.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/store/memory.h"
#include "headgate/testing/manual_shared_store.h"

namespace headgate::testing {

struct DirectFleet {
  static store::MemoryOptions Options() {
    return {.max_buckets = 4096, .secret = base::SecretFromSeed(1)};
  }

  store::LimitHandle Intern(const algorithm::LimitSpec& spec, uint32_t version = 0) {
    return *local.limits().Intern(*algorithm::Limit::Make(spec), version);
  }

  // Asks `of` to decide one request for `key`. Returns true if the decision is immediate.
  bool Begin(uint64_t key, const store::LimitHandle& limit,
             std::span<const store::LimitChange> history, uint64_t cost,
             limiter::shared::SharedDecider& of) {
    pending.Forget();
    limiter::BatchEntry entry{
        .request = {.key = {key * 0x9e3779b97f4a7c15, key * 0xc2b2ae3d27d4eb4f},
                    .limit = limit.get(),
                    .history = history,
                    .cost = cost,
                    .operation = operation},
        .terms = of.default_terms()};
    const bool is_settled = of.Decide(
        {&entry, 1}, [&](size_t, std::string& name) { name += std::to_string(key); }, &pending,
        now);
    settled = entry.settled;
    return is_settled;
  }
  // Like Begin, and lets the store answer all calls. Returns whether the request is allowed.
  bool Ask(uint64_t key, const store::LimitHandle& limit,
           std::span<const store::LimitChange> history = {}, uint64_t cost = 1) {
    return AskLoop(fleet, key, limit, history, cost);
  }
  bool AskLoop(limiter::shared::SharedDecider& of, uint64_t key, const store::LimitHandle& limit,
               std::span<const store::LimitChange> history = {}, uint64_t cost = 1) {
    if (!Begin(key, limit, history, cost, of)) {
      shared.AnswerAll();
      settled = pending.settled().front();
    }
    shared.AnswerAll();
    return settled.decision.allowed;
  }

  base::Instant now = base::Instant::FromNanos(1'790'000'000'000'000'000);
  store::MemoryStore local{Options()};
  ManualSharedStore shared{local, now};
  limiter::lease::LeaseBooks books{{.node = 1, .keys_max = 65'536}};
  limiter::shared::SharedDecider fleet{shared, local, {.leases = &books}};
  limiter::Pending pending{[] {}};
  store::Operation operation = store::Operation::kTake;  // of the requests from now on
  limiter::Settled settled;
};

}  // namespace headgate::testing

// An application with rules in front of its pool, for tests.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "headgate/base/check.h"
#include "headgate/limiter/shared/shared_decider.h"
#include "headgate/mapping/mapping_file.h"
#include "headgate/proxy/application.h"
#include "headgate/proxy/relay_rig.h"
#include "headgate/rule/read/load.h"
#include "headgate/store/memory.h"
#include "headgate/testing/manual_shared_store.h"

namespace headgate::proxy {

enum class Store : uint8_t { kMemory, kShared, kLeased };

// Rules of one line each, in the domain "default". Clients are named by X-Client-Id.
struct RuleRig : RelayRig {
  explicit RuleRig(std::vector<std::string> one_liners, Store kind = Store::kMemory) {
    if (kind != Store::kMemory) {
      shared.emplace(store, now);
      if (kind == Store::kLeased)
        leases.emplace(limiter::lease::LeaseBookOptions{.node = 1, .keys_max = 64}, 1);
      decider.emplace(*shared, store,
                      limiter::shared::SharedDeciderOptions{.leases = leases ? &*leases : nullptr});
      checker.emplace(limiter, 0, *decider, limiter::BucketNaming{});
    } else {
      checker.emplace(limiter);
    }
    SetRules(std::move(one_liners));
    mappings.Publish(mapping::MappingOfClient("X-Client-Id"));
    answer.emplace(*checker, answer::LimitAnswerOptions{.dialect = wire::RateLimitDialect::kDraft});
    judge.emplace(*checker, *answer,
                  gate::JudgeOptions{.mappings = mappings,
                                     .repeats = repeats,
                                     .secret = secret,
                                     .clock = clock,
                                     .is_own_proxy = true},
                  rule_counters.verdicts);
    gate.emplace(*judge, wire::RateLimitDialect::kDraft, held, rule_counters);
    settler.emplace(*checker, wheel, held, settled);
    gate->SetSettler(*settler);
    application.SetRules(*gate);
  }

  void SetRules(std::vector<std::string> one_liners) {
    const rule::read::LoadResult rules =
        rule::read::LoadRules({}, {.one_liners = std::move(one_liners)});
    HEADGATE_CHECK(rules.ok());
    HEADGATE_CHECK(limiter.OnRules(rules.rules, now).ok());
  }
  void SetRuleFile(std::string_view text) {
    const std::vector<rule::read::RuleFile> files{{.name = "f.yaml", .text = std::string(text)}};
    const rule::read::LoadResult rules = rule::read::LoadRules(files);
    HEADGATE_CHECK(rules.ok());
    HEADGATE_CHECK(limiter.OnRules(rules.rules, now).ok());
  }
  void Map(std::string_view text) {
    mapping::LoadedMappings loaded = mapping::LoadMappings(
        "map.yaml", text, [](const std::string&) { return absl::NotFoundError("no files"); },
        mapping::Asker::kOwnProxy);
    HEADGATE_CHECK(loaded.set != nullptr);
    mappings.Publish(std::move(loaded.set));
  }

  using FieldList = std::initializer_list<std::pair<std::string_view, std::string_view>>;
  static http::RequestHead HeadOf(std::string_view target, FieldList fields) {
    http::RequestHead head{.method = "POST",
                           .target = std::string(target),
                           .scheme = "http",
                           .authority = "example.com"};
    for (const auto& [name, value] : fields) head.fields.Add(name, value);
    return head;
  }
  // A request over a connection of its own, which records the bytes sent to the client.
  struct Exchange {
    PlayedClient client;
    std::unique_ptr<http::RequestReceiver> receiver;
  };
  std::unique_ptr<Exchange> Ask(http::RequestHead head) {
    auto exchange = std::make_unique<Exchange>();
    exchange->receiver = application.OnRequest(std::move(head), peer, exchange->client, now);
    return exchange;
  }
  std::unique_ptr<Exchange> Ask(FieldList fields) { return Ask(HeadOf("/x", fields)); }
  // The first line that the client gets from one more request.
  std::string FirstOf(http::RequestHead head) {
    const auto exchange = Ask(std::move(head));
    return exchange->client.got.empty() ? "nothing" : exchange->client.got.front();
  }
  // Moves the time, and lets held requests whose turn has come continue.
  void Pass(base::Duration d) {
    now += d;
    held.Advance(now);
  }
  uint64_t Count(gate::RequestOutcome outcome) const {
    return rule_counters.verdicts.outcomes[static_cast<size_t>(outcome)].value();
  }
  uint64_t HeldNow() const {
    return rule_counters.verdicts.held_begun.value() - rule_counters.verdicts.held_ended.value();
  }

  store::MemoryStore store{{.max_buckets = 1 << 12}};
  limiter::Limiter limiter{store, nullptr};
  std::optional<testing::ManualSharedStore> shared;
  std::optional<limiter::lease::LeaseBooks> leases;
  std::optional<limiter::shared::SharedDecider> decider;
  std::optional<limiter::Checker> checker;
  std::optional<answer::LimitAnswer> answer;
  gate::LiveMappings mappings;
  gate::Repeats repeats{{}};
  const base::HashSecret secret{};
  base::ManualClock clock{base::WallTime::FromNanos(kStart.ns)};
  RuleCounters rule_counters;
  std::optional<gate::Judge> judge;
  HeldRequests held{4, [](base::Instant) {}};
  SettleCounters settled;
  std::optional<Settler> settler;
  std::optional<RuleGate> gate;
  ApplicationOptions application_options{.forwarded = {.x_forwarded = Forwarding::kOff, .via = ""},
                                         .cycle = std::chrono::seconds(10)};
  ApplicationCounters application_counters;
  Application application{application_options, context, application_counters};
  net::Peer peer{.ip = base::ParseIpAddress("192.0.2.7")};
};

}  // namespace headgate::proxy

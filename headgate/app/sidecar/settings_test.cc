#include "headgate/app/sidecar/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace headgate::app {
namespace settings_test {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct Read {
  std::optional<SidecarSettings> settings;
  std::string err;
};

// Reads flags in addition to the required ones.
Read WithFlags(std::vector<std::string> flags) {
  for (const auto* needed : {"--upstream=http://127.0.0.1:9000", "--capacity=40"}) {
    const std::string_view name =
        std::string_view(needed).substr(0, std::string_view(needed).find('='));
    const bool given = std::any_of(flags.begin(), flags.end(), [&](const std::string& flag) {
      return flag.starts_with(name) && !flag.starts_with("--upstream-");
    });
    if (!given) flags.emplace_back(needed);
  }
  std::ostringstream out;
  std::ostringstream err;
  Read read{.settings = ReadSidecarSettings(flags, {}, {.out = out, .err = err}), .err = {}};
  read.err = err.str();
  return read;
}

TEST(SidecarSettings, HaveTheDefaultsOfTheHelp) {
  const auto [settings, err] = WithFlags({});
  ASSERT_TRUE(settings) << err;
  ASSERT_EQ(settings->listen.size(), 1u);
  EXPECT_EQ(settings->listen[0].endpoint.ToString(), "127.0.0.1:8080");
  ASSERT_TRUE(settings->admin);
  EXPECT_EQ(settings->admin->endpoint.ToString(), "127.0.0.1:8081");
  EXPECT_EQ(settings->upstream.list.targets,
            (std::vector<net::StreamTarget>{{.host = "127.0.0.1", .port = 9000}}));
  EXPECT_EQ(settings->share.pool.capacity, 40u);
  EXPECT_EQ(settings->share.pool.cycle, seconds(10));
  EXPECT_EQ(settings->share.pool.reservation, (algorithm::Ratio{100, 1000}));
  EXPECT_EQ(settings->share.without_id, share::WithoutId::kRefuse);
  EXPECT_EQ(settings->share.mode, share::Mode::kEnforce);
  EXPECT_FALSE(settings->share.find_capacity);
  EXPECT_EQ(settings->proxy.application.client_field, "X-Client-Id");
  EXPECT_EQ(settings->proxy.application.cycle, seconds(10));
  EXPECT_TRUE(settings->proxy.application.describes_admitted);
  EXPECT_TRUE(settings->proxy.application.passes_preflights);
  EXPECT_TRUE(settings->proxy.relay.cors.origins.empty());
}

TEST(SidecarSettings, FlagsAreRead) {
  const auto [settings, err] = WithFlags({"--listen",
                                          ":8000",
                                          "--listen",
                                          "unix:/tmp/x",
                                          "--admin-listen",
                                          "none",
                                          "--capacity",
                                          "auto",
                                          "--reservation",
                                          "2.5%",
                                          "--client-header",
                                          "none",
                                          "--anonymous",
                                          "nobody",
                                          "--mode",
                                          "passthrough",
                                          "--cors-origin",
                                          "https://a.example",
                                          "--cors-origin",
                                          "https://b.example",
                                          "--preflights",
                                          "count",
                                          "--rate-limit-fields",
                                          "none",
                                          "--x-forwarded",
                                          "replace",
                                          "--forwarded",
                                          "append",
                                          "--via",
                                          "edge-1",
                                          "--no-reason",
                                          "--abandoned",
                                          "finish",
                                          "--threads",
                                          "4",
                                          "--upstream-connections",
                                          "100",
                                          "--lending",
                                          "max_min",
                                          "--reclaim",
                                          "at_once",
                                          "--on-new-client",
                                          "restart"});
  ASSERT_TRUE(settings) << err;
  EXPECT_EQ(settings->listen.size(), 2u);
  EXPECT_FALSE(settings->admin);
  EXPECT_TRUE(settings->share.find_capacity);
  EXPECT_EQ(settings->share.pool.reservation, (algorithm::Ratio{25, 1000}));
  EXPECT_EQ(settings->share.without_id, share::WithoutId::kShareOne);
  EXPECT_EQ(settings->share.anonymous, "nobody");
  EXPECT_EQ(settings->share.mode, share::Mode::kPassthrough);
  EXPECT_EQ(settings->share.pool.lending, algorithm::Lending::kMaxMin);
  EXPECT_EQ(settings->share.pool.reclaim, algorithm::Reclaim::kAtOnce);
  EXPECT_EQ(settings->share.pool.on_new_client, algorithm::OnNewClient::kRestart);
  EXPECT_EQ(settings->proxy.application.client_field, "");
  EXPECT_FALSE(settings->proxy.application.describes_admitted);
  EXPECT_EQ(settings->proxy.relay.cors.origins,
            (std::vector<std::string>{"https://a.example", "https://b.example"}));
  EXPECT_EQ(settings->proxy.relay.cors.dialect, wire::RateLimitDialect::kNone);
  EXPECT_FALSE(settings->proxy.application.passes_preflights);
  EXPECT_EQ(settings->proxy.application.forwarded.x_forwarded, proxy::Forwarding::kReplace);
  EXPECT_EQ(settings->proxy.application.forwarded.forwarded, proxy::Forwarding::kAppend);
  EXPECT_EQ(settings->proxy.application.forwarded.via, "edge-1");
  EXPECT_FALSE(settings->proxy.relay.says_reason);
  EXPECT_EQ(settings->values().abandoned, "finish");
  EXPECT_EQ(settings->proxy.upstreams.connections_max, 25u) << "of each loop";
  EXPECT_EQ(settings->proxy.application.preflights_max, 12u) << "half of them";
}

TEST(SidecarSettings, EachMistakeIsOneErrorWithAHint) {
  struct Case {
    std::vector<std::string> flags;
    std::string_view error;
  };
  for (const Case& c : {
           Case{{"--capacity", "many"}, "--capacity \"many\" is not a whole number"},
           Case{{"--capacity", "0"}, "a pool needs a capacity"},
           Case{{"--cycle", "0s"}, "--cycle: cycle '0s': write a duration from 1ms to 365d"},
           Case{{"--reservation", "10"}, "--reservation \"10\" is not a percentage"},
           Case{{"--reservation", "101%"}, "--reservation \"101%\" is not a percentage"},
           Case{{"--client-weight", "ann"}, "--client-weight \"ann\" has no '='"},
           Case{{"--client-weight", "=3"}, "--client-weight \"=3\" names no client"},
           Case{{"--client-weight", "ann=1025"},
                "--client-weight \"ann=1025\" does not end with a whole number from 1 to 1024"},
           Case{{"--client-weight", "a=b=1", "--client-weight", "a=b=2"},
                "--client-weight is given twice for \"a=b\""},
           Case{{"--minimum-cycle", "11s"}, "--minimum-cycle 11s is longer than --cycle 10s"},
           Case{{"--minimum-cycle", "0s"}, "--minimum-cycle \"0s\" is not a duration"},
           Case{{"--leave-after", "1000001"},
                "leave_after '1000001': write a whole number from 0 to 1000000"},
           Case{{"--limit-min", "8"}, "--limit-min and --limit-max need --capacity auto"},
           Case{{"--capacity", "auto", "--limit-min", "1"},
                "limit_min '1': write a whole number from 2 to 1048576"},
           Case{{"--capacity", "auto", "--limit-min", "9", "--limit-max", "8"},
                "--limit-min 9 and --limit-max 8 are not bounds"},
           Case{{"--capacity", "auto", "--limit-max", "1048577"},
                "limit_max '1048577': write a whole number from 2 to 1048576"},
           Case{{"--cors-origin", "null"}, "--cors-origin \"null\" stands for every page"},
           Case{{"--cors-origin", "https://a.example/"}, "is not an origin"},
           Case{{"--preflights", "free"}, "preflights 'free': write pass or count"},
           Case{{"--mode", "shadow"}, "mode 'shadow': write enforce or passthrough"},
           Case{{"--client-header", "a b"}, "--client-header \"a b\" is not the name of a field"},
           Case{{"--client-header", "host"}, "--client-header \"host\" belongs to a connection"},
           Case{{"--client-header", "TE"}, "--client-header \"TE\" belongs to a connection"},
           Case{{"--via", ""}, "--via \"\" is not a name"},
           Case{{"--via", "a:80"}, "--via \"a:80\" is not a name"},
           Case{{"--via", "a, 1.1 b"}, "--via \"a, 1.1 b\" is not a name"},
           Case{{"--via", std::string(256, 'a')}, "at most 255 of them"},
           Case{{"--tunnel-idle-timeout", "0s"}, "--tunnel-idle-timeout"},
           Case{{"--listen", "tls::8080"}, "--listen: 'tls::8080' needs a certificate"},
           Case{{"--listen", "8080"}, "--listen: address '8080': the port is missing"},
           Case{{"--upstream", "127.0.0.1:9000"},
                "does not begin with http://, h2c://, https:// or h2://"},
           Case{{"--upstream", "http://a:1,h2c://b:1"}, "all upstreams must have the same scheme"},
           Case{{"--threads", "1000"}, "threads '1000': write a whole number from 0 to 256"},
           Case{{"--rate-limit-fields", "draft-1"},
                "rate_limit_fields 'draft-1': write all, draft"},
           Case{{"--refusal-file", "/nonexistent/refusal.yaml"}, "--refusal-file: "},
           Case{{"--listen", ":8080?fields=github"},
                "--listen \":8080?fields=github\": an address has no fields"},
           Case{{"--credential-file", "/nowhere/x"}, "/nowhere/x"},
           Case{{"--handover", ""}, "--handover needs a path"},
           Case{{"--handover", std::string(104, 'a')}, "--handover has a path of 104 bytes"},
           Case{{"--handover", "a/b", "--listen", "unix:a/./b"}, "--handover names a socket for"},
           Case{{"--handover", "/b", "--admin-listen", "unix:/a/../b"},
                "--handover names a socket for clients"},
           Case{{"--upstream", "http://unix:"}, "the path of the Unix socket is missing"},
           Case{{"--upstream", "http://unix:" + std::string(300, 'a')}, "the path has 300 bytes"},
           Case{{"--upstream-resolve", "99ms"},
                "upstream_resolve '99ms': write a duration from 100ms to 1h"},
           Case{{"--upstream-resolve", "61m"},
                "upstream_resolve '61m': write a duration from 100ms to 1h"},
           Case{{"--check-interval", "199ms"},
                "check_interval '199ms': write a duration from 200ms to 365d"},
       }) {
    const auto [settings, err] = WithFlags(c.flags);
    EXPECT_FALSE(settings);
    EXPECT_THAT(err,
                AllOf(::testing::StartsWith("error: "), HasSubstr(c.error), HasSubstr("\nhint: ")));
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 2) << err;
  }
}

TEST(SidecarSettings, NameInVia) {
  const Read usual = WithFlags({});
  ASSERT_TRUE(usual.settings) << usual.err;
  EXPECT_EQ(usual.settings->proxy.application.forwarded.via, "headgate");
  EXPECT_EQ(usual.settings->proxy.relay.name, "headgate");
  EXPECT_EQ(WithFlags({"--via", "edge-1"}).settings->proxy.relay.name, "edge-1");
  EXPECT_EQ(WithFlags({"--via", "10.0.0.7"}).settings->proxy.relay.name, "\"10.0.0.7\"")
      << "no token of RFC 8941";
  EXPECT_EQ(WithFlags({"--via", "none"}).settings->proxy.relay.name, "headgate");
  const Read none = WithFlags({"--via", "none"});
  ASSERT_TRUE(none.settings) << none.err;
  EXPECT_EQ(none.settings->proxy.application.forwarded.via, "") << "Via is passed on";
}

TEST(SidecarSettings, WeightsAndCycles) {
  const auto [settings, err] =
      WithFlags({"--client-weight", "ann=3", "--client-weight=CN=bob=2", "--minimum-cycle", "2s",
                 "--leave-after", "3", "--scope", "fleet", "--store", "redis://127.0.0.1:6379"});
  ASSERT_TRUE(settings) << err;
  const share::ShareOptions& share = settings->share;
  ASSERT_EQ(share.weights.size(), 2u);
  EXPECT_EQ(share.weights[0].client, "ann");
  EXPECT_EQ(share.weights[0].weight, 3u);
  EXPECT_EQ(share.weights[1].client, "CN=bob");
  EXPECT_EQ(share.weights[1].weight, 2u);
  EXPECT_EQ(share.pool.minimum_cycle, seconds(2));
  EXPECT_EQ(share.pool.leave_after_cycles, 3u);
  const Read never = WithFlags({"--leave-after", "0"});
  ASSERT_TRUE(never.settings) << never.err;
  EXPECT_EQ(never.settings->share.pool.leave_after_cycles, 0u);
}

TEST(SidecarSettings, BoundsOfTheRequestsInFlight) {
  const auto [large, err] = WithFlags({"--capacity=auto", "--limit-min=20", "--limit-max=200"});
  ASSERT_TRUE(large && large->share.find_capacity) << err;
  EXPECT_EQ(large->share.find_capacity->limit_min, 20u);
  EXPECT_EQ(large->share.find_capacity->limit_max, 200u);
  EXPECT_EQ(large->share.find_capacity->limit_first, 20u);
  const Read small = WithFlags({"--capacity=auto", "--limit-max=4"});
  ASSERT_TRUE(small.settings) << small.err;
  EXPECT_EQ(small.settings->share.find_capacity->limit_first, 4u);
}

TEST(SidecarSettings, CapacityAndUpstreamAreNeeded) {
  std::ostringstream out;
  std::ostringstream err;
  EXPECT_FALSE(ReadSidecarSettings({"--capacity", "1"}, {}, {.out = out, .err = err}));
  EXPECT_THAT(err.str(), HasSubstr("--upstream: no upstream is given"));
  EXPECT_FALSE(ReadSidecarSettings({"--upstream", "http://a"}, {}, {.out = out, .err = err}));
  EXPECT_THAT(err.str(), HasSubstr("--capacity is not given"));
}

TEST(SidecarSettings, Rules) {
  const auto without = WithFlags({});
  ASSERT_TRUE(without.settings) << without.err;
  EXPECT_FALSE(without.settings->has_rules());
  EXPECT_EQ(without.settings->values().max_buckets, 1u) << "no memory for what is not counted";
  const auto [settings, err] =
      WithFlags({"--rules", "a.yaml", "--rules", "b", "--rule", "client: 1/second", "--mappings",
                 "map.yaml", "--max-buckets", "5000"});
  ASSERT_TRUE(settings) << err;
  EXPECT_TRUE(settings->has_rules());
  EXPECT_EQ(settings->values().rules, (std::vector<std::string>{"a.yaml", "b"}));
  EXPECT_EQ(settings->values().rule, std::vector<std::string>{"client: 1/second"});
  EXPECT_EQ(settings->values().mappings, "map.yaml");
  EXPECT_EQ(settings->values().max_buckets, 5000u);
  EXPECT_FALSE(settings->store);
  EXPECT_THAT(WithFlags({"--mappings", "map.yaml"}).err, HasSubstr("--mappings without rules"));
}

TEST(SidecarSettings, RulesInZooKeeper) {
  const auto [settings, err] =
      WithFlags({"--watch", "zk://127.0.0.1:2181/a", "--watch", "zk://127.0.0.1:2181/b",
                 "--watch-session-timeout", "10s", "--mappings", "map.yaml", "--merge-domains"});
  ASSERT_TRUE(settings) << err;
  EXPECT_EQ(settings->values().merge_domains, "yes");
  EXPECT_TRUE(settings->has_rules());
  EXPECT_EQ(settings->values().watch,
            (std::vector<std::string>{"zk://127.0.0.1:2181/a", "zk://127.0.0.1:2181/b"}));
  EXPECT_EQ(settings->values().watch_session_timeout, std::chrono::seconds(10));
  EXPECT_EQ(settings->values().max_buckets, Settings().max_buckets);
  EXPECT_THAT(WithFlags({"--watch", "rules.yaml"}).err,
              AllOf(HasSubstr("error: --watch: "), HasSubstr("files belong to --rules")));
  EXPECT_THAT(WithFlags({"--watch-copy", "copy.yaml"}).err,
              HasSubstr("--watch-copy without --watch"));
  EXPECT_THAT(WithFlags({"--watch", "zk://ann@a/x", "--watch-password-file", "/nowhere/pw"}).err,
              HasSubstr("error: --watch-password-file: "));
  EXPECT_THAT(WithFlags({"--watch-password-file", "pw"}).err,
              HasSubstr("--watch-password-file without --watch"));
  EXPECT_THAT(WithFlags({"--watch", "zk://a/x", "--watch-copy", "/nowhere/copy.yaml"}).err,
              HasSubstr("error: --watch-copy: "));
  EXPECT_THAT(
      WithFlags({"--watch", "zk://a/x", "--watch", "zk://a/y", "--watch-copy", "copy.yaml"}).err,
      AllOf(HasSubstr("error: --watch-copy: holds the rules of one place, and watch has 2"),
            HasSubstr("hint: give one --watch, or leave out --watch-copy")));
  EXPECT_THAT(WithFlags({"--watch", "ZK://ann:pw@h/x"}).err,
              AllOf(HasSubstr("error: --watch: 'ZK://(hidden)@h/x' is not a zk:// URL"),
                    Not(HasSubstr("pw"))));
  EXPECT_THAT(WithFlags({"--watch", "zk://a/x", "--plan", "access.log"}).err,
              HasSubstr("--plan with rules"));
}

TEST(SidecarSettings, StoreOfRules) {
  const auto with = [](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--rule", "client: 1/second", "--store"});
    return [flags](std::string url) {
      std::vector<std::string> all = flags;
      all.push_back(std::move(url));
      return WithFlags(all);
    };
  };
  const Read leased = with({"--store-timeout", "20ms"})("redis://127.0.0.1:6379");
  ASSERT_TRUE(leased.settings && leased.settings->store) << leased.err;
  EXPECT_EQ(leased.settings->values().store, "redis://127.0.0.1:6379");
  EXPECT_EQ(leased.settings->values().store_timeout, std::chrono::milliseconds(20));
  EXPECT_EQ(leased.settings->values().on_store_failure, "local");
  const Read strict = with({})("zk://127.0.0.1:2181/x");
  ASSERT_TRUE(strict.settings && strict.settings->store) << strict.err;
  EXPECT_EQ(strict.settings->values().on_store_failure, "deny");
  EXPECT_THAT(with({})("http://x").err, AllOf(HasSubstr("error: --store: "), HasSubstr("hint: ")));
  EXPECT_THAT(with({"--store-password-file", "/nowhere/x"})("redis://a").err,
              HasSubstr("error: --store-password-file: "));
  EXPECT_THAT(with({"--on-store-failure", "guess"})("redis://a").err,
              HasSubstr("--on-store-failure"));
  EXPECT_THAT(WithFlags({"--store", "redis://a"}).err, HasSubstr("--store without rules"));
  EXPECT_THAT(WithFlags({"--rule", "client: 1/second", "--store-timeout", "20ms"}).err,
              HasSubstr("--store-timeout without --store"));
  EXPECT_THAT(with({"--store-timeout", "1s", "--store-timeout", "2s"})("redis://a").err,
              HasSubstr("--store-timeout is given 2 times"));
}

TEST(SidecarSettings, AFleetSharesAPoolInAStore) {
  const auto [settings, err] =
      WithFlags({"--scope", "fleet", "--pool", "search", "--store", "redis://127.0.0.1:6379"});
  ASSERT_TRUE(settings) << err;
  EXPECT_EQ(settings->fleet_pool, "search");
  EXPECT_TRUE(settings->store);
  EXPECT_FALSE(settings->has_rules());
  EXPECT_EQ(settings->share.client_id_bytes_max, 64u);
  const Read again = WithFlags({"--scope", "fleet", "--pool", "search", "--store", "redis://a"});
  const Read other = WithFlags({"--scope", "fleet", "--store", "redis://a"});
  ASSERT_TRUE(again.settings && other.settings);
  EXPECT_EQ(other.settings->fleet_pool, "default");
  EXPECT_EQ(again.settings->share.secret, settings->share.secret) << "all instances have it";
  EXPECT_NE(other.settings->share.secret, settings->share.secret);
  EXPECT_EQ(WithFlags({}).settings->fleet_pool, "");

  EXPECT_THAT(WithFlags({"--scope", "fleet"}).err, HasSubstr("--scope fleet without --store"));
  EXPECT_THAT(WithFlags({"--scope", "planet"}).err, HasSubstr("--scope: "));
  EXPECT_THAT(WithFlags({"--pool", "x"}).err, HasSubstr("--pool without --scope fleet"));
  EXPECT_THAT(WithFlags({"--plan", "a.log", "--pool", "x"}).err,
              HasSubstr("--pool without --scope fleet"));
  const auto fleet = [](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--scope", "fleet", "--store", "redis://a"});
    return WithFlags(flags).err;
  };
  EXPECT_THAT(fleet({"--clients", "1025"}), HasSubstr("--clients is at most 1024"));
  EXPECT_THAT(fleet({"--pool", std::string(65, 'x')}), HasSubstr("--pool has from 1 to 64 bytes"));
}

// Read as `headgate serve` reads it: the same names, bounds and files.
TEST(SidecarSettings, TheStoreHasTheSettingsOfAServer) {
  const std::vector<std::string> rule = {"--rule", "client: 1/second"};
  const auto with = [&](std::vector<std::string> flags) {
    flags.insert(flags.end(), rule.begin(), rule.end());
    return WithFlags(std::move(flags));
  };
  const Read read = with({"--store", "rediss://a", "--store-breaker-open-max", "7s", "--sharing",
                          "exact", "--store-retry-percent", "3", "--store-server-name", "b"});
  ASSERT_TRUE(read.settings && read.settings->store) << read.err;
  EXPECT_EQ(read.settings->store->backend.calls.breaker.open_max, seconds(7));
  EXPECT_EQ(read.settings->store->backend.calls.retry_percent, 3u);
  EXPECT_EQ(read.settings->store->backend.server_name, "b");
  EXPECT_EQ(read.settings->values().sharing, "exact");
  EXPECT_THAT(with({"--store", "rediss://a", "--store-ca-file", "/nowhere/x"}).err,
              HasSubstr("error: --store-ca-file: "));
  EXPECT_THAT(with({"--store", "redis://a", "--sharing", "some"}).err,
              HasSubstr("error: --sharing: "));
  for (const Setting& setting : AllSettings()) {
    if (!IsOfStore(setting)) continue;
    EXPECT_THAT(with({FlagOf(setting) + "=x"}).err, Not(HasSubstr("unknown argument")))
        << setting.name;
  }
}

}  // namespace settings_test
}  // namespace headgate::app

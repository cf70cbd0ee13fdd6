"""A Redis loses, holds or refuses data while a fleet uses it: its keys, its scripts, foreign data
under our keys, and access rights."""

import os
import re
import unittest

from fleet import FleetTest, decided_alone
from fleet_rights import ACL_CLUSTER_COMMANDS, ACL_COMMANDS, ACL_KEYS
from harness import BINARY, Headgate, RedisSentinel, RedisServer, run, until, wait
from load import Load, check, throttle

# A burst of half a second, so that a machine that is busy for less than that loses nothing.
RATE, BURST = 2000, 1000
ALGORITHMS = {
    "bucket": "algorithm: token_bucket",
    "meter": "algorithm: leaky_bucket",
    "queue": "algorithm: leaky_bucket, queue: true",
    "window": "algorithm: fixed_window",
    "counter": "algorithm: sliding_window_counter",
    "log": "algorithm: sliding_window_log",
}
RULES = "domain: edge\ndescriptors:\n" + "".join(
    f"  - key: {name}\n    rate_limit: {{requests_per_unit: 50, unit: minute, {words}}}\n" for name, words in ALGORITHMS.items()
)
# Changes a byte of the bucket's state.
DAMAGE = """
local value = redis.pcall('GET', KEYS[1])
local is_log = type(value) == 'table'
if is_log then value = redis.call('LINDEX', KEYS[1], 0) end
value = string.sub(value, 1, 15) .. string.char((string.byte(value, 16) + 1) % 256) .. string.sub(value, 17)
if is_log then redis.call('LSET', KEYS[1], 0, value) else redis.call('SET', KEYS[1], value, 'KEEPTTL') end
return 16
"""


class FleetOnAStore(FleetTest):
    RULES = RULES

    def keys(self):
        return [key for key in self.redis.command("KEYS", "hg:{*").split("\n") if key]

    def undecided(self, instances):
        """Decisions that the store did not make, and calls that failed."""
        names = [f'headgate_store_calls_total{{outcome="{outcome}"}}' for outcome in ("denied", "failed", "refused")]
        return decided_alone(instances) + sum(instance.metric(name) for instance in instances for name in names)

    def test_each_loss_of_all_keys_adds_one_capacity(self):
        instances = [self.instance() for _ in range(2)]
        load = self.enterContext(Load(instances, {"hot": throttle("hot", BURST, RATE)}))
        for _ in range(3):
            wait(0.7)
            self.assertEqual(self.redis.command("FLUSHALL"), "OK")
        wait(0.7)
        load.stop()
        self.assertLessEqual(load.excess("hot", 4 * BURST, RATE), 0)
        self.assertGreater(load.admitted("hot"), 0.8 * RATE * load.took)
        self.assertEqual(self.undecided(instances), 0)

    def test_each_empty_restart_adds_one_capacity(self):
        instances = [self.instance("--on-store-failure", "deny") for _ in range(2)]
        load = self.enterContext(Load(instances, {"hot": throttle("hot", BURST, RATE)}, connections=2))
        for _ in range(2):
            wait(1)
            self.redis.kill()
            self.redis.start()
            before = load.admitted("hot")
            until(lambda: load.admitted("hot") > before + BURST, 20, "requests pass again")
        load.stop()
        self.assertLessEqual(load.excess("hot", 3 * BURST, RATE), 0)

    def test_every_key_expires(self):
        instances = [self.instance() for _ in range(2)]
        commands = {f"{name}{i}": check(name, f"{name}{i}") for i in range(20) for name in ALGORITHMS}
        commands["hot"] = throttle("hot", BURST, RATE)
        load = self.enterContext(Load(instances, commands, batch=10, connections=2, pause=0))
        wait(2)
        load.stop()
        keys = self.keys()
        self.assertGreater(len(keys), 100)
        for instance in instances:
            # Includes keys that are written when instances leave.
            instance.stop()
        lives = {key: int(self.redis.command("PTTL", key)) for key in [*keys, *self.keys(), "hg:instances"]}
        self.assertNotIn(-1, lives.values())
        # A bucket with a limit per minute expires after one minute, or two for the sliding counter,
        # and its leases.
        self.assertLessEqual(max(lives.values()), 125_000)

    def test_foreign_values_stay_and_on_store_failure_decides(self):
        for sharing in ("exact", "leased"):
            with self.subTest(sharing):
                instance = self.instance("--sharing", sharing)
                foreign = [
                    ("SET", "hello"), ("SET", ""), ("SET", "-1"), ("SET", "1e308"), ("SET", "\x01" * 29), ("SET", "x" * 100_000),
                    ("HSET", "a", "b"), ("LPUSH", "a", "b", "c"), ("RPUSH", ""), ("SADD", "a"), ("ZADD", "1", "a"), ("XADD", "*", "a", "b"),
                ]
                for i, (command, *words) in enumerate(foreign):
                    for name in ALGORITHMS:
                        self.redis.command(command, f"hg:{{r|edge|{name}={sharing}{i}#0}}", *words)
                        status, fields, _ = instance.check("edge", **{name: f"{sharing}{i}"})
                        self.assertEqual((status, fields["x-ratelimit-mode"]), (200, "local"), (name, command, words))
                damaged = instance.metric('headgate_store_bucket_events_total{event="damaged"}')
                self.assertEqual(damaged, len(foreign) * len(ALGORITHMS))
                self.assertIn("the value of a bucket is damaged", instance.errors())

    def test_a_damaged_value_gives_nobody_a_fresh_bucket(self):
        deny, local = (self.instance("--sharing", "exact", "--on-store-failure", policy) for policy in ("deny", "local"))
        for name in ALGORITHMS:
            with self.subTest(name):
                key = f"hg:{{r|edge|{name}=k#0}}"
                self.assertEqual(deny.check("edge", **{name: "k"})[0], 200)
                self.assertEqual(self.redis.command("EVAL", DAMAGE, "1", key), "16")
                for _ in range(2):
                    status, _, answer = deny.check("edge", **{name: "k"})
                    self.assertEqual(status, 503)
                    self.assertIn("the bucket in the shared store is damaged until a reset removes it, and rule", str(answer))
                self.assertEqual(local.check("edge", **{name: "k"})[1]["x-ratelimit-mode"], "local")
                shown = run(BINARY, "store", "show", f"redis://127.0.0.1:{self.redis.port}", key)
                self.assertEqual(shown.returncode, 2)
                self.assertIn("its checksum is wrong", shown.stderr)
                self.assertEqual(local.check("edge", path="/v1/reset", **{name: "k"})[0], 200)
                status, fields, _ = deny.check("edge", **{name: "k"})
                self.assertEqual((status, fields["x-ratelimit-mode"]), (200, "exact"))
        self.assertEqual(deny.metric('headgate_store_bucket_events_total{event="damaged"}'), 2 * len(ALGORITHMS))
        self.assertIn("the value of a bucket is damaged", deny.errors())

    def test_a_bucket_of_each_algorithm_can_be_shown(self):
        instance = self.instance("--sharing", "exact")
        for name in ALGORITHMS:
            for _ in range(3):
                self.assertEqual(instance.check("edge", **{name: "k"})[0], 200)
            shown = run(BINARY, "store", "show", f"redis://127.0.0.1:{self.redis.port}", f"hg:{{r|edge|{name}=k#0}}")
            self.assertEqual(shown.returncode, 0, (name, shown.stderr))
            remaining = int(re.search(r"^remaining +(\d+)$", shown.stdout, re.MULTILINE).group(1))
            self.assertIn(remaining, range(47, 51), (name, shown.stdout))
            self.assertRegex(shown.stdout, r"^limit +50 per 1m", name)

    def test_a_user_with_the_documented_rights_is_enough(self):
        user = f"on >sesame resetkeys {ACL_KEYS} {ACL_COMMANDS}"
        self.assertEqual(self.redis.command("ACL", "SETUSER", "headgate", *user.split()), "OK")
        server = f"127.0.0.1:{self.redis.port}"
        instances = [
            self.instance("--sharing", "exact", store=f"redis://headgate:sesame@{server}"),
            self.instance(
                "--sharing", "leased", "--store-password-file", self.write("password", "sesame\n"), store=f"redis://headgate@{server}"
            ),
        ]
        commands = {f"{name}{i}": check(name, f"{name}{i}") for i in range(3) for name in ALGORITHMS}
        commands["hot"] = throttle("hot", BURST, RATE)
        load = self.enterContext(Load(instances, commands, batch=10, connections=2))
        wait(1.5)
        self.redis.command("SCRIPT", "FLUSH")
        wait(0.5)
        load.stop()
        for path in ("/v1/refund", "/v1/reset"):
            for name in set(ALGORITHMS) - {"queue"}:
                self.assertEqual(instances[0].check("edge", path=path, **{name: name + "0"})[0], 200, (path, name))
        for instance in instances:
            until(lambda: instance.metric("headgate_instances") == 2, 10, "the instances know of each other")
            self.assertEqual(instance.metric("headgate_store_alarms_total"), 0, instance.errors())
        self.assertEqual(self.undecided(instances), 0)
        instances.pop().stop()
        until(lambda: instances[0].metric("headgate_instances") == 1, 10, "the stopped instance has left the list")
        refused = [line for line in self.redis.command("ACL", "LOG").split("\n") if line == "object"]
        self.assertEqual(refused, [], "the server refused something: ACL LOG")

    def set_rights(self, *rights):
        self.assertEqual(self.redis.command("ACL", "SETUSER", "headgate", *rights), "OK")

    def instance_with_least_rights(self, *args):
        self.set_rights(*f"on >sesame resetkeys {ACL_KEYS} {ACL_COMMANDS}".split())
        return self.instance(*args, store=f"redis://headgate:sesame@127.0.0.1:{self.redis.port}")

    def test_without_the_right_to_read_nothing_is_admitted(self):
        instance = self.instance_with_least_rights("--sharing", "exact", "--on-store-failure", "deny")
        for name, right in (("bucket", "get"), ("log", "lindex")):
            self.assertEqual(instance.check("edge", **{name: right})[0], 200)
            self.set_rights("-" + right)
            until(lambda name=name, right=right: instance.check("edge", **{name: right})[0] == 503, 10, "the store does not decide")
            self.assertEqual({instance.check("edge", **{name: right})[0] for _ in range(100)}, {503})
            self.set_rights("+" + right)
            self.assertEqual(instance.check("edge", **{name: right})[0], 200)
        self.assertEqual(instance.metric('headgate_store_bucket_events_total{event="damaged"}'), 0)
        self.assertGreaterEqual(instance.metric('headgate_store_bucket_events_total{event="script_failed"}'), 200)
        self.assertIn("store.script_failed", instance.errors())

    def test_instances_count_together_with_the_documented_rights(self):
        instances = [self.instance_with_least_rights() for _ in range(2)]

        def count(i, *options):
            words = ("redis-cli", "-p", str(instances[i % 2].port), "INCREX", "shared", *options)
            return run(*words).stdout.split()

        window = ("UBOUND", "3", "EX", "100", "ENX")
        self.assertEqual([count(i, *window) for i in range(5)], [["1", "1"], ["2", "1"], ["3", "1"], ["3", "0"], ["3", "0"]])
        self.assertEqual(count(0, "BYFLOAT", "0.1"), ["3.1", "0.1"])
        self.assertEqual(self.redis.command("GET", "hg:{c|shared}"), "3.1")
        self.assertTrue(90 <= int(self.redis.command("TTL", "hg:{c|shared}")) <= 100)
        pipeline = "".join(f"INCREX pipelined BYINT {i}\n" for i in range(200))
        result = run("redis-cli", "-p", str(instances[0].port), input=pipeline)
        self.assertEqual(result.stdout.split()[-2:], [str(199 * 200 // 2), "199"])
        self.assertEqual(run("redis-cli", "-p", str(instances[1].port), "DEL", "shared").stdout, "1\n")
        self.assertEqual(count(0), ["1", "1"])
        self.redis.kill()
        self.assertIn("ERR the shared store cannot be reached", run("redis-cli", "-p", str(instances[0].port), "INCREX", "shared").stdout)

    def test_a_heartbeat_that_is_refused_is_logged_once(self):
        instance = self.instance_with_least_rights()
        self.set_rights("-zcard")
        failed = 'headgate_store_bucket_events_total{event="script_failed"}'
        until(lambda: instance.metric(failed) >= 2, 20, "two heartbeats are refused")
        self.assertEqual(instance.errors().count("heartbeat.refused"), 1)
        self.assertNotIn("heartbeat.accepted", instance.errors())
        self.set_rights("+zcard")
        until(lambda: "heartbeat.accepted" in instance.errors(), 20, "a heartbeat is accepted")

    def test_keys_in_error_messages_of_the_store_are_not_logged(self):
        redis = self.enterContext(RedisServer("--rename-command", "EVALSHA", ""))
        instance = self.instance("--sharing", "exact", store=f"redis://127.0.0.1:{redis.port}")

        def failed():
            instance.check("edge", bucket="ann@example.org")
            return "store.script_failed" in instance.errors()

        until(failed, 10, "the log says that scripts fail")
        self.assertIn("EVALSHA", instance.errors())
        self.assertNotIn("example.org", instance.errors())

    def test_each_of_the_rights_is_in_the_guide(self):
        guide = os.path.join(os.path.dirname(__file__), "../../docs/guides/fleet.md")
        with open(guide, encoding="utf-8") as file:
            text = re.sub(r"[\\\s]+", " ", file.read())
        self.assertIn(f"{ACL_KEYS} {ACL_COMMANDS}", text)
        self.assertIn(f"`{ACL_CLUSTER_COMMANDS}`", text)

    def test_sentinels_have_a_login_of_their_own(self):
        self.redis.command("CONFIG", "SET", "requirepass", "of-the-server")
        sentinel = self.enterContext(
            RedisSentinel(
                f"sentinel monitor main 127.0.0.1 {self.redis.port} 1\nsentinel auth-pass main of-the-server\n"
                "requirepass of-the-sentinel\nuser headgate on >of-its-user -@all +hello +sentinel|get-master-addr-by-name\n"
            )
        )
        store = f"redis+sentinel://127.0.0.1:{sentinel.port}/main"
        server = ("--store-password-file", self.write("server", "of-the-server\n"))

        def modes(*args):
            instance = self.instance(*server, *args, store=store)
            return {instance.check("edge", bucket="k")[1]["x-ratelimit-mode"] for _ in range(2)}, instance.errors()

        password = ("--store-sentinel-password-file", self.write("sentinel", "of-the-sentinel\n"))
        self.assertEqual(modes(*password)[0], {"exact"})
        user = ("--store-sentinel-user", "headgate", "--store-sentinel-password-file", self.write("user", "of-its-user\n"))
        self.assertEqual(modes(*user)[0], {"exact"})
        # If the login is refused, the log says this without the password.
        found, errors = modes()
        self.assertEqual(found, {"local"})
        self.assertIn("NOAUTH", errors)
        self.assertNotIn("of-the-", errors)
        for args, what in ((user[:2], "a user of the sentinels needs a password"), (password, "a login for sentinels is given")):
            url = store if args is not password else f"redis://127.0.0.1:{self.redis.port}"
            refused = run(BINARY, "serve", "--listen", "127.0.0.1:0", "--admin-listen", "none", "--store", url, *args)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(what, refused.stderr)

    def test_a_replaced_password_is_used_by_the_next_connection(self):
        self.redis.command("CONFIG", "SET", "requirepass", "first")
        password = self.write("password", "first\n")
        instance = self.instance("--store-password-file", password)

        def mode():
            return instance.check("edge", bucket="k")[1]["x-ratelimit-mode"]

        until(lambda: mode() == "exact", 5, "the store decides")
        run("redis-cli", "-p", str(self.redis.port), "-a", "first", "CONFIG", "SET", "requirepass", "second")
        run("redis-cli", "-p", str(self.redis.port), "-a", "second", "CLIENT", "KILL", "TYPE", "normal")
        until(lambda: "WRONGPASS" in instance.errors(), 5, "the old password is refused")
        # It has used the store, so this is an outage, and it still serves.
        self.assertEqual(instance.request("GET", "/readyz")[0], 200)
        self.write("password", "second\n")
        until(lambda: mode() == "exact", 5, "the store decides again")

    def test_an_instance_that_the_store_never_let_in_is_not_ready(self):
        self.redis.command("CONFIG", "SET", "requirepass", "right")
        instance = self.instance("--store-password-file", self.write("password", "wrong\n"))

        def ready():
            return instance.request("GET", "/readyz")

        until(lambda: ready()[0] == 503, 5, "the login is refused")
        self.assertIn("refuses the login of user 'default' (WRONGPASS)", ready()[2])
        self.write("password", "right\n")
        until(lambda: ready()[0] == 200, 5, "the login is accepted")

    def test_all_problems_of_the_settings_are_reported_at_once(self):
        self.write("headgate.yaml", "store: rediss://headgate@127.0.0.1:1\nstore_ca_file: /not/there\nhash_keys: true\n")
        config = os.path.join(self.folder, "headgate.yaml")
        refused = run(BINARY, "serve", "--config", config, "--listen", "8080", "--credential-file", "/nor/this")
        self.assertEqual(refused.returncode, 2, refused.stderr)
        for what in (
            f"{config}:1:8: store: a user needs a password",
            f"{config}:2:16: store_ca_file: the CA file '/not/there' cannot be used",
            f"{config}:3:12: hash_keys: needs hash_keys_secret_file",
            "--listen: address '8080': the port is missing",
            "--credential-file: cannot open /nor/this: No such file or directory",
        ):
            self.assertIn(what, refused.stderr)

    def test_settings_without_effect_cause_a_warning(self):
        with Headgate("--strict-store", "yes", "--sharing", "exact") as alone:
            self.assertRegex(alone.errors(), 'warning settings.ignored settings="strict_store, sharing"')

    def test_shares_follow_the_configured_number_of_instances(self):
        instance = self.instance("--store-instances", "10", store="redis://127.0.0.1:1")
        statuses = [instance.check("edge", bucket="k")[0] for _ in range(7)]
        self.assertEqual(statuses, [200] * 5 + [429] * 2)  # limit 50 per minute

    def test_the_settings_of_the_breaker_apply(self):
        words = ("--store-timeout", "500ms", "--store-breaker-failures-in-row", "2", "--store-breaker-open-min", "1h")
        words += ("--store-breaker-open-max", "1h", "--threads", "1", "--sharing", "exact")
        instance = self.enterContext(Headgate("--rules", self.rules, "--store", f"redis://127.0.0.1:{self.redis.port}", *words))
        until(lambda: instance.check("edge", bucket="k")[1]["x-ratelimit-mode"] == "exact", 10, "the store is asked")
        self.redis.pause()
        self.addCleanup(self.redis.resume)
        opened = "headgate_store_breaker_opened_total"
        before = instance.metric(opened)
        # Two failures open the breaker; by default these two and a failed heartbeat would not.
        for _ in range(3):
            self.assertEqual(instance.check("edge", bucket="k")[1]["x-ratelimit-mode"], "local")
        self.assertEqual(instance.metric(opened), before + 1)
        self.assertEqual(instance.metric("headgate_store_breakers_open"), 1)

    def test_a_user_is_disabled_and_enabled_again(self):
        self.redis.command("ACL", "SETUSER", "headgate", "on", ">sesame42", ACL_KEYS, "+@all")
        instance = self.instance(store=f"redis://headgate:sesame42@127.0.0.1:{self.redis.port}")

        def mode():
            return instance.check("edge", cost=0, path="/v1/peek", bucket="k")[1]["x-ratelimit-mode"]

        until(lambda: mode() == "exact", 10, "the store is asked")
        self.redis.command("ACL", "SETUSER", "headgate", "off", "-@all")
        until(lambda: mode() == "local", 10, "without the store")
        wait(1.5)
        self.assertGreater(instance.metric("headgate_store_alarms_total"), 0)
        self.assertNotIn("sesame42", instance.errors())
        self.redis.command("ACL", "SETUSER", "headgate", "on", "+@all")
        until(lambda: {mode() for _ in range(16)} == {"exact"}, 15, "the store is asked again")


if __name__ == "__main__":
    unittest.main()

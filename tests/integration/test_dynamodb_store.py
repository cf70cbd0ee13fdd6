"""Strict buckets in DynamoDB, shared by real instances."""

import json
import os
import tempfile
import threading
import time
import unittest

from clocks import ShiftedClock
from dynamodb import KEYS, NO_KEYS, Door, Dynalite, Roles
from harness import BINARY, Headgate, run, until
from zookeeper import ZooKeeperServer

RULES = """domain: edge
descriptors:
  - key: api_key
    rate_limit: {requests_per_unit: 10, period: 20s, algorithm: fixed_window, align: first_hit}
  - key: day
    rate_limit: {requests_per_unit: 500, period: 8760h, algorithm: token_bucket}
  - key: paced
    rate_limit: {requests_per_unit: 2, period: 1s, algorithm: token_bucket, burst: 4}
  - key: hour
    rate_limit: {requests_per_unit: 1, period: 1h, algorithm: fixed_window, align: first_hit}
  - key: local
    rate_limit: {requests_per_unit: 10, period: 8760h, on_store_failure: local}
"""
AHEAD_SECONDS = 5
PACED_RATE, PACED_BURST = 2, 4
# DynamoDB tells its time to the second. One answer leaves half of a second to a clock that is corrected.
APART_SECONDS = 0.7


def statuses(instances, count, **entries):
    return [instances[i % len(instances)].check("edge", **entries)[0] for i in range(count)]


class DynamoDbTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.rules = os.path.join(self.folder, "edge.yaml")
        with open(self.rules, "w", encoding="utf-8") as file:
            file.write(RULES)

    def serve(self, url, *args, timeout="2s", env=None):
        """A busy machine must not look like a store that is away, so the timeout is long."""
        words = ["--rules", self.rules, "--store", url, "--threads", "2", "--store-timeout", timeout, *args]
        return self.enterContext(Headgate(*words, env={**NO_KEYS, **(KEYS if env is None else env)}))

    def fleet(self, url, *args, **options):
        instances = [self.serve(url, *args, **options) for _ in range(3)]
        for instance in instances:
            until(lambda: instance.metric("headgate_instances") == 3, 20, "all instances are counted")
            self.is_ready(instance)
        return instances

    def is_ready(self, instance):
        until(lambda: instance.request("GET", "/readyz")[0] == 200, 20, "it is ready")

    def make_table(self, url, env=None):
        done = run(BINARY, "store", "create-table", url, env={**os.environ, **NO_KEYS, **(KEYS if env is None else env)})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


class DynamoDbStore(DynamoDbTest):
    def setUp(self):
        super().setUp()
        self.dynamodb = self.enterContext(Dynalite(persistent=True))
        self.door = self.enterContext(Door(self.dynamodb))
        self.make_table(self.door.url())

    def test_ten_of_twenty(self):
        instances = self.fleet(self.door.url())
        for key in ("one", "two", "x" * 1_000, "☃/.."):
            self.assertEqual(statuses(instances, 20, api_key=key), [200] * 10 + [429] * 10, key)
        self.assertEqual(self.door.refused, [], "signatures")

    def test_ten_of_twenty_at_once(self):
        instances = self.fleet(self.dynamodb.url(), "--sharing", "exact", timeout="10s")
        given = []
        threads = [
            threading.Thread(target=lambda i=i: given.append(instances[i % 3].check("edge", api_key="k")[0])) for i in range(20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(given), [200] * 10 + [429] * 10)

    def test_instances_that_follow_the_same_rules_are_counted_too(self):
        """Beside the instances that are counted in the table."""
        zookeeper = self.enterContext(ZooKeeperServer())
        self.enterContext(Headgate("--watch", zookeeper.url()))
        instance = self.serve(self.door.url(), "--watch", zookeeper.url())
        until(lambda: instance.metric("headgate_watch_instances") == 2, 20, "both are counted with the rules")
        self.assertEqual(instance.metric("headgate_instances"), 2)

    def test_a_clock_that_is_ahead_of_anothers_is_an_alarm(self):
        ahead = ShiftedClock(self, self.folder)
        ahead.set(time_of_day=5)
        right = self.serve(self.door.url())
        self.serve(self.door.url(), env={**KEYS, **ahead.env})
        until(lambda: "ms or more ahead of this one's" in right.errors(), 60, "the alarm is raised")
        self.assertEqual(right.metric("headgate_store_alarms_total"), 1)

    def test_a_clock_that_is_seconds_ahead_lets_hardly_more_through(self):
        clock = ShiftedClock(self, self.folder)
        clock.set(time_of_day=AHEAD_SECONDS)
        ahead = self.serve(self.door.url(), "--sharing", "exact", env={**KEYS, **clock.env})
        right = self.serve(self.door.url(), "--sharing", "exact")
        for instance in (ahead, right):
            self.is_ready(instance)
        until(lambda: ahead.metric("headgate_store_clock_offset_seconds") > AHEAD_SECONDS / 2, 10, "the offset has been measured")
        self.assertIn("decisions are corrected by this", ahead.errors())
        self.assertNotIn("decisions are corrected by this", right.errors())
        begin = time.monotonic()
        passed = statuses([ahead, right], 100, paced="k").count(200)
        seconds = time.monotonic() - begin
        self.assertLessEqual(passed, PACED_BURST + PACED_RATE * (seconds + APART_SECONDS))
        # A window of an hour that the other instance has opened ends at the same time for both.
        self.assertEqual(statuses([ahead, right], 2, hour="k"), [200, 429])
        retry = [instance.check("edge", hour="k")[2]["decisions"][0]["retry_after_ms"] for instance in (ahead, right)]
        self.assertLess(abs(retry[0] - retry[1]), APART_SECONDS * 1000)

    def test_the_item(self):
        instance = self.serve(self.door.url(), "--sharing", "exact")
        self.is_ready(instance)
        self.assertEqual(instance.check("edge", day="k")[0], 200)
        items = self.dynamodb.call("Scan", TableName="limits")["Items"]
        (item,) = [item for item in items if item["name"]["S"] != "headgate-instances"]
        self.assertEqual(set(item), {"name", "state", "version", "expires"})
        self.assertIn("day", item["name"]["S"])
        # A year's bucket refills one of 500 in 17.5 hours; then it is full again.
        self.assertGreater(int(item["expires"]["N"]), 0)

    def test_throttling(self):
        instance = self.serve(self.door.url(), "--sharing", "exact")
        self.is_ready(instance)
        turns = iter(range(1_000_000))
        self.door.refuse = lambda action: "ProvisionedThroughputExceededException" if next(turns) % 2 else None
        self.assertEqual(statuses([instance], 20, api_key="k"), [200] * 10 + [429] * 10)
        self.assertGreater(instance.metric('headgate_store_calls_total{outcome="throttled"}'), 5)
        self.assertEqual(instance.metric("headgate_store_breaker_opened_total"), 0)
        # Nothing but throttling: requests are refused, and pauses bound the calls.
        self.door.refuse = lambda action: "ThrottlingException"
        before = len(self.door.actions)
        self.assertEqual(instance.check("edge", day="k")[0], 503)
        self.assertLess(len(self.door.actions) - before, 200)
        self.door.refuse = lambda action: None
        self.assertEqual(instance.check("edge", day="k")[0], 200)

    def test_lost_answers(self):
        """Each third connection breaks, before or after the call was carried out."""
        instances = self.fleet(self.door.url(), "--sharing", "exact")
        turns = iter(range(1_000_000))
        self.door.refuse = lambda action: "break" if next(turns) % 3 == 0 else None
        answers = statuses(instances, 60, api_key="k")
        self.assertEqual(answers.count(200), 10)
        self.assertEqual(set(answers) - {200, 429, 503}, set())

    def test_without_dynamodb(self):
        instances = self.fleet(self.door.url())
        self.assertEqual(statuses(instances, 4, day="k"), [200] * 4)
        self.dynamodb.kill()
        self.door.refuse = lambda action: "InternalServerError"
        for instance in instances:
            until(lambda: instance.check("edge", day="k")[0] == 503, 20, "requests are refused")
            # A rule that says so is decided alone.
            self.assertEqual(instance.check("edge", local="k")[0], 200)
            opens = lambda: instance.check("edge", day="k")[0] == 503 and instance.metric("headgate_store_breakers_open") > 0
            until(opens, 20, "a breaker opens")
            until(lambda: "store.unreachable" in instance.errors(), 5, "the log says so")
            self.assertEqual(instance.request("GET", "/readyz")[0], 200, "an outage is no wrong setting")
        self.dynamodb.start()
        self.door.refuse = lambda action: None
        for instance in instances:
            until(lambda: instance.check("edge", cost=0, day="k")[0] == 200, 20, "it is used again")
            until(lambda: instance.metric("headgate_store_breakers_open") == 0, 20, "its breakers are closed")
            self.assertIn("store.recovered", instance.errors())
        answer = instances[0].check("edge", day="k")[2]["decisions"][0]
        # Another instance may hold a small lease.
        self.assertLessEqual(answer["remaining"], 495)
        self.assertGreaterEqual(answer["remaining"], 495 - 500 // 32)

    def test_silence(self):
        instance = self.serve(self.dynamodb.url(), "--sharing", "exact", timeout="250ms")
        self.is_ready(instance)
        self.assertEqual(instance.check("edge", day="k")[0], 200)
        self.dynamodb.pause()
        self.assertEqual(instance.check("edge", day="k")[0], 503)
        self.dynamodb.resume()
        until(lambda: instance.check("edge", day="k")[0] == 200, 20, "it is used again")

    def test_leaving(self):
        instances = self.fleet(self.door.url())
        self.assertEqual(instances[0].stop(), 0)
        until(lambda: instances[1].metric("headgate_instances") == 2, 12, "the others know")

    def test_a_right_is_missing(self):
        self.door.refuse = lambda action: "AccessDeniedException"
        instance = self.serve(self.door.url())
        until(lambda: "AccessDeniedException" in instance.request("GET", "/readyz")[2], 20, "it says why")
        self.assertEqual(instance.request("GET", "/readyz")[0], 503)
        self.assertEqual(instance.check("edge", day="k")[0], 503)
        self.assertIn("store.alarm_raised", instance.errors())
        self.assertGreater(instance.metric('headgate_store_calls_total{outcome="denied"}'), 0)
        self.door.refuse = lambda action: None
        self.is_ready(instance)
        self.assertEqual(instance.check("edge", day="k")[0], 200)


class DynamoDbTable(DynamoDbTest):
    def setUp(self):
        super().setUp()
        self.dynamodb = self.enterContext(Dynalite())
        self.door = self.enterContext(Door(self.dynamodb))

    def test_a_missing_table(self):
        instance = self.serve(self.door.url())
        until(lambda: "create-table" in instance.request("GET", "/readyz")[2], 20, "it says what to do")
        status, _, text = instance.request("GET", "/readyz")
        self.assertEqual(status, 503)
        detail = json.loads(text)["detail"]
        self.assertIn("there is no table limits in eu-west-1", detail)
        self.assertEqual(instance.check("edge", day="k")[0], 503)
        self.assertIn("there is no table limits", instance.errors())
        # The command is in the message.
        command = detail.split("`")[1].split("'")
        self.assertEqual(command[0], "headgate store create-table ")
        self.assertIn("made the table limits in eu-west-1", self.make_table(command[1]))
        self.is_ready(instance)
        self.assertEqual(instance.check("edge", day="k")[0], 200)

    def test_making_it_again(self):
        self.assertIn("made", self.make_table(self.door.url()))
        self.assertIn("found", self.make_table(self.door.url()))
        described = self.dynamodb.call("DescribeTable", TableName="limits")["Table"]
        self.assertEqual(described["KeySchema"], [{"AttributeName": "name", "KeyType": "HASH"}])
        self.assertEqual(described["BillingModeSummary"]["BillingMode"], "PAY_PER_REQUEST")

    def test_another_table(self):
        self.dynamodb.call("CreateTable", TableName="limits", BillingMode="PAY_PER_REQUEST",
                           AttributeDefinitions=[{"AttributeName": "user", "AttributeType": "S"}],
                           KeySchema=[{"AttributeName": "user", "KeyType": "HASH"}])
        done = run(BINARY, "store", "create-table", self.door.url(), env={**os.environ, **NO_KEYS, **KEYS})
        self.assertEqual(done.returncode, 2)
        self.assertIn("a table limits with another key (user HASH", done.stderr)

    def test_wrong_words(self):
        for words, said in (
            (["create-table"], "takes the word create-table and a URL, or show"),
            (["drop-table", "dynamodb://limits"], "takes the word create-table and a URL, or show"),
            (["create-table", "redis://127.0.0.1"], "needs no table"),
            (["create-table", "dynamodb://limits"], "the region is missing"),
            (["create-table", "dynamodb://AK:hunter2@limits?region=x"], "credentials come from"),
            (["create-table", "dynamodb://limits?region=x", "--timeout", "soon"], "is not a duration"),
        ):
            done = run(BINARY, "store", *words, env={**os.environ, **NO_KEYS})
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(said, done.stderr)
            self.assertNotIn("hunter2", done.stderr)

    def test_no_server(self):
        done = run(BINARY, "store", "create-table", "dynamodb://limits?region=x&endpoint=http://127.0.0.1:1",
                   "--timeout", "5s", env={**os.environ, **NO_KEYS, **KEYS})
        self.assertEqual(done.returncode, 3, done.stderr)

    def test_wrong_keys(self):
        env = {**os.environ, **NO_KEYS, **KEYS, "AWS_SECRET_ACCESS_KEY": "hunter2"}
        done = run(BINARY, "store", "create-table", self.door.url(), env=env)
        self.assertEqual(done.returncode, 2)
        self.assertIn("SignatureDoesNotMatch", done.stderr)
        self.assertNotIn("hunter2", done.stderr)


class DynamoDbRoles(DynamoDbTest):
    def setUp(self):
        super().setUp()
        self.dynamodb = self.enterContext(Dynalite())
        self.door = self.enterContext(Door(self.dynamodb))
        self.make_table(self.door.url())

    def role(self, lasts):
        roles = self.enterContext(Roles(lasts))
        self.door.keys = roles.keys
        # The door knows each key that was given.
        give = roles.handle

        def handle(request, body):
            answer = give(request, body)
            self.door.keys = roles.keys
            return answer

        roles.handle = handle
        return roles

    def test_the_role_of_a_machine_is_renewed(self):
        roles = self.role(lasts=4)
        instance = self.serve(self.door.url(), "--sharing", "exact", env={
            "AWS_EC2_METADATA_DISABLED": "", "AWS_EC2_METADATA_SERVICE_ENDPOINT": roles.origin})
        self.is_ready(instance)
        until(lambda: self.assertEqual(instance.check("edge", day="k")[0], 200) or len(roles.given) >= 3, 20, "keys are renewed")
        self.assertEqual(self.door.refused, [])
        # Old ones are used until they expire, then requests are refused, and new ones end that.
        roles.is_away = True
        until(lambda: instance.check("edge", day="k")[0] == 503, 20, "they expire")
        self.assertIn("no credentials for DynamoDB", instance.errors())
        roles.is_away = False
        until(lambda: instance.check("edge", day="k")[0] == 200, 40, "there are new ones")

    def test_the_role_of_a_container(self):
        roles = self.role(lasts=3600)
        token = os.path.join(self.folder, "token")
        with open(token, "w", encoding="utf-8") as file:
            file.write("Bearer c\n")
        instance = self.serve(self.door.url(), env={"AWS_CONTAINER_CREDENTIALS_FULL_URI": roles.origin + "/container",
                                                    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token})
        self.is_ready(instance)
        self.assertEqual(instance.check("edge", day="k")[0], 200)
        self.assertEqual(self.door.refused, [])
        self.assertNotIn("store.alarm_raised", instance.errors())

    def test_the_shared_file(self):
        path = os.path.join(self.folder, "credentials")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"[dev]\naws_access_key_id = {KEYS['AWS_ACCESS_KEY_ID']}\n"
                       f"aws_secret_access_key = {KEYS['AWS_SECRET_ACCESS_KEY']}\n")
        instance = self.serve(self.door.url(profile="dev"), env={"AWS_SHARED_CREDENTIALS_FILE": path})
        self.is_ready(instance)
        self.assertEqual(instance.check("edge", day="k")[0], 200)

    def test_no_credentials(self):
        instance = self.serve(self.door.url(), env={})
        until(lambda: "no credentials for DynamoDB" in instance.request("GET", "/readyz")[2], 20, "it says so")
        self.assertEqual(instance.check("edge", day="k")[0], 503)
        self.assertIn("no credentials for DynamoDB", instance.errors())


class DynamoDbSettings(unittest.TestCase):
    def test_settings(self):
        url = "dynamodb://limits?region=eu-west-1"
        shown = run(BINARY, "serve", "--print-config", "--store", url).stdout
        for line in ("on_store_failure: deny", "store_timeout: 250ms", "store_connections: 16", "store_connect_timeout: 1s"):
            self.assertIn(line, shown)
        shown = run(BINARY, "serve", "--print-config", "--store", url, "--store-connect-timeout", "50ms").stdout
        self.assertIn("store_connect_timeout: 50ms", shown)
        done = run(BINARY, "serve", "--store", url, "--store-server-name", "x")
        self.assertEqual(done.returncode, 2)
        self.assertIn("DynamoDB has no use for it", done.stderr)
        done = run(BINARY, "serve", "--store", "dynamodb://AK:hunter2@limits?region=x")
        self.assertEqual(done.returncode, 2)
        self.assertNotIn("hunter2", done.stderr)


if __name__ == "__main__":
    unittest.main()

"""The admin API on real processes: rule files, and documents in ZooKeeper that three instances follow."""

import http.client
import http.server
import json
import os
import signal
import tempfile
import threading
import unittest
from urllib.parse import quote

from harness import BINARY, Headgate, run, until, wait
from resp import Replies, encode
from zookeeper import ZooKeeperServer

RULES = """# The limits of the shop.
domain: shop
descriptors:
  - key: user   # each user
    rate_limit:
      unit: day
      requests_per_unit: 10
"""


class Admin:
    """An operator's view of one instance."""

    def __init__(self, server):
        self.server = server

    def ask(self, method, path, body=None, **fields):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.admin_port, timeout=20)
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        connection.request(method, path, body=body, headers=headers)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        kind = response.getheader("Content-Type", "")
        return response.status, json.loads(text) if "json" in kind else text, response.getheader("ETag")

    def put(self, path, body, etag=None, **fields):
        condition = {"If_None_Match": "*"} if etag is None else {"If_Match": etag}
        return self.ask("PUT", path, body, **condition, **fields)

    def rules(self, verb, *words, **more):
        return run(BINARY, "rules", verb, "--server", f"127.0.0.1:{self.server.admin_port}", *words, **more)


class TopKeys(unittest.TestCase):
    def start(self, *more):
        server = self.enterContext(Headgate("--rule", "user: 2/day", *more, admin="127.0.0.1:0"))
        return server, Admin(server)

    def count(self, server, admin):
        """Asks for the list, and then sends requests until they are in it."""
        top = lambda: admin.ask("GET", "/v1/top?by=denials&count=1")[1]
        self.assertEqual((top()["seconds"], top()["keys"]), (0, []))

        def denied():
            for _ in range(5):
                server.check(user="ann|böb")
            return top()["keys"]

        until(denied, 10, "the key is in the list")
        return top()["keys"][0]

    def test_they_are_counted_while_somebody_asks(self):
        server, admin = self.start()
        key = self.count(server, admin)
        self.assertEqual(key["key"], "default|user=ann%7cb%c3%b6b")
        self.assertEqual((key["domain"], key["rule"], key["error"]), ("default", "user", 0))
        self.assertGreaterEqual(key["denied"], 1)
        self.assertEqual(key["count"], key["denied"])
        self.assertEqual(admin.ask("GET", "/v1/top?domain=default&rule=user")[0], 200)
        self.assertEqual(server.request("GET", "/v1/top")[0], 404, "only the admin address has it")

    def test_the_keys_of_cl_throttle_are_among_them(self):
        server, admin = self.start()
        top = lambda: admin.ask("GET", "/v1/top?rule=CL.THROTTLE")[1]["keys"]
        with server.connect() as connection:
            replies = Replies(connection)

            def shown():
                connection.sendall(encode("CL.THROTTLE", "ann", "0", "1", "86400"))
                replies.next()
                return top()

            until(shown, 10, "the key is in the list")
        key = top()[0]
        self.assertEqual((key["key"], key["domain"], key["rule"]), ("ann", "", "CL.THROTTLE"))

    def test_keys_are_hashed_if_a_setting_says_so(self):
        key = self.count(*self.start("--show-keys", "hashed"))
        self.assertRegex(key["key"], "^[0-9a-f]{16}$")

    def test_metrics_are_there_as_json(self):
        server, admin = self.start()
        server.check(user="ann")
        metrics = {one["name"]: one for one in admin.ask("GET", "/v1/metrics")[1]["metrics"]}
        self.assertEqual(
            metrics["headgate_decisions_total"]["series"],
            [{"labels": {"domain": "default", "rule": "user", "outcome": "allowed"}, "value": 1}],
        )


class Passthrough(unittest.TestCase):
    def start(self, *more):
        args = ("--rule", "user: 1/day", "--auth-header", "X-API-Key", "--rule", "api_key: 1/day")
        return self.enterContext(Headgate(*args, *more, admin="127.0.0.1:0"))

    def statuses(self, server):
        auth = server.request("GET", "/auth", headers={"X-API-Key": "k"})[0]
        with server.connect() as connection:
            connection.sendall(encode("CL.THROTTLE", "k", "0", "1", "86400"))
            return server.check(user="ann")[0], auth, Replies(connection).next()[0]

    def test_the_switch_of_the_admin_address_works_live_and_is_shown(self):
        server = self.start()
        admin = Admin(server)
        self.assertEqual(self.statuses(server), (200, 200, 0))
        self.assertEqual(self.statuses(server), (429, 429, 1))
        self.assertEqual(admin.ask("GET", "/v1/passthrough")[:2], (200, {"passthrough": False}))
        self.assertEqual(server.metric("headgate_passthrough"), 0)
        denied = 'headgate_decisions_total{domain="default",rule="user",outcome="denied"}'
        before = server.metric(denied)
        self.assertEqual(admin.ask("PUT", "/v1/passthrough")[:2], (200, {"passthrough": True}))
        self.assertEqual(self.statuses(server), (200, 200, 0))
        self.assertEqual(server.metric(denied), before + 1)
        self.assertEqual(server.metric("headgate_passthrough"), 1)
        self.assertIn("passthrough", admin.ask("GET", "/readyz")[1])
        self.assertIn("passthrough.began", server.errors())
        self.assertEqual(server.request("DELETE", "/v1/passthrough")[0], 404, "only the admin address has it")
        self.assertEqual(admin.ask("DELETE", "/v1/passthrough")[:2], (200, {"passthrough": False}))
        self.assertEqual(self.statuses(server), (429, 429, 1))
        self.assertNotIn("passthrough", admin.ask("GET", "/readyz")[1])
        self.assertIn("passthrough.ended", server.errors())

    def test_a_server_can_begin_with_it(self):
        server = self.start("--passthrough")
        for _ in range(3):
            self.assertEqual(self.statuses(server), (200, 200, 0))
        self.assertIn("passthrough.began", server.errors())

    def test_it_needs_the_right_admin(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        credential = os.path.join(folder, "credential")
        with open(credential, "w", encoding="utf-8") as file:
            file.write("secret\n")
        admin = Admin(self.start("--credential-file", credential))
        self.assertEqual(admin.ask("PUT", "/v1/passthrough")[0], 401)
        self.assertEqual(admin.ask("PUT", "/v1/passthrough", Authorization="Bearer secret")[0], 200)
        self.assertEqual(admin.ask("GET", "/v1/passthrough")[0], 401)


class AdminOfFiles(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.directory = os.path.join(self.folder, "rules.d")
        os.mkdir(self.directory)
        self.file = os.path.join(self.directory, "shop.yaml")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(RULES)
        self.log = os.path.join(self.folder, "audit.log")
        self.path = "/v1/documents/" + quote(self.file, safe="")

    def start(self, *more):
        server = self.enterContext(Headgate("--rules", self.directory, *more, admin="127.0.0.1:0"))
        return server, Admin(server)

    def notes(self):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as file:
            return [json.loads(line) for line in file]

    def limit(self, server):
        return server.check("shop", user="someone", cost=0)[2]["decisions"][0]["limit"]

    def test_a_change_is_checked_written_noted_and_in_force(self):
        server, admin = self.start("--audit-log", self.log)
        status, text, etag = admin.ask("GET", self.path)
        self.assertEqual((status, text), (200, RULES))
        for _ in range(3):
            server.check("shop", user="ann")
        wanted = RULES.replace("10", "20")
        status, answer, _ = admin.put(self.path + "?dry_run=true", wanted, etag)
        self.assertEqual(status, 200, answer)
        self.assertEqual([(c["change"], c["rule"], c["live_keys"]) for c in answer["changes"]], [("changed", "user", 1)])
        self.assertEqual(answer["changes_left_out"], 0)
        self.assertEqual(self.limit(server), 10)
        self.assertFalse(os.path.exists(self.log) and os.path.getsize(self.log))

        status, answer, new_etag = admin.put(self.path, wanted, etag)
        self.assertEqual((status, answer["changes_left_out"]), (200, 0), answer)
        until(lambda: self.limit(server) == 20, 5, "the new limit is in force")
        # Ann's requests are not forgotten.
        self.assertEqual(server.check("shop", user="ann", cost=0)[2]["decisions"][0]["remaining"], 17)
        with open(self.file, encoding="utf-8") as file:
            self.assertEqual(file.read(), wanted)
        self.assertEqual(admin.put(self.path, RULES, etag)[0], 412)
        notes = self.notes()
        self.assertEqual([note["outcome"] for note in notes], ["begun", "done"])
        self.assertEqual(notes[1]["old_text"], RULES)
        self.assertEqual(notes[1]["new_text"], wanted)
        self.assertEqual(f'"{notes[1]["new_version"]}"', new_etag)
        self.assertEqual(os.stat(self.log).st_mode & 0o777, 0o600)

        status, answer, _ = admin.ask("POST", "/v1/rollback", json.dumps({"document": self.file}))
        self.assertEqual(status, 200, answer)
        until(lambda: self.limit(server) == 10, 5, "the old limit is in force again")
        history = admin.ask("GET", "/v1/history?document=" + quote(self.file, safe=""))[1]["changes"]
        self.assertEqual([change["action"] for change in history], ["rollback", "put"])
        self.assertEqual(server.metric('headgate_rule_edits_total{outcome="done"}'), 2)
        self.assertIn("rules.edited", server.errors())

    def test_a_document_with_a_problem_is_refused_and_says_where(self):
        server, admin = self.start("--audit-log", self.log)
        etag = admin.ask("GET", self.path)[2]
        status, answer, _ = admin.put(self.path, RULES.replace("day", "fortnight"), etag)
        self.assertEqual(status, 422)
        self.assertEqual((answer["problems"][0]["place"], answer["problems"][0]["line"]), (self.file, 6))
        self.assertEqual(self.limit(server), 10)
        self.assertEqual(admin.put(self.path, RULES, None)[0], 412)
        self.assertEqual(admin.ask("PUT", self.path, RULES)[0], 428)
        self.assertEqual(admin.put("/v1/documents/%2Fetc%2Fpasswd", RULES, None)[0], 403)
        self.assertEqual(admin.ask("GET", "/v1/documents/%2Fetc%2Fpasswd")[0], 404)
        outside = quote(os.path.join(self.directory, "..", "x.yaml"), safe="")
        self.assertEqual(admin.put("/v1/documents/" + outside, RULES, None)[0], 403)
        self.assertEqual(admin.ask("GET", "/v1/limits/k")[0], 404)

    def test_documents_come_and_go_but_never_the_last_one(self):
        server, admin = self.start("--audit-log", self.log)
        self.assertEqual(admin.ask("DELETE", self.path, If_Match="*")[0], 409)
        other = "/v1/documents/" + quote(os.path.join(self.directory, "more.yaml"), safe="")
        status, answer, etag = admin.put(other, "domain: more\n", None)
        self.assertEqual(status, 201, answer)
        names = lambda: [d["name"] for d in admin.ask("GET", "/v1/documents")[1]["documents"] if d["in_force"]]
        until(lambda: len(names()) == 2, 5, "both are in force")
        self.assertEqual(admin.ask("DELETE", other, If_Match=etag)[0], 200)
        until(lambda: names() == [self.file], 5, "one is left")

    def document(self, name):
        return "/v1/documents/" + quote(os.path.join(self.directory, name), safe="")

    def test_a_change_has_to_fit_to_the_one_before_it(self):
        server, admin = self.start("--audit-log", self.log)
        self.assertEqual(admin.put(self.document("x.yaml"), "domain: more\n", None)[0], 201)
        status, answer, _ = admin.put(self.document("y.yaml"), "domain: more\n", None)
        self.assertEqual(status, 422, answer)
        # A domain that the change before has left is free, and one that it has made is there.
        self.assertEqual(admin.put(self.document("x.yaml"), "domain: other\n", "*")[0], 200)
        self.assertEqual(admin.put(self.document("y.yaml"), "domain: more\n", None)[0], 201)
        rule = '{"rate_limit": {"unit": "day", "requests_per_unit": 1}}'
        self.assertEqual(admin.put("/v1/rules/more/k", rule, None)[0], 201)
        self.assertEqual(admin.ask("GET", "/v1/rules/more/k")[0], 200)
        # Also if somebody else has just written a file.
        with open(os.path.join(self.directory, "z.yaml"), "w", encoding="utf-8") as file:
            file.write("domain: third\n")
        self.assertEqual(admin.put(self.document("w.yaml"), "domain: third\n", None)[0], 422)
        self.assertNotIn("rules.refused", server.errors())

    def test_of_two_commands_that_contradict_each_other_one_is_refused(self):
        server, admin = self.start("--audit-log", self.log)
        wanted = os.path.join(self.folder, "wanted.yaml")
        with open(wanted, "w", encoding="utf-8") as file:
            file.write("domain: more\n")
        ended = []

        def put(name):
            ended.append(admin.rules("put", os.path.join(self.directory, name), wanted, "--yes").returncode)

        threads = [threading.Thread(target=put, args=(f"{i}.yaml",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(ended), [0, 2, 2, 2])
        self.assertEqual(len(os.listdir(self.directory)), 2)
        self.assertNotIn("rules.refused", server.errors())
        self.assertEqual(server.stop(signal.SIGTERM), 0)
        self.start()

    def test_a_second_yaml_document_is_refused(self):
        server, admin = self.start("--audit-log", self.log)
        status, answer, _ = admin.put(self.path, RULES + "---\ndomain: more\n", "*")
        self.assertEqual(status, 422, answer)
        self.assertEqual((answer["problems"][0]["place"], answer["problems"][0]["line"]), (self.file, 8))

    def test_of_many_who_read_the_same_version_one_wins(self):
        server, admin = self.start("--audit-log", self.log)
        etag = admin.ask("GET", self.path)[2]
        statuses = []

        def change(number):
            statuses.append(admin.put(self.path, RULES.replace("10", str(number)), etag)[0])

        threads = [threading.Thread(target=change, args=(100 + i,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(statuses), [200] + 15 * [412])

    def test_without_an_audit_log_files_are_not_changed(self):
        server, admin = self.start()
        status, answer, _ = admin.put(self.path, RULES.replace("10", "20"), "*")
        self.assertEqual(status, 409, answer)
        self.assertIn("--audit-log PATH", answer["hint"])
        self.assertEqual(admin.ask("GET", "/v1/history")[0], 409)

    def test_web_pages_and_strangers_are_refused(self):
        server, admin = self.start("--audit-log", self.log)
        self.assertEqual(admin.put(self.path, "x", "*", Origin="http://evil.example")[0], 403)
        self.assertEqual(admin.put(self.path, "x", "*", Sec_Fetch_Site="cross-site")[0], 403)
        self.assertEqual(admin.put(self.path, "x", "*", Host="evil.example")[0], 421)
        self.assertEqual(admin.put(self.path, "x", "*", Content_Type="application/x-www-form-urlencoded")[0], 415)
        # The address for decisions does not change rules.
        self.assertEqual(server.request("PUT", self.path)[0], 404)

    def test_users_need_rights_and_are_named_in_the_log(self):
        password = run(BINARY, "hash-password", input="apple\n").stdout.strip()
        users = os.path.join(self.folder, "users")
        with open(users, "w", encoding="utf-8") as file:
            file.write(f"ann admin {password}\neve read {password}\n")
        server, admin = self.start("--audit-log", self.log, "--users-file", users)
        login = lambda user: {"Authorization": f"Bearer {user}:apple"}
        self.assertEqual(admin.ask("GET", "/v1/documents")[0], 401)
        self.assertEqual(admin.ask("GET", "/v1/documents", **login("eve"))[0], 200)
        wanted = RULES.replace("10", "20")
        self.assertEqual(admin.put(self.path, wanted, "*", **login("eve"))[0], 403)
        self.assertEqual(admin.put(self.path, wanted, "*", **login("ann"))[0], 200)
        self.assertEqual(self.notes()[-1]["user"], "ann")

    def test_who_logs_in_is_named_even_if_anybody_may_change_rules(self):
        password = run(BINARY, "hash-password", input="apple\n").stdout.strip()
        users = os.path.join(self.folder, "users")
        with open(users, "w", encoding="utf-8") as file:
            file.write(f"ann read {password}\n* admin -\n")
        server, admin = self.start("--audit-log", self.log, "--users-file", users)
        put = lambda limit, **login: admin.put(self.path, RULES.replace("10", str(limit)), "*", **login)[0]
        self.assertEqual(put(20, Authorization="Bearer ann:apple"), 200, "ann, with the rights of anybody")
        self.assertEqual(self.notes()[-1]["user"], "ann")
        self.assertEqual(put(30, Authorization="Bearer ann:pear"), 401)
        self.assertEqual(put(30), 200)
        self.assertEqual(self.notes()[-1].get("user", ""), "")
        self.assertEqual(server.metric('headgate_logins_total{result="wrong"}'), 1)

    def test_the_command_line_shows_a_diff_and_changes_what_is_asked(self):
        server, admin = self.start("--audit-log", self.log)
        self.assertIn(f"in force     {self.file}", admin.rules("list").stdout)
        self.assertEqual(admin.rules("get", self.file).stdout, RULES)
        wanted = os.path.join(self.folder, "wanted.yaml")
        with open(wanted, "w", encoding="utf-8") as file:
            file.write(RULES.replace("10", "20"))
        dry = admin.rules("put", self.file, wanted, "--dry-run")
        self.assertIn("-      requests_per_unit: 10\n+      requests_per_unit: 20\n", dry.stdout)
        self.assertIn("changed  shop user: 10 per 1d -> 20 per 1d", dry.stdout)
        for burst in (20, 30):
            rule = f"rate_limit: {{unit: day, requests_per_unit: 10, algorithm: token_bucket, burst: {burst}}}\n"
            put = admin.rules("put", "shop", "user=", "-", "--dry-run", input=rule)
            self.assertIn(f"-> 10 per 1d burst {burst} token bucket", put.stdout, put.stderr)
        for words, shown in (("plans: {gold: 500}", 'plans {"gold":500}'), ("block: 10m", 'block ["10m"]')):
            rule = f"rate_limit: {{unit: day, requests_per_unit: 10, algorithm: fixed_window, {words}}}\n"
            put = admin.rules("put", "shop", "user=", "-", "--dry-run", input=rule)
            self.assertIn(f"-> 10 per 1d {shown}", put.stdout, put.stderr)
        refused = admin.rules("put", self.file, wanted, input="")
        self.assertEqual(refused.returncode, 2)
        self.assertIn("--yes", refused.stderr)
        self.assertEqual(self.limit(server), 10)
        done = admin.rules("put", self.file, wanted, "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        until(lambda: self.limit(server) == 20, 5, "the new limit is in force")
        self.assertIn("nothing changes", admin.rules("put", self.file, wanted, "--yes").stdout)
        history = admin.rules("history", self.file).stdout
        self.assertIn(" put ", history)
        back = admin.rules("rollback", self.file, "--yes")
        self.assertEqual(back.returncode, 0, back.stderr)
        self.assertIn("+      requests_per_unit: 10\n", back.stdout)
        until(lambda: self.limit(server) == 10, 5, "the old limit is in force again")
        bad = admin.rules("put", self.file, "-", "--yes", input="domain: [")
        self.assertEqual(bad.returncode, 2)
        self.assertIn(f"{self.file}:2:1: ", bad.stderr)
        self.assertEqual(admin.rules("put", "/etc/passwd", wanted, "--yes").returncode, 2)
        self.assertEqual(admin.rules("forget").returncode, 2)
        nobody = run(BINARY, "rules", "list", "--server", "127.0.0.1:1")
        self.assertEqual(nobody.returncode, 3)

    def test_one_rule_changes_and_the_rest_of_the_file_stays_as_it_is(self):
        server, admin = self.start("--audit-log", self.log)
        status, text, etag = admin.ask("GET", "/v1/rules/shop/user")
        self.assertEqual(status, 200, text)
        self.assertIn("requests_per_unit: 10", text)
        wanted = json.dumps({"rate_limit": {"unit": "day", "requests_per_unit": 30}})
        status, answer, _ = admin.put("/v1/rules/shop/user", wanted, etag)
        self.assertEqual(status, 200, answer)
        until(lambda: self.limit(server) == 30, 5, "the new limit is in force")
        with open(self.file, encoding="utf-8") as file:
            self.assertEqual(file.read(), RULES.replace("10", "30"))
        status, answer, _ = admin.put("/v1/rules/shop/user=ann", wanted, None)
        self.assertEqual(status, 201, answer)
        self.assertEqual([(c["change"], c["rule"]) for c in answer["changes"]], [("added", "user_ann")])
        self.assertEqual(admin.put("/v1/rules/shop/user=ann", wanted, None)[0], 412)
        self.assertEqual(admin.ask("DELETE", "/v1/rules/shop/user=ann", If_Match="*")[0], 200)
        self.assertEqual(admin.ask("GET", "/v1/rules/shop/user=ann")[0], 404)
        self.assertEqual(admin.ask("GET", "/v1/rules/nowhere/user")[0], 404)
        with open(self.file, encoding="utf-8") as file:
            self.assertEqual(file.read(), RULES.replace("10", "30"))
        self.assertEqual(admin.put("/v1/rules/shop/user", "[", "*")[0], 422)
        self.assertEqual(admin.put("/v1/rules/shop/user", '{"rate_limit": {"unit": "eon"}}', "*")[0], 422)

    def test_a_limit_is_rolled_out_step_by_step(self):
        server, admin = self.start("--audit-log", self.log)
        limits = os.path.join(self.folder, "limits.yaml")
        with open(limits, "w", encoding="utf-8") as file:
            file.write("rate_limit: {unit: day, requests_per_unit: 3}\n")

        def rollout(*words):
            done = admin.rules("rollout", "shop", "user=", *words, "--yes")
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        def share():
            decisions = [server.check(path="/v1/peek", domain="shop", user=f"u{i}")[2]["decisions"][0] for i in range(200)]
            return sum(decision["limit"] == 3 for decision in decisions)

        self.assertIn("shadow: true", rollout("--shadow", limits))
        series = lambda current, new: server.metric(
            f'headgate_rollout_decisions_total{{domain="shop",rule="user",current="{current}",rollout="{new}"}}'
        )
        until(lambda: admin.ask("GET", "/v1/rules")[1]["rules"][0]["rollout"], 5, "the roll-out is in force")
        for _ in range(5):
            self.assertEqual(server.check("shop", user="ann")[0], 200)
        self.assertEqual((series("allowed", "allowed"), series("allowed", "denied")), (3, 2))
        rollout("--percent", "25", limits)
        until(lambda: 20 < share() < 80, 5, "a quarter of the keys")
        part = share()
        server.stop(signal.SIGTERM)
        server, admin = self.start("--audit-log", self.log)
        self.assertEqual(share(), part, "the same keys after a restart")
        rollout("--percent", "100")
        until(lambda: share() == 200, 5, "all keys")
        rollout("--stop")
        until(lambda: share() == 0, 5, "taken back")
        with open(self.file, encoding="utf-8") as file:
            self.assertEqual(file.read(), RULES)
        rollout("--percent", "1", limits)
        rollout("--promote")
        until(lambda: share() == 200, 5, "promoted")
        with open(self.file, encoding="utf-8") as file:
            self.assertEqual(file.read(), RULES.replace("10", "3"))
        again = admin.rules("rollout", "shop", "user=", "--promote", "--yes")
        self.assertEqual(again.returncode, 2)
        self.assertIn("no roll-out", again.stderr)

    def test_the_limits_of_a_roll_out_may_be_written_in_any_style(self):
        _, admin = self.start("--audit-log", self.log)
        file = os.path.join(self.folder, "limits.yaml")
        limit = "rate_limit: {unit: day, requests_per_unit: 3}\n"

        def rollout(text, *words):
            with open(file, "w", encoding="utf-8") as out:
                out.write(text)
            return admin.rules("rollout", "shop", "user=", "--dry-run", *(words or ("--percent", "5")), file)

        for text in (limit, "---\n" + limit, "\ufeff" + limit, "   " + limit, "- " + limit, "key: user\n" + limit):
            done = rollout(text)
            self.assertEqual(done.returncode, 0, text + done.stderr)
            self.assertIn("10 per 1d -> 10 per 1d (5 % of the keys: 3 per 1d)", done.stdout, text)
        for text in (limit + "---\n" + limit, "descriptors: []\n" + limit, "5"):
            refused = rollout(text)
            self.assertEqual(refused.returncode, 2, text)
            self.assertIn(f"{file}:", refused.stderr)
        refused = rollout(limit, "--percent", "5, rate_limit: 1")
        self.assertIn("is not a percentage, such as 5 or 0.1", refused.stderr)

    def test_a_flag_of_another_subcommand_is_wrong_usage(self):
        server, admin = self.start("--audit-log", self.log)
        limits = os.path.join(self.folder, "limits.yaml")
        with open(limits, "w", encoding="utf-8") as file:
            file.write("rate_limit: {unit: day, requests_per_unit: 3}\n")
        for words in (
            ("put", "shop", "user=", limits, "--percent", "5", "--yes"),
            ("put", "shop", "user=", limits, "--shadow", "--yes"),
            ("delete", "shop", "user=", "--percent", "5", "--yes"),
            ("rollback", self.file, "--stop", "--yes"),
            ("rollout", "--key", "k", "--stop", "--yes"),
            ("list", "--promote"),
            ("list", "--key", "x"),
            ("get", self.file, "--json"),
            ("history", "--yes"),
            ("confirm", "--dry-run"),
        ):
            refused = admin.rules(*words)
            self.assertEqual(refused.returncode, 2, words)
            self.assertIn(f"`headgate rules {words[0]}` has no --", refused.stderr)
            self.assertIn("is a flag of ", refused.stderr)
        with open(self.file, encoding="utf-8") as file:
            self.assertEqual(file.read(), RULES)

    def test_an_answer_that_is_not_headgates_is_said_to_be_none(self):
        answer = b""

        class Foreign(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.wfile.write(answer)

            do_PUT = do_POST = do_DELETE = do_GET

            def log_message(self, *_):
                pass

        foreign = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Foreign)
        threading.Thread(target=foreign.serve_forever, daemon=True).start()
        self.addCleanup(foreign.server_close)
        self.addCleanup(foreign.shutdown)
        address = f"127.0.0.1:{foreign.server_address[1]}"
        for status, body in (
            ("200 OK", "<html>hi"),
            ("200 OK", "{"),
            ("200 OK", "[]"),
            ("200 OK", "{}"),
            ("200 OK", '{"documents":5,"changes":5,"diff":5,"confirmed":5}'),
            ("200 OK", '{"documents":[{"name":7}],"problems":[],"changes":[7]}'),
            ("200 OK", "[" * 100_000),
            ("204 No Content", ""),
            ("302 Found", ""),
            ("404 Not Found", "<html>"),
        ):
            answer = f"HTTP/1.0 {status}\r\n\r\n{body}".encode()
            for words in (
                ("list",),
                ("get", "x"),
                ("put", "x", self.file, "--yes"),
                ("delete", "x", "--yes"),
                ("history",),
                ("rollback", "x", "--yes"),
                ("rollout", "shop", "user=", "--stop", "--yes"),
                ("confirm",),
            ):
                for more in ((), ("--json",)) if words[0] != "get" else ((),):
                    said = run(BINARY, "rules", *words, *more, "--server", address)
                    self.assertEqual(said.returncode, 3, (status, body[:20], words, said.stderr))
                    self.assertEqual(said.stdout, "")
                    self.assertIn("not from Headgate", said.stderr)

    def test_a_change_of_the_algorithm_is_named(self):
        server, admin = self.start("--audit-log", self.log)
        wanted = os.path.join(self.folder, "wanted.yaml")
        with open(wanted, "w", encoding="utf-8") as file:
            file.write("rate_limit: {unit: day, requests_per_unit: 12, strict: true}\n")
        dry = admin.rules("put", "shop", "user=", wanted, "--dry-run")
        self.assertIn("user: 10 per 1d fixed window -> 12 per 1d token bucket", dry.stdout, dry.stderr)
        # So is every other word of the rule.
        self.assertIn(", sharing none -> strict", dry.stdout)

    def test_a_stop_waits_for_changes_that_are_under_way(self):
        server, admin = self.start("--audit-log", self.log)
        statuses = []

        def change(number):
            try:
                statuses.append(admin.put(self.path, RULES.replace("10", str(number)), "*")[0])
            except OSError:
                pass  # the change came after the listener had closed

        threads = [threading.Thread(target=change, args=(i + 100,)) for i in range(20)]
        for thread in threads:
            thread.start()
        self.assertEqual(server.stop(signal.SIGTERM), 0)
        for thread in threads:
            thread.join()
        self.assertLessEqual(set(statuses), {200, 503})
        notes = self.notes()
        self.assertEqual(len([n for n in notes if n["outcome"] == "done"]), statuses.count(200))


class AdminOfZooKeeper(unittest.TestCase):
    """Three instances that follow one ensemble; each may be asked for a change."""

    def setUp(self):
        self.zookeeper = self.enterContext(ZooKeeperServer())
        self.operator = self.zookeeper.client()
        self.addCleanup(self.operator.close)
        self.addCleanup(self.operator.stop)
        for path in ("config", "rules"):
            self.operator.ensure_path("/rate-limiter/" + path)
        self.operator.create("/rate-limiter/rules/shop", RULES.encode())
        words = ("--watch", self.zookeeper.url(), "--watch-session-timeout", "1s")
        self.servers = [self.enterContext(Headgate(*words, admin="127.0.0.1:0")) for _ in range(3)]
        self.admins = [Admin(server) for server in self.servers]
        for server in self.servers:
            until(lambda s=server: s.request("GET", "/readyz")[0] == 200, 10, "it is ready")

    def limits(self, domain="shop", **entries):
        answers = [server.check(path="/v1/peek", domain=domain, **entries) for server in self.servers]
        return {answer[2]["decisions"][0].get("limit") for answer in answers}

    def test_a_change_at_one_instance_comes_to_all(self):
        path = "/v1/documents/%2Frate-limiter%2Frules%2Fshop"
        etag = self.admins[0].ask("GET", path)[2]
        status, answer, _ = self.admins[1].put(path, RULES.replace("10", "20"), etag)
        self.assertEqual(status, 200, answer)
        until(lambda: self.limits(user="u") == {20}, 2, "all have it")
        self.assertEqual(self.operator.get("/rate-limiter/rules/shop")[0].decode(), RULES.replace("10", "20"))
        self.assertEqual(self.admins[2].put(path, RULES, etag)[0], 412)
        # By hand meanwhile: the version that was read is no longer there.
        etag = self.admins[2].ask("GET", path)[2]
        self.operator.set("/rate-limiter/rules/shop", RULES.replace("10", "5").encode())
        self.assertEqual(self.admins[2].put(path, RULES, etag)[0], 412)
        # Any instance knows the history, and any may roll back.
        changes = self.admins[2].ask("GET", "/v1/history")[1]["changes"]
        self.assertEqual([(c["action"], c["outcome"]) for c in changes], [("put", "done")])
        self.assertEqual(len(self.operator.get_children("/rate-limiter/audit")), 1)
        body = json.dumps({"document": "/rate-limiter/rules/shop"})
        self.assertEqual(self.admins[0].ask("POST", "/v1/rollback", body)[0], 200)
        until(lambda: self.limits(user="u") == {10}, 2, "all are back")

    def test_a_change_has_to_fit_to_the_one_before_it(self):
        document = lambda name: "/v1/documents/" + quote("/rate-limiter/rules/" + name, safe="")
        for number in range(6):
            # Asked of one instance or of two.
            first, second = self.admins[0], self.admins[number % 2]
            self.assertEqual(first.put(document(f"x{number}"), f"domain: d{number}\n", None)[0], 201)
            status, answer, _ = second.put(document(f"y{number}"), f"domain: d{number}\n", None)
            self.assertEqual(status, 422, answer)
            rule = '{"rate_limit": {"unit": "day", "requests_per_unit": 1}}'
            self.assertEqual(second.put(f"/v1/rules/d{number}/k", rule, None)[0], 201)

    def test_limits_of_keys(self):
        admin = self.admins[0]
        status, answer, _ = admin.put("/v1/limits/gold%2F1", '{"Limit": 10, "WindowSeconds": 20}', None)
        self.assertEqual(status, 201, answer)
        until(lambda: self.limits("default", api_key="gold/1") == {10}, 2, "all have it")
        self.assertTrue(self.operator.exists("/rate-limiter/config/gold%2F1"))
        status, answer, _ = admin.put("/v1/limits/gold%2F1", '{"Limit": -1}', "*")
        self.assertEqual(status, 422, answer)
        done = self.admins[1].rules("put", "--key", "gold/1", "-", "--yes", input='{"Limit": 15, "WindowSeconds": 20}')
        self.assertEqual(done.returncode, 0, done.stderr)
        until(lambda: self.limits("default", api_key="gold/1") == {15}, 2, "all have the next one")
        history = self.admins[2].rules("history", "--key", "gold/1").stdout.splitlines()
        self.assertEqual(len(history), 2, history)
        back = self.admins[2].rules("rollback", "--key", "gold/1", "--yes")
        self.assertEqual(back.returncode, 0, back.stderr)
        until(lambda: self.limits("default", api_key="gold/1") == {10}, 2, "all are back")
        self.assertEqual(admin.ask("DELETE", "/v1/limits/gold%2F1", If_Match="*")[0], 200)
        until(lambda: self.limits("default", api_key="gold/1") == {None}, 2, "it is gone everywhere")
        self.assertEqual(admin.put("/v1/limits/..", "{}", None)[0], 422)

    def test_two_admins_at_once(self):
        path = "/v1/documents/%2Frate-limiter%2Frules%2Fshop"
        etag = self.admins[0].ask("GET", path)[2]
        statuses = []

        def change(number):
            statuses.append(self.admins[number % 3].put(path, RULES.replace("10", str(100 + number)), etag)[0])

        threads = [threading.Thread(target=change, args=(i,)) for i in range(9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(statuses), [200] + 8 * [412])

    def test_keys_that_are_deleted_with_the_command_are_gone_everywhere(self):
        """However many, and without an alarm; by hand the same is one."""
        limit = b'{"Limit": 10, "WindowSeconds": 20}'
        kept = lambda: [server.metric("headgate_watch_kept_documents") for server in self.servers]
        for i in range(20):
            self.operator.create(f"/rate-limiter/config/key-{i}", limit)
        until(lambda: self.limits("default", api_key="key-19") == {10}, 5, "the keys are in force")
        for i in range(10):
            done = self.admins[i % 3].rules("delete", "--key", f"key-{i}", "--yes")
            self.assertEqual(done.returncode, 0, done.stderr)
        for i in range(10):
            until(lambda: self.limits("default", api_key=f"key-{i}") == {None}, 2, f"key-{i} is gone everywhere")
        self.assertEqual(kept(), [0, 0, 0])
        for i in range(12):
            self.operator.create(f"/rate-limiter/config/short-{i}", limit)
            until(lambda: self.limits("default", api_key=f"short-{i}") == {10}, 5, "it is in force")
            self.operator.delete(f"/rate-limiter/config/short-{i}")
            until(lambda: self.limits("default", api_key=f"short-{i}") == {None}, 2, "it is gone again")
        self.assertEqual(kept(), [0, 0, 0])
        wait(10)  # younger documents may go
        for i in range(10, 15):
            self.operator.delete(f"/rate-limiter/config/key-{i}")
        until(lambda: kept() == [5, 5, 5], 5, "half of ten are kept")
        self.assertEqual(self.limits("default", api_key="key-10"), {10})
        # A kept document cannot be deleted once more, and the command says so.
        done = self.admins[0].rules("delete", "--key", "key-10", "--yes")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("stays in force, because that looked like an accident", done.stderr)
        # Meanwhile another one may go.
        done = self.admins[0].rules("delete", "--key", "key-19", "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        until(lambda: self.limits("default", api_key="key-19") == {None}, 2, "it is gone everywhere")

    def test_deletions_that_were_meant_are_confirmed(self):
        # One after the other, as most tools delete: the document goes first.
        self.operator.delete("/rate-limiter/rules/shop")
        until(lambda: self.limits(user="u") == {None}, 5, "the rule is gone for a moment")
        self.operator.delete("/rate-limiter/rules")
        kept = lambda: [server.metric("headgate_watch_kept_documents") for server in self.servers]
        until(lambda: kept() == [1, 1, 1], 5, "the rule is kept")
        self.assertEqual(self.limits(user="u"), {10})
        for admin in self.admins:
            # A busy machine can take too long to note it; then nothing is confirmed.
            until(lambda: admin.rules("confirm").returncode == 0, 20, "it is confirmed")
        until(lambda: kept() == [0, 0, 0] and self.limits(user="u") == {None}, 5, "the rule is gone")
        done = self.admins[0].rules("confirm")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("nothing waits for a confirmation", done.stderr)

    def test_while_the_ensemble_is_away_nothing_is_changed(self):
        path = "/v1/documents/%2Frate-limiter%2Frules%2Fshop"
        etag = self.admins[0].ask("GET", path)[2]
        self.zookeeper.kill()
        status, answer, _ = self.admins[0].put(path, RULES.replace("10", "20"), etag)
        self.assertIn(status, (503, 504), answer)
        self.assertEqual(self.limits(user="u"), {10})
        self.zookeeper.start()
        until(lambda: self.admins[0].ask("GET", path)[0] == 200, 20, "it is back")
        self.assertEqual(self.limits(user="u"), {10})


if __name__ == "__main__":
    unittest.main()

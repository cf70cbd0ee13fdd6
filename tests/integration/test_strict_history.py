"""The answers of strict limits are those of one bucket, though instances and servers are killed under
load: in DynamoDB and in ZooKeeper."""

import os
import tempfile
import unittest

from dynamodb import KEYS, NO_KEYS, Dynalite
from harness import BINARY, Headgate, run, until
from strict_history import REQUESTS, RULES, Recorded
from zookeeper import ZooKeeperServer


class StrictHistory(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.rules = os.path.join(folder, "edge.yaml")
        with open(self.rules, "w", encoding="utf-8") as file:
            file.write(RULES)

    def serve(self, url):
        words = ["--rules", self.rules, "--store", url, "--threads", "2", "--store-timeout", "2s"]
        instance = self.enterContext(Headgate(*words, env={**NO_KEYS, **KEYS}))
        until(lambda: instance.check("edge", path="/v1/peek", strict="other")[0] == 200, 20, "it is ready")
        return instance

    def check_history(self, url, server):
        instances = [self.serve(url) for _ in range(3)]
        load = self.enterContext(Recorded(instances))
        until(lambda: load.admitted() > 60, 20, "there is load")
        for place in (0, 1):
            instances[place].process.kill()
            before = list(load.answered)
            others = [i for i in range(3) if i != place]
            until(lambda: all(load.answered[i] > before[i] + 5 for i in others), 20, "the others continue")
            instances[place] = self.serve(url)
            until(lambda: load.answered[place] > before[place] + 5, 20, "it is used again")
        server.kill()
        lost = load.lost()
        until(lambda: load.lost() > lost, 20, "requests are refused")
        server.start()
        before = list(load.answered)
        until(lambda: all(now > then + 10 for now, then in zip(load.answered, before)), 20, "the store is used again")
        refunded = lambda: sum(kind == "refund" for kind, *_ in load.history)
        until(lambda: load.admitted() > REQUESTS, 40, "the bucket has been empty")
        load.stop()
        self.assertLessEqual(load.admitted(), REQUESTS + refunded())
        self.assertGreater(load.lost(), 0, "the premise")
        self.assertEqual(load.contradiction(), "")
        # The check can fail: an answer that was given a second time is found.
        given = next(entry for entry in load.history if entry[0] == "take" and entry[3] and entry[3][0])
        load.history.append(given)
        self.assertIn("no order explains", load.contradiction())

    def test_in_dynamodb(self):
        server = self.enterContext(Dynalite(persistent=True))
        done = run(BINARY, "store", "create-table", server.url(), env={**os.environ, **NO_KEYS, **KEYS})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.check_history(server.url(), server)

    def test_in_zookeeper(self):
        server = self.enterContext(ZooKeeperServer())
        self.check_history(server.url(), server)


if __name__ == "__main__":
    unittest.main()

"""The common set-up of tests of a fleet: a folder with rules, a Redis, and instances that share
it."""

import os
import tempfile
import unittest

from harness import PATIENT, Headgate, RedisServer, replace_file, require_redis
from load import ALONE


class FleetTest(unittest.TestCase):
    RULES = "domain: edge\ndescriptors: []\n"
    TIMES = PATIENT

    def setUp(self):
        require_redis()
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.rules = self.write("edge.yaml", self.RULES)
        self.redis = self.enterContext(RedisServer())

    def write(self, name, text):
        return replace_file(os.path.join(self.folder, name), text)

    def instance(self, *args, store=None, threads=2):
        store = store or f"redis://127.0.0.1:{self.redis.port}"
        return self.enterContext(Headgate("--rules", self.rules, "--store", store, "--threads", str(threads), *self.TIMES, *args))


def decided_alone(instances):
    """The number of decisions so far that were not made by the store."""
    return sum(i.metric(f'headgate_shared_decisions_total{{mode="{mode}"}}') for i in instances for mode in ALONE)

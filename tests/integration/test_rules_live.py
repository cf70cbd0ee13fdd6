"""Rules that change while the server runs."""

import os
import tempfile
import unittest

from harness import Headgate, until

RULE = """domain: edge
descriptors:
  - key: api_key
    rate_limit: {{requests_per_unit: {requests}, period: 1h, algorithm: token_bucket}}
"""


class LiveRules(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def write(self, text, name="edge.yaml"):
        path = os.path.join(self.folder, name)
        with open(path + ".tmp", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(path + ".tmp", path)
        return path

    def remaining(self, server):
        return server.check("edge", cost=0, api_key="k1")[2]["decisions"][0]["remaining"]

    def limit(self, server):
        return server.check("edge", cost=0, api_key="k1")[2]["decisions"][0]["limit"]

    def test_an_edit_is_in_force_within_a_second_and_frees_nobody(self):
        self.write(RULE.format(requests=100))
        with Headgate("--rules", self.folder) as server:
            server.check("edge", cost=95, api_key="k1")
            self.write(RULE.format(requests=10))
            until(lambda: self.limit(server) == 10, 1, "the lower limit is in force")
            self.assertEqual(self.remaining(server), 5)
            self.write(RULE.format(requests=100))
            until(lambda: self.limit(server) == 100, 1, "the old limit is in force again")
            self.assertEqual(self.remaining(server), 5)

    def test_an_edit_in_place_is_seen_too(self):
        path = self.write(RULE.format(requests=100))
        with Headgate("--rules", path) as server:
            with open(path, "w", encoding="utf-8") as file:
                file.write(RULE.format(requests=50))
            until(lambda: self.limit(server) == 50, 1, "the edit is in force")

    def test_a_bad_file_keeps_the_old_rules_and_says_so(self):
        self.write(RULE.format(requests=100))
        with Headgate("--rules", self.folder) as server:
            self.write("domain: edge\ndescriptors:\n  - key: api_key\n    rate_limt: {}\n")
            until(lambda: "unknown key 'rate_limt'" in server.errors(), 1, "the log names the problem")
            self.assertIn("edge.yaml:4:5", server.errors())
            self.assertEqual(self.limit(server), 100)
            self.assertEqual(server.request("GET", "/readyz")[0], 200)

    def test_the_link_swap_of_kubernetes(self):
        def version(name, requests):
            os.mkdir(os.path.join(self.folder, name))
            with open(os.path.join(self.folder, name, "edge.yaml"), "w", encoding="utf-8") as file:
                file.write(RULE.format(requests=requests))

        version("..v1", 100)
        os.symlink("..v1", os.path.join(self.folder, "..data"))
        os.symlink("..data/edge.yaml", os.path.join(self.folder, "edge.yaml"))
        with Headgate("--rules", self.folder) as server:
            self.assertEqual(self.limit(server), 100)
            version("..v2", 20)
            os.symlink("..v2", os.path.join(self.folder, "..data_tmp"))
            os.replace(os.path.join(self.folder, "..data_tmp"), os.path.join(self.folder, "..data"))
            until(lambda: self.limit(server) == 20, 1, "the new version is in force")


if __name__ == "__main__":
    unittest.main()

"""Clients and servers of others through the sidecar: gRPC (@grpc/grpc-js) and WebSocket (ws), unmodified."""

import json
import os
import subprocess
import unittest

from harness import INTEGRATION, Sidecar, require


class Clients(unittest.TestCase):
    def start(self, script):
        require("node")
        if not os.path.isdir(os.path.join(INTEGRATION, "node_modules", "ws")):
            self.skipTest("run `npm ci` in tests/integration, or ./dev setup test")
        process = self.enterContext(
            subprocess.Popen(
                ["node", os.path.join(INTEGRATION, script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        )
        self.addCleanup(process.kill)
        return process, int(process.stdout.readline())

    def result(self, process, sidecar):
        process.stdin.write(f"{sidecar.port}\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    def test_grpc(self):
        process, port = self.start("sidecar_grpc.mjs")
        sidecar = Sidecar(port, scheme="h2c", capacity=20, args=("--cycle", "1h"))
        got = self.result(process, self.enterContext(sidecar))
        self.assertEqual(got["unary"], {"code": 0, "reply": "hello", "trailer": "at the end"})
        self.assertEqual(got["large"], 1 << 20)
        self.assertEqual((got["missing"]["code"], got["missing"]["details"]), (5, "no such thing"))
        self.assertEqual(got["deadline"], 4)
        self.assertEqual(got["count"], {"texts": [str(i) for i in range(1000)], "code": 0})
        self.assertEqual(got["chat"], {"texts": ["a", "b", "c"], "code": 0})
        # RESOURCE_EXHAUSTED
        self.assertEqual(got["refused"]["code"], 8)

    def test_websocket(self):
        process, port = self.start("sidecar_websocket.mjs")
        got = self.result(process, self.enterContext(Sidecar(port)))
        self.assertEqual(
            got,
            {"text": "hello", "large": True, "inOrder": True, "pong": "are you there", "close": [4000, "done"], "refused": 429},
        )


if __name__ == "__main__":
    unittest.main()

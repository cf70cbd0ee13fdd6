"""Records what the clients of a strict limit were told, and checks that one bucket could have said so
(tests/linearizability)."""

import os
import subprocess
import threading
import time

from harness import BINARY, wait

CHECKER = os.environ.get("LINEARIZABILITY_CHECK") or os.path.join(
    os.path.dirname(BINARY), "..", "tests", "linearizability", "linearizability_check"
)
REQUESTS = 400  # the capacity of the bucket; it does not refill during a test
RULES = f"""domain: edge
descriptors:
  - key: strict
    rate_limit: {{requests_per_unit: {REQUESTS}, period: 10000h, algorithm: token_bucket, sharing: strict}}
"""
PATHS = {"take": "/v1/check", "peek": "/v1/peek", "refund": "/v1/refund"}
# Two thirds take, so the bucket runs empty, and refunds make room again.
TURNS = ("take", "take", "take", "peek", "take", "refund", "take")


class Recorded:
    """Clients that ask all instances, one request after the other, until they are stopped. The
    instances at the indices `watchers` only peek.

    `instances` may change meanwhile: a client asks the instance that has its place in the list. A
    request without an answer (503, or the connection ended) may have been counted."""

    def __init__(self, instances, clients_each=2, watchers=()):
        self.instances = instances
        self.answered = [0] * len(instances)  # by place
        self.history = []
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(place, turn, ("peek",) if place in watchers else TURNS), daemon=True)
            for place in range(len(instances))
            for turn in range(clients_each)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, place, turn, turns):
        while not self._stop.is_set():
            turn += 1
            kind = turns[turn % len(turns)]
            called = time.monotonic_ns()
            answer = None
            try:
                status, _, body = self.instances[place].check("edge", cost=1, path=PATHS[kind], strict="k")
                if status in (200, 429):
                    answer = (status == 200, body["decisions"][0]["remaining"])
            except (OSError, ValueError):
                pass
            returned = time.monotonic_ns()
            with self._lock:
                self.history.append((kind, called, returned, answer))
                self.answered[place] += answer is not None
            if answer is None:
                wait(0.1)

    def stop(self):
        self._stop.set()
        for thread in self._threads:
            thread.join(30)
            if thread.is_alive():
                raise AssertionError("a request has no end")

    def admitted(self):
        return sum(kind == "take" and answer is not None and answer[0] for kind, _, _, answer in self.history)

    def lost(self):
        return sum(answer is None for _, _, _, answer in self.history)

    def contradiction(self):
        """Why one bucket cannot have given these answers; empty if it can."""
        lines = [str(REQUESTS)]
        for kind, called, returned, answer in self.history:
            if answer is None:
                lines.append(f"{kind} {called}")
            else:
                lines.append(f"{kind} {called} {returned} {'allowed' if answer[0] else 'denied'} {answer[1]}")
        done = subprocess.run([CHECKER], input="\n".join(lines) + "\n", capture_output=True, text=True, timeout=60)
        if done.returncode not in (0, 1):
            raise AssertionError(f"{CHECKER}: {done.returncode} {done.stderr}")
        return done.stdout

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._stop.set()

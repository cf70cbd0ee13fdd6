#!/usr/bin/env python3
"""How well `headgate sidecar --capacity auto` finds the capacity of a real upstream: a server with a
fixed number of workers that need 50 ms for a request, under twice the load that it can do. The number
of workers is halved and then doubled twice meanwhile.

    /usr/bin/python3 tests/bench/sidecar_capacity.py [--phase SECONDS]

Needs wrk. Prints, for each phase, the capacity found at its end and the part of the upstream's best
that was answered in its second half."""

import argparse
import asyncio
import json
import os
import re
import subprocess
import tempfile
import threading
import time
import urllib.request

from http_against_nginx import wait_for
from processes import free_port

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
HEADGATE = os.environ.get("HEADGATE_BINARY", os.path.join(ROOT, "build/release/bin/headgate"))
SERVICE_SECONDS = 0.05
WORKERS = (10, 5, 10, 20)
CONNECTIONS = 200
LOAD = """
wrk.headers["X-Client-Id"] = "a"
delay = function() return math.random(0, LONGEST_MS) end
"""


class Upstream:
    """Workers with a queue. Answers are counted when they are complete."""

    def __init__(self):
        self.port = free_port()
        self.answered = 0
        self._busy = 0
        self._workers = WORKERS[0]
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._run, daemon=True).start()
        wait_for(self.port)

    def set_workers(self, count):
        async def change():
            async with self._free:
                self._workers = count
                self._free.notify_all()

        asyncio.run_coroutine_threadsafe(change(), self._loop).result()

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._free = asyncio.Condition()
        self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=1024))
        self._loop.run_forever()

    async def _serve(self, reader, writer):
        try:
            while await reader.readuntil(b"\r\n\r\n"):
                async with self._free:
                    await self._free.wait_for(lambda: self._busy < self._workers)
                    self._busy += 1
                await asyncio.sleep(SERVICE_SECONDS)
                async with self._free:
                    self._busy -= 1
                    self._free.notify()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                await writer.drain()
                self.answered += 1
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def found(admin_port):
    """Requests per cycle, or None."""
    text = urllib.request.urlopen(f"http://127.0.0.1:{admin_port}/metrics").read().decode()
    number = re.search(r"^headgate_share_pool_capacity (\d+)", text, re.MULTILINE)
    return int(number.group(1)) if number else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--phase", type=int, default=30)
    options = parser.parse_args()
    upstream, port, admin_port = Upstream(), free_port(), free_port()
    words = [HEADGATE, "sidecar", "--listen", f"127.0.0.1:{port}", "--admin-listen", f"127.0.0.1:{admin_port}", "--threads", "1"]
    words += ["--upstream", f"http://127.0.0.1:{upstream.port}", "--capacity", "auto", "--cycle", "1s", "--log-level", "error"]
    sidecar = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    wait_for(port)
    # Each of the connections thinks for up to twice this time, so that they do not ask together.
    rate = 2 * max(WORKERS) / SERVICE_SECONDS
    script = tempfile.NamedTemporaryFile("w", suffix=".lua")
    script.write(LOAD.replace("LONGEST_MS", str(int(2 * CONNECTIONS / rate * 1000))))
    script.flush()
    load = subprocess.Popen(
        ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{options.phase * len(WORKERS) + 10}s", "-s", script.name, f"http://127.0.0.1:{port}/"],
        stdout=subprocess.DEVNULL,
    )
    rows = []
    try:
        for workers in WORKERS:
            upstream.set_workers(workers)
            time.sleep(options.phase / 2)
            before, began = upstream.answered, time.monotonic()
            time.sleep(options.phase / 2)
            goodput = (upstream.answered - before) / (time.monotonic() - began)
            best = workers / SERVICE_SECONDS
            capacity = found(admin_port)
            rows.append({"workers": workers, "best": best, "capacity": capacity, "goodput": goodput})
            text = "none" if capacity is None else f"{capacity}/s ({capacity / best * 100:.0f} %)"
            print(f"{workers:>3} workers, {best:.0f}/s: found {text}, answered {goodput:.0f}/s ({goodput / best * 100:.0f} %)", flush=True)
    finally:
        load.kill()
        sidecar.kill()
    print(json.dumps(rows))


if __name__ == "__main__":
    main()

"""Shows how a sidecar shares a service's capacity among four clients. Starts a service, the sidecar in
front of it and the clients on this machine, lets them ask for four cycles, and prints what each may
do in each cycle, as /metrics says it. Everything ends with the script.

  examples/sidecar/run [--cycle SECONDS] [--stay]

  --cycle SECONDS  the length of a cycle (default: 3; the text of the guide uses 10)
  --stay           leave the service and the sidecar running until Ctrl-C

HEADGATE_BINARY is the path of headgate (default: build/release/bin/headgate)."""

import argparse
import http.client
import http.server
import os
import re
import signal
import subprocess
import sys
import threading
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
HEADGATE = os.environ.get("HEADGATE_BINARY", os.path.join(ROOT, "build/release/bin/headgate"))
CAPACITY = 40
# The requests of each client in each cycle, sent at its beginning.
DEMANDS = (
    {"A": 2, "B": 15, "C": 10, "D": 10},
    {"A": 3, "B": 15, "C": 50, "D": 10},
    {"A": 0, "B": 15, "C": 50, "D": 5},
    {"A": 0, "B": 0, "C": 0, "D": 0},
)


def fail(what, hint):
    print(f"run: {what}\nhint: {hint}", file=sys.stderr)
    sys.exit(1)


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    def log_message(self, *_):
        pass


def port_in(lines, before):
    """The port that the sidecar has taken, from the line "BEFORE 127.0.0.1:PORT"."""
    for line in lines:
        if line.startswith(before):
            return int(line.rsplit(":", 1)[1])
    fail("the sidecar has ended", "run the command above")


def metrics(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    connection.request("GET", "/metrics")
    text = connection.getresponse().read().decode()
    connection.close()
    return text


def cycles_ended(port):
    return sum(int(n) for n in re.findall(r'^headgate_share_cycles_total\{[^}]*\} (\d+)', metrics(port), re.MULTILINE))


def capacities(port):
    return {name: int(n) for name, n in re.findall(r'^headgate_share_capacity\{client="(\w+)"\} (\d+)', metrics(port), re.MULTILINE)}


def ask(port, client, count, passed):
    """One client: `count` requests, one after the other."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    for _ in range(count):
        connection.request("GET", "/", headers={"X-Client-Id": client})
        response = connection.getresponse()
        response.read()
        passed[client] += response.status == 200
    connection.close()


def run_cycle(port, demands):
    """All clients at the same time. The requests of each that passed."""
    passed = dict.fromkeys(demands, 0)
    threads = [threading.Thread(target=ask, args=(port, *demand, passed)) for demand in demands.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return passed


def wait_until(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            fail(what, "see the lines of the sidecar above")
        time.sleep(0.02)


def answers(port):
    try:
        return bool(metrics(port))
    except OSError:
        return False


def show(port, admin_port, cycle):
    print(f"Four clients share {CAPACITY} requests in {cycle:g} s. What each may send in each cycle; in brackets: what it sent.\n")
    print("cycle " + "".join(f"{name:>12}" for name in DEMANDS[0]) + f"{'in all':>12}", flush=True)
    for number, demands in enumerate(DEMANDS, 1):
        ended = cycles_ended(admin_port)
        if number == 1:
            passed = run_cycle(port, demands)
            may = capacities(admin_port)
        else:
            may = capacities(admin_port)
            passed = run_cycle(port, demands)
        row = "".join(f"{may[name]:>6} ({passed[name]:>2}/{demands[name]:>2})"[:14].rjust(12) for name in demands)
        print(f"{number:>5} {row}{sum(may.values()):>12}", flush=True)
        if number < len(DEMANDS):
            wait_until(lambda: cycles_ended(admin_port) > ended, 2 * cycle + 2, "the cycle does not end")


def main():
    parser = argparse.ArgumentParser(prog="examples/sidecar/run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycle", type=float, default=3)
    parser.add_argument("--stay", action="store_true")
    options = parser.parse_args()
    if not 1 <= options.cycle <= 60:
        parser.error("--cycle is from 1 to 60")
    if not os.access(HEADGATE, os.X_OK):
        fail(f"{HEADGATE} is not there", "./dev run builds it; or set HEADGATE_BINARY")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    service = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=service.serve_forever, daemon=True).start()
    words = [HEADGATE, "sidecar", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]  # free ports
    words += ["--upstream", f"http://127.0.0.1:{service.server_port}", "--capacity", str(CAPACITY)]
    words += ["--cycle", f"{int(options.cycle * 1000)}ms", "--client-header", "X-Client-Id"]
    print("+ " + " ".join(words), flush=True)
    sidecar = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        port = port_in(sidecar.stdout, "listening on ")
        admin_port = port_in(sidecar.stdout, "admin on ")
        wait_until(lambda: sidecar.poll() is not None or answers(admin_port), 10, "the sidecar does not answer")
        if sidecar.poll() is not None:
            fail("the sidecar has ended", "run the command above")
        show(port, admin_port, options.cycle)
        if options.stay:
            print(f"\n  curl -i 127.0.0.1:{port}/ -H 'X-Client-Id: A'\n  curl 127.0.0.1:{admin_port}/metrics\n\nCtrl-C ends it.", flush=True)
            signal.pause()
    except KeyboardInterrupt:
        pass
    finally:
        sidecar.terminate()
        sidecar.wait(10)


if __name__ == "__main__":
    main()

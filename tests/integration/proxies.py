"""A real nginx, Caddy or HAProxy with its configuration in examples/, in front of Headgate."""

import http.client
import os
import subprocess
import tempfile

from harness import INTEGRATION, START_SECONDS, Headgate, free_port, require, until

EXAMPLES = os.path.abspath(os.path.join(INTEGRATION, "../../examples"))
os.environ["PATH"] += ":/usr/sbin"

PER_MINUTE = ("--rule", "remote_address: 10/minute")


def get(port, path="/", headers=None, method="GET"):
    """(status, fields with lower-case names, text of the body)"""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=15)
    connection.request(method, path, headers=headers or {})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response.status, {name.lower(): value for name, value in response.getheaders()}, text


class Proxy:
    """A proxy of examples/ with its configuration, in front of a Headgate that can be stopped.
    `change` edits the text of each configuration file."""

    COMMANDS = {
        "nginx": ("nginx", "-p", ".", "-c", "nginx.conf"),
        "caddy": ("caddy", "run", "--config", "Caddyfile", "--adapter", "caddyfile"),
        "haproxy": ("haproxy", "-db", "-f", "haproxy.cfg"),
    }

    def __init__(self, test, name, *args, change=lambda text: text):
        require(name)
        self.port, headgate_port, spoe_port, app_port = (free_port() for _ in range(4))
        ports = {8000: self.port, 8080: headgate_port, 8082: spoe_port, 9000: app_port}
        folder = test.enterContext(tempfile.TemporaryDirectory())
        os.chmod(folder, 0o755)  # nginx's workers have a user of their own
        for file in os.listdir(os.path.join(EXAMPLES, name)):
            with open(os.path.join(EXAMPLES, name, file), encoding="utf-8") as source:
                text = change(source.read().replace("FOLDER", folder))
            for old, new in ports.items():
                text = text.replace(f":{old}", f":{new}")
            with open(os.path.join(folder, file), "w", encoding="utf-8") as target:
                target.write(text)
        self.folder = folder
        # The harness adds its own address; the proxy uses these.
        self.headgate = test.enterContext(
            Headgate(
                *("--listen", f"127.0.0.1:{headgate_port}", "--listen-spoe", f"127.0.0.1:{spoe_port}"),
                *("--auth", os.path.join(folder, "auth.yaml"), *(args or PER_MINUTE)),
            )
        )
        with open(os.path.join(folder, "proxy.log"), "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.COMMANDS[name], cwd=folder, stdout=log, stderr=log, env={**os.environ, "HOME": folder})
        test.addCleanup(self.process.wait, timeout=START_SECONDS)
        test.addCleanup(self.process.terminate)  # if it is killed, nginx leaves its workers behind
        # The application of nginx's and Caddy's example is in the proxy, whose addresses open one after another.
        for port in (self.port,) if name == "haproxy" else (self.port, app_port):
            until(lambda: self.listens(port), START_SECONDS, f"{name} listens on {port}")

    def listens(self, port):
        if self.process.poll() is not None:
            with open(os.path.join(self.folder, "proxy.log"), encoding="utf-8") as log:
                raise AssertionError(log.read())
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
            connection.connect()
            connection.close()
            return True
        except OSError:
            return False

    def headgate_state(self):
        """The state of the process as in proc(5): T means stopped."""
        with open(f"/proc/{self.headgate.process.pid}/stat", encoding="utf-8") as stat:
            return stat.read().rpartition(")")[2].split()[0]

    def outcomes(self, outcome):
        return self.headgate.metric(f'headgate_auth_requests_total{{outcome="{outcome}"}}')

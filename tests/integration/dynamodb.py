"""A real server of DynamoDB's protocol (dynalite, from npm) on a free port, a door before it that
checks signatures and can refuse calls, and the endpoints that give credentials to roles."""

import hashlib
import hmac
import http.client
import http.server
import json
import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from harness import INTEGRATION, START_SECONDS, free_port, until

DYNALITE = os.path.join(INTEGRATION, "node_modules", ".bin", "dynalite")
KEYS = {"AWS_ACCESS_KEY_ID": "AKTEST", "AWS_SECRET_ACCESS_KEY": "secret/of+test"}
# Nothing of the machine that runs the tests may matter.
NO_KEYS = {
    "HOME": "/nonexistent",
    "AWS_EC2_METADATA_DISABLED": "true",
    **{
        name: ""
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_REGION",
                     "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_SHARED_CREDENTIALS_FILE",
                     "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI")
    },
}


class Dynalite:
    """If it is persistent, its tables survive `kill`."""

    def __init__(self, persistent=False):
        self.port = free_port()
        self.folder = tempfile.mkdtemp() if persistent else None
        self.start()

    def start(self):
        words = ["node", DYNALITE, "--host", "127.0.0.1", "--port", str(self.port), "--createTableMs", "0"]
        if self.folder:
            words += ["--path", self.folder]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until(self.is_serving, START_SECONDS, "dynalite serves")

    def is_serving(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False

    def url(self, table="limits", **parameters):
        parameters = {"region": "eu-west-1", "endpoint": f"http://127.0.0.1:{self.port}", **parameters}
        return f"dynamodb://{table}?" + "&".join(f"{name}={value}" for name, value in parameters.items())

    def call(self, action, **body):
        """As an operator would, with another client."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        connection.request("POST", "/", json.dumps(body), {
            "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"DynamoDB_20120810.{action}",
            "Authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/x/dynamodb/aws4_request, SignedHeaders=host, Signature=x",
            "X-Amz-Date": "20260101T000000Z"})
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def pause(self):
        os.kill(self.process.pid, 19)

    def resume(self):
        os.kill(self.process.pid, 18)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def signature_error(request, body, keys):
    """The fault of a request's signature; empty if it is right. Written after AWS's description, not
    after Headgate's code."""
    fields = {name.lower(): value for name, value in request.headers.items()}
    algorithm, _, rest = fields.get("authorization", "").partition(" ")
    parts = dict(part.strip().split("=", 1) for part in rest.split(",") if "=" in part)
    access_key, day, region, service, end = (parts.get("Credential", "") + "////").split("/")[:5]
    if algorithm != "AWS4-HMAC-SHA256" or end != "aws4_request" or service != "dynamodb":
        return "not signed"
    if access_key not in keys:
        return f"unknown key {access_key}"
    secret, token = keys[access_key]
    if fields.get("x-amz-security-token", "") != token:
        return "another token"
    names = parts["SignedHeaders"].split(";")
    if not {"host", "x-amz-date", "x-amz-target", "content-type"} <= set(names):
        return "fields are not signed"
    date = fields["x-amz-date"]
    age = time.time() - time.mktime(time.strptime(date, "%Y%m%dT%H%M%SZ")) + time.timezone
    if abs(age) > 300:
        return "Signature expired"
    canonical = "\n".join(
        [request.command, "/", "", "".join(f"{name}:{fields[name].strip()}\n" for name in names), ";".join(names),
         hashlib.sha256(body).hexdigest()])
    text = "\n".join([algorithm, date, f"{day}/{region}/{service}/{end}", hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in (day, region, service, end):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    return "" if signature == parts["Signature"] else "SignatureDoesNotMatch"


class Server:
    """An HTTP server whose answers `handle(request, body)` gives: (status, body)."""

    def __init__(self):
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, text = outer.handle(self, body)
                if status is None:
                    self.close_connection = True
                    return
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                try:
                    self.wfile.write(text)
                except OSError:  # the client has given up
                    self.close_connection = True

            do_GET = do_POST = do_PUT = answer

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    @property
    def origin(self):
        return f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Door(Server):
    """Stands before dynalite. Refuses what is not signed by one of `keys` (access key: secret, token),
    and what `refuse(action)` says: a type of DynamoDB's errors, "break", or None."""

    def __init__(self, dynalite, keys=None):
        self.dynalite = dynalite
        self.keys = keys or {KEYS["AWS_ACCESS_KEY_ID"]: (KEYS["AWS_SECRET_ACCESS_KEY"], "")}
        self.refuse = lambda action: None
        self.actions = []
        self.refused = []
        super().__init__()

    def url(self, **parameters):
        return self.dynalite.url(endpoint=self.origin, **parameters)

    def handle(self, request, body):
        if request.command == "GET":
            return 200, b"healthy"
        action = request.headers["X-Amz-Target"].split(".")[1]
        self.actions.append(action)
        wrong = signature_error(request, body, self.keys)
        if wrong:
            self.refused.append(wrong)
            kind = "UnrecognizedClientException" if "key" in wrong or "token" in wrong else "InvalidSignatureException"
            return 400, json.dumps({"__type": f"com.amazon.coral.service#{kind}", "message": wrong}).encode()
        refusal = self.refuse(action)
        if refusal == "break":
            return None, b""
        if refusal:
            status = 500 if refusal == "InternalServerError" else 400
            return status, json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{refusal}", "message": "no"}).encode()
        connection = http.client.HTTPConnection("127.0.0.1", self.dynalite.port, timeout=5)
        try:
            connection.request("POST", "/", body, dict(request.headers.items()))
            answer = connection.getresponse()
            return answer.status, answer.read()
        except OSError:
            return None, b""
        finally:
            connection.close()


class Roles(Server):
    """The endpoints for the roles of machines (instance metadata, version 2) and of containers."""

    def __init__(self, lasts):
        self.lasts = lasts  # how long its credentials are valid, in seconds
        self.given = []
        self.is_away = False
        super().__init__()

    def handle(self, request, body):
        if self.is_away:
            return 503, b""
        roles = "/latest/meta-data/iam/security-credentials/"
        if request.path == "/latest/api/token":
            return (200, b"token-1") if request.command == "PUT" else (405, b"")
        if request.path.startswith(roles) and request.headers["X-aws-ec2-metadata-token"] != "token-1":
            return 401, b""
        if request.path == roles:
            return 200, b"gate"
        if request.path == "/container" and request.headers["Authorization"] != "Bearer c":
            return 401, b""
        if request.path not in (roles + "gate", "/container"):
            return 404, b""
        number = len(self.given) + 1
        key = f"ROLE{number}"
        self.given.append(key)
        expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.lasts))
        return 200, json.dumps({"Code": "Success", "AccessKeyId": key, "SecretAccessKey": f"secret{number}",
                                "Token": f"token/{number}==", "Expiration": expires}).encode()

    @property
    def keys(self):
        """For a Door: the credentials that were given."""
        return {key: (f"secret{i}", f"token/{i}==") for i, key in enumerate(self.given, 1)}

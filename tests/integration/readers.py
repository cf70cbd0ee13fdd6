"""Parsers of requests that others wrote, each as a function from the bytes of a request's head to what an application
finds in it: {"path": …, "query": …, "cookie": …, "header": …, "credentials": …, "method": …, "host": …}."""

import base64
import glob
import http.cookies
import ipaddress
import json
import os
import re
import select
import shutil
import socket
import subprocess
import tempfile
import urllib.parse

from harness import INTEGRATION, START_SECONDS, free_port, until

FILES = os.path.join(INTEGRATION, "readers")
JARS = "/usr/share/java/"


class Readers:
    """Starts the servers. `reads` has the functions by the names in docs/reference/mappings.md."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.processes = []
        self.reads = {"Python": read_with_python}
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise

    def _start(self):
        java = self._java()
        node = self._run("node", os.path.join(FILES, "reader.mjs"))
        ports = {"PHP": free_port(), "Rack": free_port()}
        self._run("php", "-S", f"127.0.0.1:{ports['PHP']}", os.path.join(FILES, "reader.php"))
        self._run("puma", "--quiet", "--environment", "production", "--bind", f"tcp://127.0.0.1:{ports['Rack']}", os.path.join(FILES, "reader.ru"))
        ports["Node"] = int(said_by(node))
        ports["Tomcat"], ports["Jetty"], ports["JDK"] = map(int, said_by(java).split())
        for name, port in ports.items():
            until(lambda port=port: listens(port), START_SECONDS, f"{name} listens")
            self.reads[name] = lambda head, port=port: read_with_server(port, head)

    def _java(self):
        jars = [*glob.glob(JARS + "tomcat10-*.jar"), *glob.glob(JARS + "jetty9-*.jar"), JARS + "servlet-api.jar"]
        path = ":".join(jar for jar in jars if not re.search(r"-\d", os.path.basename(jar)))
        compiler = ("java", "-cp", ":".join(glob.glob(JARS + "eclipse-*.jar")), "org.eclipse.jdt.internal.compiler.batch.Main")
        subprocess.run([*compiler, "-17", "-proc:none", "-nowarn", "-cp", path, "-d", self.folder.name, os.path.join(FILES, "Readers.java")], check=True)
        return self._run("java", "-XX:TieredStopAtLevel=1", "-cp", f"{path}:{self.folder.name}", "Readers", self.folder.name)

    def _run(self, *command):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        return process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
            process.wait()
            process.stdout.close()
        self.folder.cleanup()


def needed_programs():
    """The programs and packages that the readers need, by name, and whether each is here."""
    jars = {"libtomcat10-java": "tomcat10-catalina", "libjetty9-java": "jetty9-servlet", "libeclipse-jdt-core-java": "eclipse-jdt-core"}
    places = {package: os.path.exists(f"{JARS}{jar}.jar") for package, jar in jars.items()}
    return places | {name: shutil.which(name) for name in ("php", "puma", "node", "java")}


def said_by(process):
    """The first line that the process prints."""
    ready, _, _ = select.select([process.stdout], [], [], START_SECONDS)
    return process.stdout.readline().decode() if ready else ""


def listens(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def answer_of(port, head):
    """The head of a server's answer, as far as it came."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(head)
        answer = b""
        while b"\r\n\r\n" not in answer and (heard := connection.recv(65536)):
            answer += heard
    return answer.decode("latin-1")


def read_with_server(port, head):
    """An empty dictionary if the server refuses the request."""
    read = re.search(r"\r\nX-Read: (.*?)\r\n", answer_of(port, head), re.IGNORECASE)
    return json.loads(read.group(1)) if read else {}


def read_with_python(head):
    """The standard library: urllib, http.cookies, base64, ipaddress, str.strip and str.split."""
    line, *fields = head.decode("latin-1").split("\r\n")
    method, target, _ = line.split(" ")
    values = {}
    for field in filter(None, fields):
        name, value = field.split(":", 1)
        values.setdefault(name.lower(), value.strip())
    path, _, query = target.partition("?")
    words = values.get("authorization", "").split()
    credentials = words[1] if len(words) == 2 else None
    if credentials and words[0].lower() == "basic":
        try:
            credentials = base64.b64decode(credentials).decode()
        except ValueError:
            credentials = None
    address = values.get("x-forwarded-for")
    cookies = http.cookies.SimpleCookie(values.get("cookie"))
    return {
        "path": urllib.parse.unquote(path), "query": urllib.parse.parse_qs(query).get("api_key", [None])[-1], "method": method,
        "cookie": cookies["session_id"].value if "session_id" in cookies else None, "header": values.get("x-api-key"),
        "credentials": credentials, "address": address and str(ipaddress.ip_address(address).ipv4_mapped or address),
    }

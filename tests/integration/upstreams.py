"""Upstreams for the tests of the sidecar: a real nginx, and a server that says exactly what a test
wants."""

import os
import socket
import ssl
import subprocess
import tempfile
import threading

from harness import START_SECONDS, free_port, require, until

os.environ["PATH"] += ":/usr/sbin"
HEAD_END = b"\r\n\r\n"

NGINX = """
daemon off;
worker_processes 1;
error_log stderr;
pid FOLDER/nginx.pid;
events {}
http {
  access_log off;
  client_max_body_size 0;
  client_body_temp_path FOLDER/body;
  proxy_temp_path FOLDER/proxy;
  fastcgi_temp_path FOLDER/fastcgi;
  uwsgi_temp_path FOLDER/uwsgi;
  scgi_temp_path FOLDER/scgi;
  server {
    listen 127.0.0.1:PORT;
    root FOLDER/files;
    location /small { return 200 "hello\\n"; }
    location /nothing { return 204; }
    location /put/ { dav_methods PUT; }
  }
}
"""


class Nginx:
    """A real nginx with the files of its folder `files`."""

    def __init__(self, test, tls=None):
        """`tls`: the files of a certificate and of its key."""
        require("nginx", "curl")
        self.port = free_port()
        self.folder = test.enterContext(tempfile.TemporaryDirectory())
        for name in ("files", "files/put"):
            os.mkdir(os.path.join(self.folder, name))
            os.chmod(os.path.join(self.folder, name), 0o777)
        os.chmod(self.folder, 0o777)  # nginx's workers have a user of their own
        configuration = os.path.join(self.folder, "nginx.conf")
        with open(configuration, "w", encoding="utf-8") as file:
            text = NGINX.replace("FOLDER", self.folder).replace("PORT", str(self.port))
            if tls:
                listen = f"listen 127.0.0.1:{self.port}"
                files = f"ssl_certificate {tls[0]}; ssl_certificate_key {tls[1]};"
                text = text.replace(f"{listen};", f"{listen} ssl http2; {files}")
            file.write(text)
        self._words = ("nginx", "-c", configuration)
        self.start()
        test.addCleanup(self.stop)

    def start(self):
        self.process = subprocess.Popen(self._words, stderr=subprocess.DEVNULL)
        until(self.listens, START_SECONDS, "nginx listens")

    def stop(self):
        """At once: connections break off."""
        self.process.terminate()
        self.process.wait(timeout=START_SECONDS)

    def listens(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def path(self, name):
        return os.path.join(self.folder, "files", name)


class Upstream:
    """Serves each connection on a thread, by `serve(connection, head)` for each request. `serve`
    returns whether the connection stays open."""

    def __init__(self, test, serve, tls=None, port=0):
        self.serve = serve
        self.tls = tls
        self.heads = []
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port = self.listener.getsockname()[1]
        test.addCleanup(self.listener.close)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection):
        try:
            with self.tls.wrap_socket(connection, server_side=True) if self.tls else connection as open_one:
                while head := read_head(open_one):
                    self.heads.append(head)
                    if not self.serve(open_one, head):
                        return
        except OSError:
            pass


def read_head(connection):
    """The head of a message; nothing behind it is taken. Empty if the connection ends before."""
    peeks = not isinstance(connection, ssl.SSLSocket)  # TLS cannot; it reads byte by byte
    head = b""
    while not head.endswith(HEAD_END):
        ahead = connection.recv(4096, socket.MSG_PEEK) if peeks else connection.recv(1)
        if not ahead:
            return ""
        end = (head + ahead).find(HEAD_END)
        size = len(ahead) if end < 0 else end + len(HEAD_END) - len(head)
        head += read_exactly(connection, size) if peeks else ahead
    return head.decode()


def read_exactly(connection, size):
    received = b""
    while len(received) < size:
        part = connection.recv(size - len(received))
        if not part:
            break
        received += part
    return received

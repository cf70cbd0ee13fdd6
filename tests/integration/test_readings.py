"""How others read a request: the rows of the table in docs/reference/mappings.md, sent to the parsers that they name, and
to Headgate behind a proxy and as the proxy. Then requests that are put together at random: SEED=N CASES=N tries others."""

import http.cookies
import os
import random
import re
import tempfile
import unittest
import urllib.parse

from harness import Headgate, Sidecar, require_found
from proxies import Proxy
from readers import Readers, answer_of, needed_programs
from upstreams import Upstream

PAGE = os.path.join(os.path.dirname(__file__), "../../docs/reference/mappings.md")
ATTRIBUTES = {
    "path": "path: true", "query": "query: api_key", "cookie": "cookie: session_id", "header": "header: X-API-Key",
    "credentials": "header: Authorization", "method": "method: true", "host": "host: true", "address": "client_address: true",
}
# Named in the table, but in no package.
NOT_HERE = {"PHP 7.3", "Rack 2.1", "Rails", "Express", "ASP.NET", "Symfony", "Laravel", "WordPress", "NAT64", "none"}


def unescaped(text):
    """The bytes of the table's text: \\x and two digits stand for one."""
    return re.sub(rb"\\x([0-9a-f]{2})", lambda digits: bytes.fromhex(digits.group(1).decode()), text.encode())


class Row:
    @classmethod
    def of(cls, part, lines):
        row = cls.__new__(cls)
        row.part, row.lines = part, lines
        row._split()
        return row

    def __init__(self, line):
        self.part, sent, readers, as_, here = re.fullmatch(r"\| (\w+) \| (.*) \| (.*) \| (.*) \| (.*) \|", line).groups()
        self.lines = [unescaped(code) for code in sent[1:-1].split("`<br>`")]
        self.readers = readers.split(", ")
        self.read_as = None if as_ == "nothing" else unescaped(as_[1:-1]).decode()
        self.invalid = here == "invalid"

        self._split()

    def _split(self):
        self.fields = self.lines if re.match(rb"[\w.-]+: ", self.lines[0]) else self.lines[1:]
        self.request = b"GET /" if self.fields is self.lines else self.lines[0]
        self.host = next((field[6:] for field in self.fields if field.startswith(b"Host: ")), None)

    def __str__(self):
        return f"{self.part} {self.lines}"

    def head(self, host=b"example.com"):
        """The head of the request as the client sends it."""
        fields = self.fields if self.host else [b"Host: " + host, *self.fields]
        return b"\r\n".join([self.request + b" HTTP/1.1", *fields, b"Connection: close", b"", b""])

    def has_dot_segments(self):
        """Whether the path is invalid for no other reason."""
        path = self.request.split(b" ")[1].partition(b"?")[0]
        segments = urllib.parse.unquote_to_bytes(path).split(b"/")[1:]
        return (b"." in segments or b".." in segments) and b"" not in segments

    def question(self, host):
        """The head of the request in which nginx asks about it."""
        method, target = self.request.split(b" ", 1)
        fields = [field for field in self.fields if not field.startswith(b"Host: ")]
        described = [b"X-Original-Method: " + method, b"X-Original-URI: " + target, b"X-Original-Host: " + (self.host or host)]
        return b"\r\n".join([b"GET /auth HTTP/1.1", b"Host: localhost", *described, *fields, b"Connection: close", b"", b""])


def rows():
    with open(PAGE, encoding="utf-8") as page:
        lines = [line.rstrip("\n") for line in page]
    return [Row(line) for line in lines if re.match(rf"\| ({'|'.join(ATTRIBUTES)}) \| `", line)]


# Each part has a mapping that needs nothing else; a row says by its host which one it means.
MAPPINGS = "trusted_proxies: [127.0.0.1]\noriginal_request: x-original\nmappings:\n" + "".join(
    ("- " if part == "host" else f"- host: {part}.test\n  ") + f"descriptors: [{{entries: [{{key: k, {attribute}}}]}}]\n"
    for part, attribute in sorted(ATTRIBUTES.items(), key=lambda item: item[0] == "host")
)
RULES = "domain: default\ndescriptors: [{key: k, rate_limit: {unit: second, requests_per_unit: 100000}}]\n"


def with_mappings(text):
    """An example's file of mappings with these ones. nginx takes only 401 and 403."""
    statuses = "\n  status: {invalid: 403, denied: 403, unavailable: 403}\n"
    mappings = re.sub("\n(?=- |$)", statuses, MAPPINGS.partition("mappings:\n")[2])
    return re.sub(r"(?<=^mappings:\n)- .*", lambda _: mappings, text, flags=re.DOTALL | re.MULTILINE)


# Requests are put together from these pieces. Whoever reads `real`, or the path /login, reaches what is refused.
REAL = {"path": "/login", "query": "real", "cookie": "real", "header": "real", "credentials": "real"}
PIECES = {
    "path": "/ // . .. %2e ; ;x=1 login /login x %6c %2f %5c \\ # ? %00 %20 %ff @ %25 %u006c (S(x)) /x/.. /. : %".split(),
    "query": "api_key =real =decoy & ; api.key api%20key = [ ] [] %5b %00 + ? %61pi_key % %26 # %ff _ %09 api_key=real , %3d".split(),
    "cookie": ["session_id", "=real", "=decoy", "; ", *' ,"\\=\t\xa0\x0b', "session.id", "session[id", "$Version=1", "session_id=real", "%72eal"],
    "header": ["X-API-Key: real", "X_API_Key: real", "X-API-Key: decoy", "X.API.Key: real", "\r\n", "\r\n", *" \t,\xa0\x85", "real"],
    "credentials": ["Bearer", "bearer", "Basic", "Foo ", "decoy", "real", "Bearer real", "token=real", "=", *' \t,"\xa0:'],
}
BEGINNINGS = {"path": "GET /", "query": "GET /?", "cookie": "Cookie: ", "header": "", "credentials": "Authorization: "}
REFUSALS = """trusted_proxies: [127.0.0.1]
original_request: x-original
mappings:
- {host: path.test, path: /login, refuse: [{host: true, values: [path.test]}]}
- {host: query.test, refuse: [{query: api_key, values: [real]}]}
- {host: cookie.test, refuse: [{cookie: session_id, values: [real]}]}
- {host: header.test, refuse: [{header: X-API-Key, values: [real]}]}
- {host: credentials.test, refuse: [{bearer: true, values: [real]}]}
"""


def composed(part, random):
    """The row of a request that nobody has thought of."""
    text = BEGINNINGS[part] + "".join(random.choice(PIECES[part]) for _ in range(random.randint(1, 6)))
    lines = [line for line in text.split("\r\n") if ":" in line or line.startswith("GET ")]
    return Row.of(part, [line.encode("latin-1") for line in lines or ["X-API-Key: real"]])


def status_of(answer):
    return int(answer.split(" ", 2)[1])


class AReader(unittest.TestCase):
    def test_reads_each_row_as_the_table_says(self):
        require_found(needed_programs())
        readers = self.enterContext(Readers())
        tried = 0
        for row in rows():
            for name in row.readers:
                if name in NOT_HERE:
                    continue
                with self.subTest(reader=name, row=str(row)):
                    self.assertEqual(readers.reads[name](row.head()).get(row.part), row.read_as)
                    tried += 1
        self.assertGreater(tried, 100)


class AnySpelling(unittest.TestCase):
    def test_that_a_reader_takes_for_what_is_refused_does_not_pass(self):
        require_found(needed_programs())
        readers = self.enterContext(Readers())
        folder = self.enterContext(tempfile.TemporaryDirectory())
        with open(os.path.join(folder, "auth.yaml"), "w", encoding="utf-8") as file:
            file.write(REFUSALS)
        server = self.enterContext(Headgate("--auth", os.path.join(folder, "auth.yaml"), "--rule", "k: 1/s"))
        seed = int(os.environ.get("SEED", "1"))
        chance = random.Random(seed)
        reached = 0
        for _ in range(int(os.environ.get("CASES", "400"))):
            row = composed(chance.choice(list(REAL)), chance)
            who = [name for name, read in readers.reads.items() if self.read(read, row) == REAL[row.part]]
            if not who:
                continue
            reached += 1
            status = status_of(answer_of(server.port, row.question(f"{row.part}.test".encode())))
            self.assertIn(status, (400, 403), f"{row} is read by {who}; SEED={seed}")
        self.assertGreater(reached, 15)

    def read(self, read, row):
        """None also if the reader gives up."""
        try:
            return read(row.head()).get(row.part)
        except (ValueError, http.cookies.CookieError):
            return None


class Here(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.files = {name: os.path.join(folder, name) for name in ("auth.yaml", "rules.yaml")}
        for name, text in (("auth.yaml", MAPPINGS), ("rules.yaml", RULES)):
            with open(self.files[name], "w", encoding="utf-8") as file:
                file.write(text)

    def test_a_request_that_others_read_otherwise_does_not_pass_a_proxy_that_asks(self):
        server = self.enterContext(Headgate("--auth", self.files["auth.yaml"], "--rules", self.files["rules.yaml"]))
        for row in rows():
            with self.subTest(row=str(row)):
                status = status_of(answer_of(server.port, row.question(f"{row.part}.test".encode())))
                self.assertEqual(status, 400 if row.invalid else 200)

    def test_a_request_that_others_read_otherwise_does_not_pass_a_real_proxy(self):
        for name in Proxy.COMMANDS:
            proxy = Proxy(self, name, "--rules", self.files["rules.yaml"], change=with_mappings)
            for row in rows():
                if row.part == "address" or not row.request.split(b" ")[1].startswith(b"/"):
                    continue  # the proxy states the address; the request says its host itself
                # nginx removes such fields, and Caddy escapes the character, for Headgate and the application alike.
                text = b"\n".join([row.request, *row.fields])
                is_mended = re.search({"nginx": rb"^X[_.]API", "caddy": rb"#"}.get(name, rb"^$"), text, re.MULTILINE)
                with self.subTest(proxy=name, row=str(row)):
                    status = status_of(answer_of(proxy.port, row.head(f"{row.part}.test".encode())))
                    if not is_mended:
                        (self.assertNotEqual if row.invalid else self.assertEqual)(status, 200)

    def test_a_request_that_others_read_otherwise_does_not_pass_the_sidecar(self):
        def serve(connection, _):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

        upstream = Upstream(self, serve)
        words = ("--mappings", self.files["auth.yaml"], "--rules", self.files["rules.yaml"], "--anonymous", "all")
        sidecar = self.enterContext(Sidecar(upstream.port, args=words))
        for row in rows():
            if not row.request.split(b" ")[1].startswith(b"/"):
                continue  # it says its host itself
            upstream.heads.clear()
            with self.subTest(row=str(row)):
                status = status_of(answer_of(sidecar.port, row.head(f"{row.part}.test".encode())))
                # It removes fields that servers could take for the header.
                removes = re.search(rb"^X[_.]API", b"\n".join(row.fields), re.MULTILINE)
                if removes:
                    self.assertNotRegex("".join(upstream.heads), "X[_.]API")
                elif row.has_dot_segments():
                    self.assertEqual(status, 200)
                    self.assertNotRegex(upstream.heads[0].split("\r\n")[0], r"/\.|%2e")
                else:
                    self.assertEqual(status, 400 if row.invalid else 200)


if __name__ == "__main__":
    unittest.main()

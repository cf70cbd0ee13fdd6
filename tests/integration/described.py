"""An address of a server, driven by the description that it serves (OpenAPI 3.1): every answer is compared with the
description of its operation, and the statuses that came are noted."""

import http.client
import json
import os
import re
import socket

import jsonschema

from harness import INTEGRATION, read_all, until

# The parts that the server puts its document together from.
PARTS = os.path.join(INTEGRATION, "..", "..", "headgate", "front", "admin", "openapi")
METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


def operations_of(paths):
    """(method, path, operation) of each."""
    return [(method.upper(), path, item[method]) for path, item in paths.items() for method in METHODS if method in item]


def described_anywhere():
    """(method, path) of all operations that some address has."""
    found = set()
    for name in os.listdir(PARTS):
        with open(os.path.join(PARTS, name), encoding="utf-8") as file:
            for path, item in json.load(file).get("paths", {}).items():
                for method in set(item) - {"parameters"}:
                    found |= {(one.upper(), path) for one in (METHODS if method == "any" else (method,))}
    return found


# A request for each status that HTTP implies, whatever the operation.
BROKEN = {
    "400": "{method} {path} HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n",
    "413": "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\nConnection: close\r\n\r\n",
    "414": "{method} {path}?" + 9000 * "a" + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "417": "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nExpect: more\r\nConnection: close\r\n\r\n{{}}",
    "421": "{method} {path} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
    "431": "{method} {path} HTTP/1.1\r\nHost: localhost\r\nA: " + 70_000 * "a" + "\r\n\r\n",
    "505": "{method} {path} HTTP/3.0\r\nHost: localhost\r\n\r\n",
}
UNFINISHED = "{method} {path} HTTP/1.1\r\nHost: localhost\r\n"
WHOLE = "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


class Described:
    """`seen` collects (method, path, status), also of several addresses. `fill` has values for the parameters of
    paths."""

    def __init__(self, test, port, seen):
        self.test = test
        self.port = port
        self.seen = seen
        status, fields, text = self.send("GET", "/openapi.json")
        test.assertEqual((status, fields["content-type"]), (200, "application/json"))
        self.api = json.loads(text)
        self.operations = operations_of(self.api["paths"])

    # ---- The document

    def described(self):
        """(method, path, status) of everything that the document describes."""
        return {(method, path, status) for method, path, operation in self.operations for status in operation["responses"]}

    def resolve(self, json_object):
        while "$ref" in json_object:
            place = self.api
            for name in json_object["$ref"].removeprefix("#/").split("/"):
                place = place[name]
            json_object = place
        return json_object

    def validator(self, schema):
        return jsonschema.Draft202012Validator({**schema, "components": self.api["components"]})

    def component(self, name):
        return self.validator(self.api["components"]["schemas"][name])

    def operation(self, method, path):
        return self.api["paths"][path][method.lower()]

    def body_schema(self, method, path, kind="application/json"):
        return self.validator(self.resolve(self.operation(method, path)["requestBody"])["content"][kind]["schema"])

    def assert_is_well_formed(self):
        test = self.test
        test.assertEqual(self.api["openapi"], "3.1.0")
        ids = [operation["operationId"] for _, _, operation in self.operations]
        test.assertEqual(len(ids), len(set(ids)))
        text = json.dumps(self.api)
        for kind, components in self.api["components"].items():
            for name, component in components.items():
                test.assertTrue(kind == "securitySchemes" or f'"#/components/{kind}/{name}"' in text, f"{kind}/{name} is used")
                if kind == "schemas":
                    jsonschema.Draft202012Validator.check_schema(component)
        for reference in re.findall(r'"\$ref": "([^"]*)"', text):
            self.resolve({"$ref": reference})
        for method, path, operation in self.operations:
            parameters = [self.resolve(one) for one in operation.get("parameters", []) + self.api["paths"][path].get("parameters", [])]
            in_path = {one["name"] for one in parameters if one["in"] == "path"}
            test.assertEqual(in_path, set(re.findall(r"\{(\w+)\}", path)), f"{method} {path}")
            for kind, content in self.resolve(operation.get("requestBody", {})).get("content", {}).items():
                if "example" in content:
                    self.validator(content["schema"]).validate(content["example"])

    def assert_describes_exactly_what_it_serves(self):
        """GET / lists the routes."""
        served = {("GET", "/")}
        for line in self.send("GET", "/")[2].splitlines()[2:]:
            methods, path = line.split()[:2]
            served |= {(method, path) for method in (map(str.upper, METHODS) if methods == "ANY" else methods.split(","))}
        described = {(method, re.sub(r"\{.*", "...", path)) for method, path, _ in self.operations}
        self.test.assertEqual(described, served)

    # ---- Requests

    def send(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        fields = {"Content-Type": "application/json"} if body is not None else {}
        connection.request(method, path, body=text, headers={**fields, **(headers or {})})
        response = connection.getresponse()
        answer = response.read().decode()
        connection.close()
        return response.status, {name.lower(): value for name, value in response.getheaders()}, answer

    def ask(self, method, template, *, path=None, body=None, headers=None, expect=None):
        """Sends a request and compares the answer with its description. Returns its text."""
        status, fields, text = self.send(method, path or template, body, headers)
        self.note(method, template, status, fields, text)
        if expect is not None:
            self.test.assertEqual(status, expect, f"{method} {path or template}: {text}")
        return text

    def note(self, method, template, status, fields, text):
        responses = self.operation(method, template)["responses"]
        name = str(status) if str(status) in responses else "default"
        self.test.assertIn(name, responses, f"{method} {template} answered {status}: {text}")
        described = self.resolve(responses[name])
        for field, header in described.get("headers", {}).items():
            if fields.get(field.lower()):
                schema = self.resolve(header)["schema"]
                value = fields[field.lower()]
                self.validator(schema).validate(int(value) if schema.get("type") == "integer" else value)
        if text:
            content = described.get("content", {})
            kind = fields["content-type"].split(";")[0]
            self.test.assertIn(kind, content, f"{method} {template} {status}")
            if kind.endswith("json"):
                self.validator(content[kind]["schema"]).validate(json.loads(text))
        self.seen.add((method, template, name))

    # ---- Statuses that HTTP implies

    def begin(self, template_of_request, method, template):
        """A connection to which the request for an operation was written."""
        path = re.sub(r"\{\w+\}", "x", template)
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        self.test.addCleanup(connection.close)
        connection.sendall(template_of_request.format(method=method, path=path).encode())
        return connection

    def begin_whole(self, method, path, body, fields):
        """The same, for a request with a JSON body."""
        lines = {"Host": "localhost", "Connection": "close", **fields}
        if body:
            lines |= {"Content-Type": "application/json", "Content-Length": len(body)}
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        self.test.addCleanup(connection.close)
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        connection.sendall(f"{method} {path} HTTP/1.1\r\n{head}\r\n{body}".encode())
        return connection

    def finish(self, connection, method, template):
        """The status of the answer on the connection, which closes behind it."""
        head, _, text = read_all(connection).decode().partition("\r\n\r\n")
        connection.close()
        first, *lines = head.split("\r\n")
        fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        status = first.split()[1]
        self.note(method, template, status, fields, "" if method == "HEAD" else text)
        return status

    def drive_broken_requests(self):
        """Sends broken requests to each operation. An error is answered exactly where it is described."""
        for method, template, operation in self.operations:
            for status, request in BROKEN.items():
                answered = self.finish(self.begin(request, method, template), method, template)
                self.test.assertEqual(answered == status, status in operation["responses"], f"{status} for {method} {template}")

    def drive_unfinished_requests(self):
        """The server waits for the rest of each. Takes its request_timeout."""
        waiting = [(self.begin(UNFINISHED, method, path), method, path) for method, path, _ in self.operations]
        for connection, method, path in waiting:
            self.test.assertEqual(self.finish(connection, method, path), "408", f"{method} {path}")

    def drive_full_house(self, connections_max):
        """While all connections that the server allows are open."""
        served = []

        def one_more():
            """An earlier connection may not have left yet."""
            guest = self.begin("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET", "/healthz")
            if guest.recv(4096).startswith(b"HTTP/1.1 200 "):
                served.append(guest)
            return len(served) == connections_max

        until(one_more, 20, "all connections are open")
        for method, path, _ in self.operations:
            self.test.assertEqual(self.finish(self.begin(WHOLE, method, path), method, path), "503", f"{method} {path}")

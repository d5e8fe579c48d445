# SPDX-License-Identifier: Apache-2.0
"""Every route of /v1 has a method in both clients, and the methods send what the spec describes."""
import inspect
import json
import os
import re

from client import routes
from conftest import ROOT

import lodge
from lodge import _api, client as client_module
from lodge._http import Call


class Recorder:
    """A transport that only records requests."""
    reconnect = 1.0

    def __init__(self):
        self.asked = []

    def _note(self, request):
        self.asked.append((request.method, request.path))

    def _do(self, op):
        first = op if isinstance(op, Call) else next(op)
        if isinstance(first, Call):  # else it is what another method returned, which has been recorded
            self._note(first.request)

    def _pages(self, make, name):
        self._note(make(None).request)

    def _event_pages(self, make, since):
        self._note(make(since).request)

    def _events(self, machine):
        self._note(machine.request())

    def _save_to(self, ask, to):
        self._note(ask)

    def _send_from(self, source, make, decode):
        self._note(make(body=b""))

    def _reader(self, path):
        self.asked.append(("GET", path))

    def _writer(self, ask):
        self._note(ask)

    def _terminal(self, path):
        self.asked.append(("GET", path))


GIVEN = {"rows": 24, "cols": 24, "files": {"x": "x"}}


def call_all(part):
    """Call every method, with a string for each required argument unless GIVEN has another value."""
    names = []
    for name, method in inspect.getmembers(part, inspect.ismethod):
        if name.startswith("_"):
            continue
        needed = [p for p in inspect.signature(method).parameters.values()
                  if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
        given = [GIVEN.get(p.name, "x") for p in needed]
        method(*given)
        names.append(name)
    return names


def asked():
    recorder = Recorder()
    client = _api.ClientApi(recorder)
    client._session_type = lodge.Session
    session = lodge.Session(recorder, "x")
    names = call_all(client) + call_all(session) + call_all(session.files) + call_all(lodge.Exec(recorder, "x", "x"))
    names += call_all(client_module.Teams(recorder))
    client.environment(refresh=True)
    assert len(names) > 70
    return recorder.asked


def pattern(route):
    return re.compile(re.sub(r"\\{[a-z_]+(\\\.\\\.\\\.)?\\}", lambda m: ".*" if m.group(1) else "[^/]+",
                             re.escape(route)) + "$")


def test_every_route_has_a_method():
    found = [(m, p.split("?")[0]) for m, p in asked()]
    wanted = [(m, p) for m, p, _ in routes() if p.startswith("/v1/") or p in ("/health", "/ready", "/metrics", "/openapi.json")]
    assert len(wanted) > 55
    missing = [f"{m} {p}" for m, p in wanted if not any(m == n and pattern(p).match(q) for n, q in found)]
    assert missing == []


def test_every_method_has_a_route_and_its_parameters():
    with open(os.path.join(ROOT, "spec/openapi.json")) as f:
        spec = json.load(f)
    shared = spec["components"]["parameters"]
    for method, path in asked():
        path, _, text = path.partition("?")
        found = [v[method.lower()] for p, v in spec["paths"].items()
                 if method.lower() in v and pattern(p.replace("{path}", "{path...}")).match(path)]
        assert found, (method, path)
        known = set()
        for operation in found:
            known |= {shared[p["$ref"].split("/")[-1]]["name"] if "$ref" in p else p["name"]
                      for p in operation.get("parameters", [])}
        assert {pair.split("=")[0] for pair in text.split("&") if pair} <= known, (method, path, text)


def test_both_clients_have_the_same_methods():
    for a, b in ((lodge.Client, lodge.AsyncClient), (lodge.Session, lodge.AsyncSession), (lodge.Files, lodge.AsyncFiles),
                 (lodge.Exec, lodge.AsyncExec)):
        assert {n for n in dir(a) if not n.startswith("_")} == {n for n in dir(b) if not n.startswith("_")}


def test_no_module_is_long():
    where = os.path.join(ROOT, "sdk/python/lodge")
    for name in os.listdir(where):
        if name.endswith(".py"):
            with open(os.path.join(where, name)) as f:
                lines = f.readlines()
            assert len(lines) < 500 or lines[1].startswith("# Written by "), name

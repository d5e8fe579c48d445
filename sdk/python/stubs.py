#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the types of both clients from the one place that has their methods: lodge/client.pyi and lodge/aio.pyi from
lodge/_api.py. `stubs.py --check` only checks that they are up to date."""
import ast
import os
import sys

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lodge")
PARTS = {"ExecApi": "Exec", "FilesApi": "Files", "SessionApi": "Session", "ClientApi": "Client"}
AT_ONCE = {"session", "command", "open", "tty"}  # these ask nothing yet
RETURNS = {"enter": "{}Session", "session": "{}Session", "fork": "List[{}Session]", "templates": "List[Record]",
           "start": "{}Exec", "command": "{}Exec", "tty": "{}Terminal"}
HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Written by stubs.py from _api.py.
import ssl
from typing import Any, {iterator}, BinaryIO, Dict, List, Mapping, Optional, Union

from ._api import Source
from ._calls import Command
from ._files import Terminal, Writer
from ._files_async import AsyncReader, AsyncTerminal, AsyncWriter
from ._http import Name
from .types import Event, ExecResult, Output, Record
'''
FIELDS = {
    "Exec": ["id: str", "session: str"],
    "Files": [],
    "Session": ["id: str", "record: Record", "outcome: Optional[str]", "state_lost: bool", "files: {}Files"],
    "Client": ["server_url: str"],
}
MAKE = ("    def __init__(self, server_url: Optional[str] = ..., api_key: Optional[str] = ..., *, timeout: float = ..., "
        "retry_for: Optional[float] = ..., reconnect_for: float = ..., tls: Optional[ssl.SSLContext] = ...) -> None: ...")


def returns(method, asynchronous):
    prefix = "Async" if asynchronous else ""
    if method.name == "open":
        return "Any"
    return RETURNS[method.name].format(prefix) if method.name in RETURNS else ast.unparse(method.returns)


def line(method, asynchronous):
    result = returns(method, asynchronous)
    streams = result.startswith("Iterator[")
    word = "async def" if asynchronous and not streams and method.name not in AT_ONCE else "def"
    if asynchronous and streams:
        result = "Async" + result
    return f"    {word} {method.name}({ast.unparse(method.args)}) -> {result}: ..."


def contexts(name, asynchronous):
    if name not in ("Session", "Client"):
        return []
    prefix, word, a = ("Async", "async def", "a") if asynchronous else ("", "def", "")
    return ([MAKE, f"    {word} close(self) -> None: ..."] if name == "Client" else []) + [
        f"    {word} __{a}enter__(self) -> {prefix}{name}: ...", f"    {word} __{a}exit__(self, *_: object) -> None: ..."]


def stub(tree, asynchronous):
    prefix = "Async" if asynchronous else ""
    out = [HEAD.format(iterator="AsyncIterator" if asynchronous else "Iterator")]
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or node.name not in PARTS:
            continue
        name = PARTS[node.name]
        methods = [m for m in node.body if isinstance(m, ast.FunctionDef) and not m.name.startswith("_")]
        out.append(f"\nclass {prefix}{name}:")
        out += [f"    {field.format(prefix)}" for field in FIELDS[name]]
        out += contexts(name, asynchronous)
        # last of all: in a class that has a method `list`, the name means that from there on
        out += [line(m, asynchronous) for m in methods]
    return "\n".join(out) + "\n"


def main():
    with open(os.path.join(HERE, "_api.py")) as f:
        tree = ast.parse(f.read())
    same = True
    for name, asynchronous in (("client.pyi", False), ("aio.pyi", True)):
        path, text = os.path.join(HERE, name), stub(tree, asynchronous)
        if "--check" in sys.argv[1:]:
            with open(path) as f:
                same = same and f.read() == text
        else:
            with open(path, "w") as f:
                f.write(text)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())

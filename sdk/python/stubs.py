#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the types and texts of both clients from the one place that has their methods: lodge/client.pyi and lodge/aio.pyi
from the files of SOURCES. `stubs.py --check` only checks that they are up to date."""
import ast
import os
import re
import sys
import textwrap

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lodge")
SOURCES = ("_projects.py", "_exec_api.py", "_api.py", "_files_api.py", "_command.py", "_snapshot.py", "_sandbox.py")
PARTS = {"ExecApi": "Exec", "FilesApi": "Files", "SessionApi": "Session", "ClientApi": "Client",
         "ProjectsApi": "Projects", "TeamsApi": "Teams", "CommandApi": "Command", "PtyApi": "Pty",
         "SnapshotApi": "Snapshot", "SandboxApi": "Sandbox"}
AT_ONCE = {"session", "command", "open", "tty"}  # these ask nothing yet
OWN = re.compile(r"(?<![.\w])(" + "|".join([*PARTS.values(), "Terminal"]) + r")\b")
HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Written by stubs.py from {sources}.
import asyncio
import datetime
import logging
import os
import socket
import ssl
from typing import (Any, AsyncIterator, Awaitable, Callable, Dict, Iterable, Iterator, List, Literal, Mapping,
                    Optional, Pattern, Sequence, Tuple, TypeVar, Union, overload)

from . import records
from ._calls import CommandLine, Kinds
from ._files import Terminal, Writer
from ._files_api import Content, Source
from ._files_async import AsyncReader, AsyncTerminal, AsyncWriter
from ._hooks import Headers, RetryPolicy, Traceparent
from ._http import Name
from ._options import Size
from .types import Event, ExecResult, Output, Record, Result, Versions

Item = TypeVar("Item")
Made = TypeVar("Made")
'''
FIELDS = {
    "Exec": ["id: str", "session: str"],
    "Files": [],
    "Session": ["id: str", "record: records.Session", "outcome: Optional[str]", "state_lost: bool",
                "cause: Optional[records.Cause]", "ignored: List[str]", "files: Files"],
    "Client": ["server_url: str", "projects: Projects", "teams: Teams"],
    "Projects": [],
    "Teams": [],
    "Command": ["id: str"],
    "Pty": [],
    "Snapshot": ["id: str", "name: Optional[str]", "created_at: Optional[datetime.datetime]"],
    "Sandbox": ["id: str", "created: bool", "state_lost: bool", "files: Files"],
}
CONTEXTS = ("Session", "Client", "Pty", "Sandbox")
MAKE = ("    def __init__(self, server_url: Optional[str] = ..., api_key: Optional[str] = ..., *, timeout: Optional[float] = ..., "
        "retry_for: Optional[float] = ..., reconnect_for: float = ..., tls: Optional[ssl.SSLContext] = ..., headers: Headers = ..., "
        "logger: Optional[logging.Logger] = ..., user_agent: Optional[str] = ..., traceparent: Traceparent = ..., "
        "retry: Union[RetryPolicy, bool, None] = ..., connect: Optional[Callable[[str, int, Optional[ssl.SSLContext]], {link}]] = ..., "
        "proxy: Optional[str] = ..., tracer: Any = ...) -> None: ...")


class Plain(ast.NodeTransformer):
    """Arguments with annotations without quotes, and no defaults that have a meaning only inside."""

    def visit_Name(self, node):
        return ast.Constant(...) if node.id == "UNSET" else node

    def visit_arguments(self, node):
        for a in [*node.args, *node.kwonlyargs, *filter(None, (node.vararg, node.kwarg))]:
            a.annotation = a.annotation and Quotes().visit(a.annotation)
        node.defaults = [self.visit(d) for d in node.defaults]
        node.kw_defaults = [d and self.visit(d) for d in node.kw_defaults]
        return node


class Quotes(ast.NodeTransformer):
    def visit_Subscript(self, node):
        return node if getattr(node.value, "id", "") == "Literal" else self.generic_visit(node)

    def visit_Constant(self, node):
        return ast.parse(node.value, mode="eval").body if isinstance(node.value, str) else node


def typed(text, asynchronous):
    """Types of the other client under their own names."""
    if not asynchronous:
        return text
    text = text.replace("Callable[[Sandbox, Item], Made]", "Callable[[Sandbox, Item], Awaitable[Made]]")
    return OWN.sub(r"Async\1", text)


def decorators(method):
    return [d.id for d in method.decorator_list if isinstance(d, ast.Name)]


def lines(method, asynchronous):
    marks = decorators(method)
    result = typed(ast.unparse(Quotes().visit(method.returns)), asynchronous)
    streams = result.startswith("Iterator[")
    at_once = streams or method.name in AT_ONCE or "property" in marks
    word = "async def" if asynchronous and not at_once else "def"
    if asynchronous and streams:
        result = "Async" + result
    arguments = typed(ast.unparse(Plain().visit(method.args)), asynchronous)
    out = [f"    @{mark}" for mark in marks]
    out.append(f"    {word} {method.name}({arguments}) -> {result}:")
    return with_text(out, ast.get_docstring(method))


def with_text(out, text):
    """A definition with its text, or without one."""
    if not text:
        out[-1] += " ..."
        return out
    text = textwrap.indent(text.replace("\\", "\\\\"), "        ").strip()
    return [*out, f'        """{text}"""' if "\n" not in text else f'        """{text}\n        """']


def contexts(name, asynchronous):
    prefix, word, a = ("Async", "async def", "a") if asynchronous else ("", "def", "")
    link = "Awaitable[Tuple[asyncio.StreamReader, asyncio.StreamWriter]]" if asynchronous else "socket.socket"
    out = [MAKE.format(link=link), f"    {word} close(self) -> None:", '        """Close its connections; sessions stay."""'] if name == "Client" else []
    if name == "Pty":
        out += [f"    def __aiter__(self) -> {prefix}Pty: ...", "    async def __anext__(self) -> bytes: ..."] \
            if asynchronous else ["    def __iter__(self) -> Iterator[bytes]: ..."]
    if name in CONTEXTS:
        out += [f"    {word} __{a}enter__(self) -> {prefix}{name}: ...", f"    {word} __{a}exit__(self, *_: object) -> None: ..."]
    return out


def public(node):
    """Its methods; of those with overloads only these."""
    found = [m for m in node.body if isinstance(m, ast.FunctionDef) and not m.name.startswith("_")]
    several = {m.name for m in found if "overload" in decorators(m)}
    text = {m.name: ast.get_docstring(m) for m in found if m.name in several and "overload" not in decorators(m)}
    kept = [m for m in found if m.name not in several or "overload" in decorators(m)]
    for m in kept:
        if text.get(m.name):
            m.body = [ast.Expr(ast.Constant(text[m.name]))]
    return kept


def class_text(name, node, asynchronous):
    """Examples are of the blocking client."""
    text = ast.get_docstring(node)
    return text.split("\n\n>>>")[0] if asynchronous else text


def stub(tree, asynchronous):
    prefix = "Async" if asynchronous else ""
    out = [HEAD.format(sources=", ".join(SOURCES))]
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or node.name not in PARTS:
            continue
        name = PARTS[node.name]
        text = textwrap.indent(class_text(name, node, asynchronous).replace("\\", "\\\\"), "    ").strip()
        out += [f"\nclass {prefix}{name}:", f'    """{text}"""' if "\n" not in text else f'    """{text}\n    """']
        out += [f"    {typed(field, asynchronous)}" for field in FIELDS[name]]
        out += contexts(name, asynchronous)
        # last of all: in a class that has a method `list`, the name means that from there on
        for method in public(node):
            out += lines(method, asynchronous)
    return "\n".join(out) + "\n"


def read():
    tree = ast.Module([], [])
    for name in SOURCES:
        with open(os.path.join(HERE, name)) as f:
            tree.body += ast.parse(f.read()).body
    return tree


def main():
    same = True
    for name, asynchronous in (("client.pyi", False), ("aio.pyi", True)):
        path, text = os.path.join(HERE, name), stub(read(), asynchronous)
        if "--check" in sys.argv[1:]:
            with open(path) as f:
                same = same and f.read() == text
        else:
            with open(path, "w") as f:
                f.write(text)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())

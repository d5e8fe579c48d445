#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes lodge/records.py: what /v1 and projects take and answer, from spec/openapi.json, under the same names. The SDK for
TypeScript has the same from its own make_types.py, which also selects the schemas.

usage: make_types.py [--check]"""
import importlib.util
import json
import keyword
import os
import re
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
SPEC = os.path.join(HERE, "..", "..", "spec", "openapi.json")
TARGET = os.path.join(HERE, "lodge", "records.py")
HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Written by make_types.py from spec/openapi.json: do not edit.
"""What /v1 and projects take and answer, as types of dicts."""
from __future__ import annotations

from typing import Any, Dict, List, Literal, TypedDict, Union
'''
SIMPLE = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
WIDTH = 118


def selected(spec):
    """The names that the types of TypeScript have, too."""
    path = os.path.join(HERE, "..", "typescript", "make_types.py")
    found = importlib.util.spec_from_file_location("typescript_types", path)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module.used(spec)


def text_of(description, indent):
    """A description as a string, or nothing."""
    if not description:
        return ""
    words = re.sub(r"\s+", " ", description.replace("\n- ", "; ").removeprefix("- ")).replace("\\", "\\\\")
    words += "" if words.endswith((".", "`")) and '"' not in words[-1:] else "."
    lines = textwrap.wrap(words, WIDTH - len(indent) - 6, break_long_words=False, break_on_hyphens=False)
    return f'{indent}"""' + f"\n{indent}".join(lines) + '"""\n'


def camel(name):
    return "".join(word[:1].upper() + word[1:] for word in re.split("[_-]", name))


class Writer:
    """Types in the order of the document; those of members without a name come before what has them."""

    def __init__(self, schemas):
        self.schemas, self.classes, self.aliases = schemas, [], []

    def kind(self, schema, name):
        """A schema as a type; `name` is for an object that has none."""
        if "$ref" in schema:
            return schema["$ref"].rsplit("/", 1)[1]
        if "const" in schema:
            return f"Literal[{schema['const']!r}]"
        if "enum" in schema:
            return f"Literal[{', '.join(repr(v) for v in schema['enum'])}]"
        if "allOf" in schema:
            return self.record(name, self.merged(schema), schema.get("description"))
        if "anyOf" in schema:
            return self.union([self.kind(part, f"{name}{i + 1}") for i, part in enumerate(schema["anyOf"])])
        types = schema.get("type", "object")
        return self.union([self.one(t, schema, name) for t in (types if isinstance(types, list) else [types])])

    def union(self, kinds):
        return kinds[0] if len(kinds) == 1 else f"Union[{', '.join(dict.fromkeys(kinds))}]"

    def one(self, word, schema, name):
        if word in SIMPLE:
            return SIMPLE[word]
        if word == "array":
            return f"List[{self.kind(schema['items'], name)}]"
        if "properties" in schema:
            return self.record(name, schema, schema.get("description"))
        more = schema.get("additionalProperties", True)
        return f"Dict[str, {self.kind(more, name + 'Value') if isinstance(more, dict) else 'Any'}]"

    def merged(self, schema):
        whole = {"properties": {}, "required": []}
        for part in schema["allOf"]:
            part = self.schemas[part["$ref"].rsplit("/", 1)[1]] if "$ref" in part else part
            whole["properties"].update(part["properties"])
            whole["required"] += part.get("required", [])
        return whole

    def record(self, name, schema, description):
        members = [(n, self.kind(part, name + camel(n)), part.get("description"), n in schema.get("required", ()))
                   for n, part in schema["properties"].items()]
        always = [m for m in members if m[3]]
        rest = [m for m in members if not m[3]]
        if any(keyword.iskeyword(m[0]) for m in members):
            self.classes.append(self.by_call(name, always, rest, description))
        elif always and rest:
            self.classes.append(self.by_class(f"_{name}", "TypedDict", always, None))
            self.classes.append(self.by_class(name, f"_{name}, total=False", rest, description))
        else:
            self.classes.append(self.by_class(name, "TypedDict, total=False" if rest else "TypedDict", members, description))
        return name

    def by_class(self, name, bases, members, description):
        text = text_of(description, "    ")
        body = text + ("\n" if text and members else "") + "".join(
            f"    {n}: {kind}\n{text_of(words, '    ')}" for n, kind, words, _ in members)
        return f"class {name}({bases}):\n{body or '    pass' + chr(10)}"

    def by_call(self, name, always, rest, description):
        """For members that are words of Python."""
        def call(of, members, total):
            lines = "".join(f'    "{n}": "{kind}",\n' for n, kind, _, _ in members)
            return f'{of} = TypedDict("{of}", {{\n{lines}}}{total})\n'
        out = "".join([call(f"_{name}Always", always, "") + "\n\n" if always else "",
                       call(f"_{name}Optional", rest, ", total=False")])
        bases = ", ".join([f"_{name}Always"] * bool(always) + [f"_{name}Optional"])
        return out + f"\n\nclass {name}({bases}):\n{text_of(description, '    ') or '    pass' + chr(10)}"

    def named(self, name):
        schema = self.schemas[name]
        kind = self.kind(schema, name)
        if kind != name:
            self.aliases.append(f"{name} = {kind}\n{text_of(schema.get('description'), '')}")

    def events(self, name, by_event):
        """What the lines of a stream are; `event` says which."""
        made = []
        for event, part in by_event.items():
            whole = self.merged({"allOf": [{"properties": {"event": {"const": event}}, "required": ["event"]}, part]})
            made.append(self.record(f"{name}{camel(event)}Event", whole, f"A line `{event}` of a stream"))
        self.aliases.append(f"{name}Event = {self.union(made)}\n")


def text():
    with open(SPEC, encoding="utf-8") as f:
        spec = json.load(f)
    writer = Writer(spec["components"]["schemas"])
    for name in selected(spec):
        writer.named(name)
    extended = writer.merged({"allOf": [{"$ref": "#/Session"}, {"$ref": "#/Extended"}]})
    del extended["properties"]["session"]
    writer.record("ExtendedSession", extended, "The record of a session after extend()")
    lines = spec["paths"]["/v1/sessions/{id}/exec"]["post"]["responses"]["200"]["content"]["application/x-ndjson"]
    writer.events("Exec", lines["x-lodge-events"])
    return HEAD + "".join("\n\n" + c for c in writer.classes) + "\n\n" + "\n".join(writer.aliases)


def main():
    if sys.argv[1:] == ["--check"]:
        with open(TARGET, encoding="utf-8") as f:
            if f.read() != text():
                sys.exit("lodge/records.py is not what spec/openapi.json says: run sdk/python/make_types.py")
        return
    with open(TARGET, "w", encoding="utf-8") as f:
        f.write(text())


if __name__ == "__main__":
    main()

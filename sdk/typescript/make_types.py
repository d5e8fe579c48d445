#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes src/types.ts: what /v1 and projects take and answer, from spec/openapi.json, under the same names.

usage: make_types.py [--check]"""
import json
import os
import re
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
SPEC = os.path.join(HERE, "..", "..", "spec", "openapi.json")
TARGET = os.path.join(HERE, "src", "types.ts")
HEAD = """// SPDX-License-Identifier: Apache-2.0
// What /v1 and projects take and answer. Made by make_types.py from spec/openapi.json: do not edit.
"""
SIMPLE = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
PROJECTS = ("/api/projects", "/api/teams", "/api/switch-project", "/api/cleanup-sandboxes")
REF = re.compile(r'"#/components/schemas/([A-Za-z0-9]+)"')


def used(spec):
    """Names of the schemas that calls of /v1, of projects and of operation lead to, in the document's order."""
    schemas, found = spec["components"]["schemas"], set()

    def walk(part):
        for name in REF.findall(json.dumps(part)):
            if name not in found:
                found.add(name)
                walk(schemas[name])
    for path, calls in spec["paths"].items():
        if path.startswith(("/v1/",) + PROJECTS) or path in ("/", "/health", "/ready"):
            for call in calls.values():
                if isinstance(call, dict):
                    walk(call)
    for name in ("Invalid", "Conflict", "Gone", "OutputGone", "Unavailable"):
        walk(spec["components"]["responses"][name])
    return [name for name in schemas if name in found]


def comment(text, indent):
    """A description, or nothing."""
    if not text:
        return ""
    text = re.sub(r"\s+", " ", text.replace(".\n- ", ". ").replace("\n- ", "; ").removeprefix("- ")).replace("*/", "* /")
    if len(indent) + len(text) <= 110:
        return f"{indent}/** {text} */\n"
    lines = textwrap.wrap(text, 110 - len(indent), break_long_words=False, break_on_hyphens=False)
    return "".join([f"{indent}/**\n", *[f"{indent} * {line}\n" for line in lines], f"{indent} */\n"])


def members(schema, indent):
    required, inner = set(schema.get("required", [])), indent + "  "
    out = ""
    for name, part in schema["properties"].items():
        mark = "" if name in required else "?"
        out += f"{comment(part.get('description'), inner)}{inner}{name}{mark}: {kind(part, inner)};\n".replace(": \n", ":\n")
    return "{\n" + out + indent + "}" if out else "Record<string, never>"


def union(words, indent):
    line = " | ".join(words)
    return line if len(line) < 90 else "".join(f"\n{indent}  | {word}" for word in words)


def kind(schema, indent):
    """A schema as a type."""
    if "$ref" in schema:
        return schema["$ref"].rsplit("/", 1)[1]
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return union([json.dumps(value) for value in schema["enum"]], indent)
    for word, sign in (("allOf", " & "), ("anyOf", " | ")):
        if word in schema:
            return sign.join(kind(part, indent) for part in schema[word])
    types = schema.get("type", "object")
    types = types if isinstance(types, list) else [types]
    return " | ".join(one(t, schema, indent) for t in types)


def one(name, schema, indent):
    if name in SIMPLE:
        return SIMPLE[name]
    if name == "array":
        inner = kind(schema["items"], indent)
        return f"({inner})[]" if " | " in inner else inner + "[]"
    if "properties" in schema:
        return members(schema, indent)
    more = schema.get("additionalProperties", True)
    return f"Record<string, {kind(more, indent) if isinstance(more, dict) else 'unknown'}>"


def uses(spec):
    """What each schema is for, by name: the request or response of its first call, else a part of another schema."""
    found = {}

    def note(part, sentence):
        for name in REF.findall(json.dumps(part)):
            found.setdefault(name, sentence)
    calls = [(f"`{method.upper()} {path}`", call) for path, methods in spec["paths"].items()
             for method, call in methods.items() if isinstance(call, dict)]
    for where, call in calls:
        note(call.get("requestBody", {}), f"Request of {where}.")
        for status, response in call.get("responses", {}).items():
            note(response, f"Response of {where}." if status < "300" else f"Error response, such as of {where}.")
    for name, response in spec["components"]["responses"].items():
        note(response, f"Error response `{name}`.")
    for name, schema in spec["components"]["schemas"].items():
        note(schema, f"Part of `{name}`.")
    return found


def sentence(name, schema, found):
    """A description whose first sentence stands alone."""
    description = schema.get("description", "")
    if re.match(r"[A-Z]|`\w+`[^:]", description):
        return description
    first = f"The values of `{name}`." if "enum" in schema else found.get(name, f"The schema `{name}`.")
    return f"{first} {description}".strip().replace(". - ", ".\n- ")


def text():
    with open(SPEC, encoding="utf-8") as f:
        spec = json.load(f)
    out, found = HEAD, uses(spec)
    for name in used(spec):
        schema = spec["components"]["schemas"][name]
        body = kind(schema, "")
        plain = schema.get("type") == "object" and "properties" in schema and body.startswith("{")
        out += "\n" + comment(sentence(name, schema, found), "")
        out += f"export interface {name} {body}\n" if plain else f"export type {name} = {body};\n".replace("= \n", "=\n")
    return out


def main():
    if sys.argv[1:] == ["--check"]:
        with open(TARGET, encoding="utf-8") as f:
            if f.read() != text():
                sys.exit("src/types.ts is not what spec/openapi.json says: run sdk/typescript/make_types.py")
        return
    with open(TARGET, "w", encoding="utf-8") as f:
        f.write(text())


if __name__ == "__main__":
    main()

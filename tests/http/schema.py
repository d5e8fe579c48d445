# SPDX-License-Identifier: Apache-2.0
"""The part of JSON Schema that spec/openapi.json uses. An unknown keyword is an error, so that no part of the
document goes unchecked by mistake."""
import json
import re

TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
}
WORDS = {
    "$ref", "type", "description", "default", "example", "format", "enum", "const", "minimum",
    "maximum", "minLength", "maxLength", "pattern", "items", "minItems", "properties", "required",
    "additionalProperties", "propertyNames", "maxProperties", "allOf", "anyOf", "oneOf",
}


def resolve(document, ref):
    """Follow a reference such as "#/a/b"."""
    assert ref.startswith("#/"), f"{ref}: only references within the document"
    here = document
    for part in ref[2:].split("/"):
        here = here[part.replace("~1", "/").replace("~0", "~")]
    return here


def deref(document, thing):
    while isinstance(thing, dict) and "$ref" in thing:
        thing = resolve(document, thing["$ref"])
    return thing


class Checker:
    """`closed`: an object may have only the members that its schema lists, unless the schema says otherwise. Used for
    responses, whose schemas allow members to be added later."""

    def __init__(self, document, closed=False):
        self.document, self.closed = document, closed

    def problems(self, value, schema, where="", whole=True):
        """Return all violations as messages. `whole`: this schema describes the whole value."""
        schema = deref(self.document, schema)
        found = []
        for check in (self.plain, self.text, self.list, self.object, self.several):
            found += check(value, schema, where or "it")
        if whole and isinstance(value, dict):
            found += self.undocumented(value, schema, where or "it")
        return found

    def plain(self, v, s, where):
        types = s.get("type", list(TYPES))
        types = [types] if isinstance(types, str) else types
        if not any(TYPES[t](v) for t in types):
            return [f"{where}: {json.dumps(v)[:80]} is not {' or '.join(types)}"]
        found = []
        if "enum" in s and v not in s["enum"]:
            found.append(f"{where}: {v!r} is none of {s['enum']}")
        if "const" in s and v != s["const"]:
            found.append(f"{where}: {v!r} is not {s['const']!r}")
        if TYPES["number"](v) and not s.get("minimum", v) <= v <= s.get("maximum", v):
            found.append(f"{where}: {v} is out of bounds")
        return found

    def text(self, v, s, where):
        if not isinstance(v, str):
            return []
        found = []
        if not s.get("minLength", 0) <= len(v) <= s.get("maxLength", len(v)):
            found.append(f"{where}: {len(v)} characters are too few or too many")
        if "pattern" in s and not re.search(s["pattern"], v):
            found.append(f"{where}: {v!r} does not fit {s['pattern']}")
        return found

    def list(self, v, s, where):
        if not isinstance(v, list):
            return []
        found = [f"{where}: too few"] if len(v) < s.get("minItems", 0) else []
        for i, item in enumerate(v):
            found += self.problems(item, s.get("items", {}), f"{where}[{i}]")
        return found

    def object(self, v, s, where):
        if not isinstance(v, dict):
            return []
        found = [f"{where}: no {name}" for name in s.get("required", []) if name not in v]
        if len(v) > s.get("maxProperties", len(v)):
            found.append(f"{where}: too many members")
        for name, value in v.items():
            if name in s.get("properties", {}):
                found += self.problems(value, s["properties"][name], f"{where}.{name}")
            elif isinstance(s.get("additionalProperties"), dict):
                found += self.problems(value, s["additionalProperties"], f"{where}.{name}")
            found += self.text(name, s.get("propertyNames", {}), f"{where}: the name")
        return found

    def several(self, v, s, where):
        found = []
        for part in s.get("allOf", []):
            found += self.problems(v, part, where, whole=False)
        for word, fits in (("anyOf", lambda n: n >= 1), ("oneOf", lambda n: n == 1)):
            tried = [self.problems(v, part, where, whole=False) for part in s.get(word, [])]
            if tried and not fits(sum(not t for t in tried)):
                found += [f"{where}: {word} of {len(tried)} does not hold"] + sum(tried, [])
        return found

    def names(self, schema):
        """The members the schema lists, and whether it allows others."""
        schema = deref(self.document, schema)
        more = schema.get("additionalProperties")
        names = set(schema.get("properties", {}))
        is_open = bool(more) or (more is None and (not self.closed or "type" not in schema))
        parts = schema.get("allOf", []) + schema.get("anyOf", [])
        for part in parts:
            other, _ = self.names(part)
            names |= other
        return names, is_open and not (self.closed and parts)

    def undocumented(self, v, s, where):
        names, is_open = self.names(s)
        return [] if is_open else [f"{where}: undocumented member {n}" for n in v if n not in names]


def unknown_keywords(schema, where="schema"):
    """Keywords of a schema that the checker does not know."""
    found = [f"{where}: {w}" for w in schema if w not in WORDS and not w.startswith("x-")]
    for name, part in schema.get("properties", {}).items():
        found += unknown_keywords(part, f"{where}.{name}")
    for word in ("items", "additionalProperties", "propertyNames"):
        if isinstance(schema.get(word), dict):
            found += unknown_keywords(schema[word], f"{where}.{word}")
    for word in ("allOf", "anyOf", "oneOf"):
        for i, part in enumerate(schema.get(word, [])):
            found += unknown_keywords(part, f"{where}.{word}[{i}]")
    return found

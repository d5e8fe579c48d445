# SPDX-License-Identifier: Apache-2.0
"""Sandbox has the words of spec/sdk.json, which the SDK for TypeScript has, too."""
import inspect
import json
import os
import re

import pytest
from conftest import ROOT

import lodge

with open(os.path.join(ROOT, "spec/sdk.json"), encoding="utf-8") as f:
    SPEC = json.load(f)
CLASSES = [n for n in SPEC if n[0].isupper()]
# of Files, whose other methods and options are those of lodge.Client
MORE = {"Files": {"open", "get_archive", "put_archive"}}


def options(function):
    return [p.name for p in inspect.signature(function).parameters.values()
            if p.name not in ("self", "cls") and p.kind is not p.VAR_KEYWORD]


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_the_words_of_the_specification(name):
    for cls in {getattr(lodge, name), getattr(lodge, "Async" + name, getattr(lodge, name))}:
        found = {n for n in dir(cls) if not n.startswith("_")}
        fields = set(getattr(cls, "__annotations__", {})) | {"id", "name", "created", "created_at", "state_lost", "files"}
        for word, expected in SPEC[name].items():
            if expected is None:
                assert word in found | fields, word
                assert not inspect.isfunction(inspect.getattr_static(cls, word, None)), word
            else:
                got = options(getattr(cls, word))
                assert set(got) == set(expected) if name not in MORE else set(expected) <= set(got), (word, got)
        assert found - set(SPEC[name]) <= MORE.get(name, set())


def test_errors_have_the_names_and_codes_of_the_specification():
    for name, code in SPEC["errors"].items():
        cls = getattr(lodge, name)
        assert issubclass(cls, lodge.LodgeError)
        assert code is None or cls.code == code
    assert issubclass(lodge.TimeoutError, TimeoutError) and lodge.Error is lodge.LodgeError


TYPESCRIPT = os.path.join(ROOT, "sdk/typescript/src")
IN_MS = {"timeout", "idle_timeout", "lifetime", "duration"}  # seconds in Python


def camel(word):
    first, *rest = word.split("_")
    return first + "".join(w.capitalize() for w in rest) + ("Ms" if word in IN_MS else "")


def typescript():
    """The text of every class and interface that is exported, by its name; and all texts."""
    texts = []
    for name in sorted(os.listdir(TYPESCRIPT)):
        with open(os.path.join(TYPESCRIPT, name), encoding="utf-8") as f:
            texts.append(f.read())
    found = {}
    for text in texts:
        for match in re.finditer(r"^export (?:class|interface) (\w+).*?^\}$", text, re.M | re.S):
            found.setdefault(match.group(1), match.group(0))
    return found, "\n".join(texts)


@pytest.mark.parametrize("name", CLASSES)
def test_typescript_has_the_words_of_the_specification(name):
    classes, everything = typescript()
    if name == "Files":  # its FilesClient has that name within the package
        with open(os.path.join(TYPESCRIPT, "sandbox_files.ts"), encoding="utf-8") as f:
            classes["Files"] = f.read()
    for word, expected in SPEC[name].items():
        member = re.compile(rf"^  (?:static |async |get |readonly |\*)*{camel(word)}[(<?:]", re.M)
        assert member.search(classes[name]), f"{name}.{camel(word)}"
        keywords = [p.name for p in inspect.signature(getattr(getattr(lodge, name), word)).parameters.values()
                    if p.kind is p.KEYWORD_ONLY and p.name in expected] if expected else []
        for option in keywords:
            assert re.search(rf"\b{camel(option)}\?:", everything), f"{name}.{camel(word)}: {camel(option)}"


def test_typescript_has_the_errors_of_the_specification():
    _, everything = typescript()
    assert [name for name in SPEC["errors"] if not re.search(rf"^export class {name}\b", everything, re.M)] == []

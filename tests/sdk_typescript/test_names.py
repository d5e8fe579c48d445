# SPDX-License-Identifier: Apache-2.0
"""The public names of sdk/typescript: each has a comment whose first sentence stands alone, each class has an example, and
Sandbox has the words of spec/sdk.json."""
import json
import os
import re

import pytest

from client import SOURCE
from typescript_package import class_examples, install, run

# words that need something before them
LEANS = re.compile(r"(And|Also|As it|By which|Else|How far|Instead|It|Its|Of|Or|Same|Such|That|The others?|The rest|The same|"
                   r"Their|Them|These|They|This|Those|Under|What (it|they)|Whose)\b")
# what Python takes as seconds has its unit in the name
UNITS = {"timeout": "timeoutMs", "idleTimeout": "idleTimeoutMs", "lifetime": "lifetimeMs", "seconds": "ms", "duration": "durationMs"}
# every call has these
COMMON = {"requestTimeoutMs", "signal"}
# positional here and there, so that only their place counts
PLACES = {"cmd": "command", "fn": "fn", "source": "local", "data": "input"}

with open(os.path.join(SOURCE, "spec", "sdk.json"), encoding="utf-8") as spec:
    SPEC = json.load(spec)
CLASSES = [n for n in SPEC if n[0].isupper()]


@pytest.fixture(scope="module")
def names():
    install()
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "public_names.mjs")
    return json.loads(run("node", script, "src/index.ts", "src/client.ts", "src/manager.ts"))


def complaint(sentence):
    if not re.match(r"[A-Z`]", sentence) or not sentence.endswith("."):
        return "no sentence"
    if len(sentence.split()) < 2:
        return "one word"
    return "does not stand alone" if LEANS.match(sentence) else None


def test_a_sentence_that_does_not_stand_alone_is_found():
    assert [complaint(s) for s in ("", "null: none.", "The same.", "Its record.", "Name.", "Returns the record.")] == [
        "no sentence", "no sentence", "does not stand alone", "does not stand alone", "one word", None]


def test_every_name_has_a_sentence_that_stands_alone(names):
    wrong = set()
    for x in names:
        members = [(f"{x['name']}.{m['name']}", m["docs"]) for m in x["members"] if m["file"] != "types.ts"]
        for name, docs in [(x["name"], x["docs"]), *members]:
            wrong.update((x["file"], name, complaint(s), s) for s in docs if complaint(s))
    assert len(names) > 200 and not wrong, sorted(wrong)


def test_every_class_has_an_example(names):
    """tests/sdk_typescript/test_programs.py runs them."""
    classes = {x["name"] for x in names if x["kind"] == "ClassDeclaration"}
    assert {x["name"] for x in names if x["kind"] == "ClassDeclaration" and not x["example"]} == set()
    assert {name.rsplit("_", 1)[1] for name, _ in class_examples()} == classes


def camel(word):
    word = re.sub(r"_(\w)", lambda m: m.group(1).upper(), word)
    return UNITS.get(word, word)


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_the_words_of_the_specification(names, name):
    found = {m["name"]: m for x in names if x["entry"] == "index" and x["name"] == name for m in x["members"]}
    words = {camel(word): options for word, options in SPEC[name].items()}
    assert set(words) == {n for n in found if n not in ("asyncDispose", "asyncIterator")}
    for word, options in words.items():
        if options is None:
            assert found[word]["kind"] == "property", word
            continue
        assert found[word]["kind"] == "method", word
        missing = {PLACES.get(camel(o), camel(o)) for o in options} - set(found[word]["options"])
        assert missing <= ALIASES.get((name, word), set()), (word, missing, found[word]["options"])


# the first parameters have other names: they are given by place
ALIASES = {("Sandbox", "get"): {"name"}, ("Files", "upload"): {"path"}, ("Files", "download"): {"path", "to"}, ("Files", "rename"): {"path"},
           ("Files", "write"): {"input"}}


def test_errors_have_the_names_of_the_specification(names):
    classes = {x["name"]: x for x in names if x["entry"] == "index" and x["kind"] == "ClassDeclaration"}
    for name in SPEC["errors"]:
        base = "NotFoundError" if name == "GoneError" else "LodgeError"
        assert name == "LodgeError" or classes[name]["bases"] == [base], name


@pytest.mark.parametrize("where", ["Sandbox.commands", "Sandbox.pty"])
def test_words_behind_a_method_are_deprecated_in_the_types(where):
    with open(os.path.join(SOURCE, "sdk/typescript/src/words.ts"), encoding="utf-8") as f:
        text = f.read()
    for word in SPEC["words"][where]:
        name = re.sub("_(.)", lambda m: m.group(1).upper(), word)
        assert re.search(rf'/\*\* @deprecated Use `.*\. \*/\n  readonly {name}: Hints<"{where}">\["{name}"\];', text), name

# SPDX-License-Identifier: Apache-2.0
"""Every public name of the package has a text, whose first sentence stands alone; every class has an example, which runs."""
import doctest
import inspect
import re

import pytest
from client import KEY
from ways import Way

import lodge
from lodge import client as clients

CLASSES = {name: getattr(lodge, name) for name in lodge.__all__}
CLASSES.update(Projects=clients.Projects, Teams=clients.Teams)
# texts that begin in the middle, such as "The same as it runs" and "Of a snapshot"
FRAGMENT = re.compile(r"(The same|Of |With |As |To |By |In |For |\{|[a-z_]+,)")


def members(cls):
    for name, member in inspect.getmembers(cls):
        if not name.startswith("_") and (inspect.isroutine(member) or isinstance(inspect.getattr_static(cls, name), property)):
            if getattr(member, "__objclass__", None) not in (list, BaseException, OSError) and not hasattr(list, name):
                yield name, member


def first_sentence(text):
    return inspect.cleandoc(text).split("\n\n")[0].replace("\n", " ")


def is_plain(text):
    sentence = first_sentence(text)
    return len(sentence) > 10 and sentence.endswith((".", ")")) and not FRAGMENT.match(sentence)


def test_every_class_has_a_text():
    assert [n for n, c in CLASSES.items() if not c.__doc__ or not is_plain(c.__doc__)] == []


@pytest.mark.parametrize("name", CLASSES)
def test_every_member_has_a_text(name):
    if issubclass(CLASSES[name], Exception):
        return
    of = [n for n, m in members(CLASSES[name])
          if not m.__doc__ or not is_plain(m.__doc__)]
    assert of == []


EXAMPLES = [n for n, c in CLASSES.items() if not n.startswith("Async") and not issubclass(c, BaseException)]


@pytest.mark.parametrize("name", [*EXAMPLES, "LodgeError", "CommandError"])
def test_the_example_of_a_class(name, service, monkeypatch):
    monkeypatch.setenv("LODGE_URL", service.url)
    monkeypatch.setenv("LODGE_API_KEY", KEY)
    way = Way("sync", service.url)
    with lodge.Sandbox.create(client=way.client) as box:
        test = doctest.DocTestParser().get_doctest(CLASSES[name].__doc__, {"lodge": lodge, "client": way.client, "box": box},
                                                   name, None, 0)
        assert test.examples
        printed = []
        assert doctest.DocTestRunner().run(test, out=printed.append).failed == 0, "".join(printed)
    way.close()


@pytest.mark.parametrize("text", ["The same as it runs.", "With its files.", "{killed, sandboxId}", "tenant, scope: a key.", "x"])
def test_texts_that_do_not_stand_alone_are_found(text):
    assert not is_plain(text)

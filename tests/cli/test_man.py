# SPDX-License-Identifier: Apache-2.0
"""Help texts and manual pages list exactly the options that the commands accept."""
import os
import re
import subprocess

import pytest

from client import SOURCE
from lodge import LODGE

PAGES = {
    "session": ("create", "ls", "inspect", "stop", "start", "pause", "unpause", "extend", "set", "rm", "prune"),
    "snapshot": ("snapshot", "diff", "fork", "rollback", "export", "import"),
    "user": ("user", "cleanup", "project", "team", "switch"),
    "admin": ("status", "events", "key", "bench", "completion"),
}
PAGES |= {name: (name,) for name in ("shell", "cp", "exec", "ps", "logs", "attach", "kill", "top", "policy", "login", "run",
                                     "template", "doctor")}


def output_of(*words):
    return subprocess.run([LODGE, *words], stdout=subprocess.PIPE, check=True).stdout.decode()


def forms():
    """Every command, with its options."""
    text = output_of("completion", "bash")
    return {name: set(options.split()) - {"--help"}
            for name, options in re.findall(r"^\t'([a-z ]+)'\) .* opts='([^']*)' ;;", text, re.M)}


def listed(text):
    """The options of a help text, as (letter, name)."""
    return re.findall(r"^  (?:-(.), |    )--([a-z-]+)", text, re.M)


FORMS = forms()


def test_all_commands_have_a_page():
    commands = re.findall(r"^  ([a-z]+)  ", output_of("--help"), re.M)
    assert sorted(commands) == sorted(c for names in PAGES.values() for c in names)
    assert {form.split()[0] for form in FORMS} == set(commands)


@pytest.mark.parametrize("page", PAGES)
def test_page(page):
    with open(os.path.join(SOURCE, "man", f"lodge-{page}.1.scd"), encoding="utf-8") as f:
        text = f.read()
    mine = [form for form in FORMS if form.split()[0] in PAGES[page]]
    assert set(re.findall(r"\*(--[a-z-]+)\*", text)) == set().union(*(FORMS[form] for form in mine))
    for form in mine:
        for letter, name in listed(output_of(*form.split(), "--help")):
            assert not letter or f"*-{letter}*, *--{name}*" in text, (form, name)


@pytest.mark.parametrize("form", FORMS)
def test_help(form):
    text = output_of(*form.split(), "--help")
    lines = text.splitlines()
    assert re.fullmatch(r"[A-Z].{0,60}\.", lines[0]) and lines[1] == "" and lines[2].startswith(f"Usage: lodge {form}"), text
    assert {f"--{name}" for _, name in listed(text)} | {"--url", "--key-file"} == FORMS[form] | {"--url", "--key-file"}
    assert all(len(line) <= 90 for line in lines), text
    for line in re.findall(r"^ +(?:-., )?--\S+(?: \S+)?(?:  +|\n +)(.*)$", text, re.M):
        assert 0 < len(line) <= 60, line


def read(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as f:
        return f.read()


def test_the_manual_has_all_codes_of_errors():
    codes = re.search(r"enum lodge_code \{(.*?)\};", read("include/lodge.h"), re.S).group(1)
    codes = set(re.findall(r"^\t(LODGE_[A-Z_]+)", codes, re.M)) - {"LODGE_OK"}
    assert set(re.findall(r"^\|  (LODGE_[A-Z_]+)$", read("man/liblodge.3.scd"), re.M)) == codes


def test_the_manual_names_settings_that_can_be_zero():
    text = " ".join(read("man/lodged.conf.5.scd").split()).replace("\\", "")
    says = re.search(r"0 selects the default, except .*? Defaults are", text).group(0)
    assert set(re.findall(r"_([a-z_]+)_", says)) == {"max_active", "rate", "concurrent", "import_ratio", "keep_execs_max", "keep_records_max",
                                                        "pool", "pool_min", "drain"}


def test_pages_about_the_first_hour():
    assert 'export LODGE_DATA=$PWD/demo-data' in read("docs/c.md") and "started by root are still running" in " ".join(read("docs/c.md").split())
    assert "x-api-key" in read("docs/http.md").split("## Existing clients")[1] and "`repoUrl`" in read("docs/http.md")
    for page in ("README.md", "docs/guides/first-five-minutes.md"):
        assert "Snapshots stay when their session is deleted" in read(page) and "lodge snapshot rm" in read(page), page


def test_a_letter_means_one_thing():
    meanings = {}
    for form in FORMS:
        for letter, name in listed(output_of(*form.split(), "--help")):
            if letter:
                meanings.setdefault(letter, set()).add(name)
    assert all(len(names) == 1 for names in meanings.values()), meanings
    assert {"e", "u"} <= {letter for form in ("exec", "run") for letter, _ in listed(output_of(form, "--help"))}


def test_summaries():
    for line in re.findall(r"^  [a-z]+ +(.*)$", output_of("--help"), re.M):
        assert re.fullmatch(r"[a-z].{0,59}", line) and not line.endswith("."), line

#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The code blocks of README.md, docs, the guides and the packages' READMEs, and the test that runs each of them.

A mark stands before the blocks it counts for, up to `<!-- /run -->`: `<!-- run -->` or `<!-- run: WHERE -->`. What is no
code of ours has the info string `text`, and needs none. `pages.py WHERE DIR` writes those of one mark to files that sort as
they are read."""
import glob
import os
import re
import sys

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", ".."))
PAGES = [os.path.relpath(p, TOP) for p in (os.path.join(TOP, "README.md"),
                                           *sorted(glob.glob(os.path.join(TOP, "docs/*.md"))),
                                           *sorted(glob.glob(os.path.join(TOP, "docs/guides/*.md"))),
                                           *sorted(glob.glob(os.path.join(TOP, "sdk/*/README.md"))))]
# mark: allowed info strings, and the test that runs the blocks
RUN_BY = {
    "": (("sh",), "tests/http/test_readme.py"),  # with a lodged; all blocks of a page in one shell
    "transcript": (("console",), "tests/http/test_readme.py"),  # the same; the output is compared, except IDs
    "dev": (("sh",), "tests/http/test_run.py"),  # in a checkout
    "service": (("sh",), "tests/vm/systemd.sh"),  # on a machine with systemd and the packages
    "c": (("c", "sh"), "tests/api/test_lib.py"),
    "wheel": (("sh",), "tests/sdk_python/test_package.py"),
    "pack": (("sh",), "tests/sdk_typescript/test_install.py"),
    "python": (("python",), "tests/sdk_python/test_package.py"),  # with a lodged; all blocks of a page in one process
    "mode": (("python",), "tests/sdk_python/test_package.py"),  # the same, in both modes
    "typescript": (("ts",), "tests/sdk_typescript/test_typescript.py"),  # each block is a module
}
MARK = re.compile(r"<!-- (/)?run(?:: (.*))? -->")


class Block:
    def __init__(self, page, line, where, info):
        self.page, self.line, self.where, self.info, self.text = page, line, where, info, ""

    def __repr__(self):
        return f"{self.page}:{self.line}: ```{self.info} of mark {self.where!r}"


def parse(text, page=""):
    """Return all blocks of a page in order; `where` is None for a block without a mark."""
    found, where, inside = [], None, None
    for n, line in enumerate(text.splitlines(keepends=True), 1):
        fence, mark = line.lstrip().startswith(("```", "~~~")), MARK.search(line)
        if inside and line == "```\n":
            found.append(inside)
            inside = None
        elif inside:
            assert not fence, f"{page}:{n}: nested fence"
            inside.text += line
        elif fence:
            assert line.startswith("```"), f"{page}:{n}: a fence must start its line and use ```"
            inside = Block(page, n, where, line[3:].strip())
        elif mark:
            assert mark.group(0) + "\n" == line, f"{page}:{n}: a mark must be alone on its line"
            assert bool(mark.group(1)) == (where is not None), f"{page}:{n}: marks must come in pairs"
            where = None if mark.group(1) else mark.group(2) or ""
    assert not inside and where is None, f"{page}: a fence or mark is not closed"
    return found


def read(page):
    with open(os.path.join(TOP, page), encoding="utf-8") as f:
        return parse(f.read(), page)


def blocks(where, page=None):
    """The blocks of one mark, on one page or on all."""
    return [b for p in ([page] if page else PAGES) for b in read(p) if b.where == where]


def complaints(found):
    """Yield a message for each block that no test runs."""
    for b in found:
        if b.where is None and b.info != "text":
            yield f"{b}: no mark says which test runs it"
        elif b.where is not None and b.info not in RUN_BY.get(b.where, ((), ""))[0]:
            yield f"{b}: no test runs blocks of this kind"


def main(where, directory):
    for n, b in enumerate(blocks(where), 1):
        name = re.sub(r"\W+", "-", os.path.splitext(os.path.basename(b.page))[0])
        with open(os.path.join(directory, f"{n:02}-{name}-{b.line}"), "w", encoding="utf-8") as f:
            f.write(b.text)


if __name__ == "__main__":
    main(*sys.argv[1:])

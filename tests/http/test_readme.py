# SPDX-License-Identifier: Apache-2.0
"""The commands in README.md, docs and the guides work when pasted, and some test runs every block of code there.

The blocks marked `<!-- run -->` run here: those of a page in order in one bash, so that variables persist. No command may
fail. The shell has what a reader of the page has at that point: a checkout with its build, `lodge` in the PATH, and a
lodged that created its own key, but with another data directory and port than the defaults."""
import os
import re
import shlex
import shutil
import subprocess
import tempfile

import pytest

import pages
from client import BUILD, SOURCE, Client, Lodged
from machine import remove_home

USUAL = re.compile(r"\b(127\.0\.0\.1|localhost):7070\b")
USUAL_DATA = re.compile(r"/var/lib/lodge\b")
SECONDS = 120
# Evaluate each block as if pasted; report the first failing command of a block.
RUNNER = """
trap 'failed="${failed:-$BASH_COMMAND}"' ERR
for block in "$@"; do
    failed=
    eval "$block"
    if [ -n "$failed" ]; then
        printf '\\nfailed: %s\\nin:\\n%s\\n' "$failed" "$block" >&2
        exit 1
    fi
done
"""


class Local(Lodged):
    """A lodged as `./dev run` starts it: with a key that it created, and a socket."""

    def start(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("LODGE_")}
        with open(self.home + ".log", "ab") as log:
            self.process = subprocess.Popen(
                [self.program, "--data", self.home, "--listen", "127.0.0.1:0", "--listen", f"unix:{self.home}/lodge.sock"],
                env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log)
        line = self.process.stdout.readline().decode()
        at = re.search(r"http://([0-9.]+):([0-9]+)", line)
        assert at, f"lodged did not start: {line!r} {self.log()}"
        self.host, self.port = at.group(1), int(at.group(2))

    def client(self, key=None):
        with open(os.path.join(self.home, "admin.key"), encoding="ascii") as f:
            return Client(self.host, self.port, key or f.read().strip())


@pytest.fixture(scope="module")
def lodged():
    d = Local()
    try:
        yield d
    finally:
        d.close()


@pytest.fixture
def home():
    """A data directory for commands that need no service."""
    path = tempfile.mkdtemp(prefix="lodge-http-")
    yield path
    remove_home(path)


@pytest.fixture
def paste(lodged, home, tmp_path):
    """Runs blocks one after the other, in a checkout."""
    os.symlink(BUILD, tmp_path / "build")
    for name in ("src", "include", "docs"):
        shutil.copytree(os.path.join(SOURCE, name), tmp_path / name)
    env = {k: v for k, v in os.environ.items() if not k.startswith(("LODGE_", "XDG_"))}
    env.update(LODGE_DATA=lodged.home, LODGE_HOME=home, HOME=str(tmp_path), PATH=BUILD + ":" + os.environ["PATH"])

    def here(text):
        return USUAL_DATA.sub(lodged.home, USUAL.sub(f"{lodged.host}:{lodged.port}", text))

    def run(blocks):
        return subprocess.run(["bash", "-c", RUNNER, "README.md", *[here(b.text) for b in blocks]], cwd=tmp_path, env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS,
                              check=False)

    return run


@pytest.mark.parametrize("page", [p for p in pages.PAGES if pages.blocks("", p)])
def test_commands_of_a_page(paste, page):
    done = paste(pages.blocks("", page))
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-6000:]


ID = re.compile(r"\b(ses|snp|exe|sbx)_[a-z0-9]+")


def steps(text):
    """The commands of a transcript, each with the output shown below it."""
    found = []
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append([line[2:], ""])
        else:
            found[-1][1] += line
    return found


class Step:
    def __init__(self, text):
        self.text = text


def replay(paste, text):
    """Run a transcript; return it with the real output."""
    commands = [c for c, _ in steps(text)]
    done = paste([Step(f"printf '%s' {shlex.quote('$ ' + c)}; {c}") for c in commands])
    assert done.returncode == 0, done.stdout.decode(errors="replace")
    return done.stdout.decode()


@pytest.mark.parametrize("page", sorted({b.page for b in pages.blocks("transcript")}))
def test_output_of_a_transcript(paste, page):
    text = "".join(b.text for b in pages.blocks("transcript", page))
    try:
        assert ID.sub("ID", replay(paste, text)) == ID.sub("ID", text)
    finally:
        for key in re.findall(r"^\$ lodge create (\w+)", text, re.M):
            paste([Step(f"lodge rm {key} --yes")])


def test_other_output_is_noticed(paste):
    assert replay(paste, "$ lodge --version\nno such version\n") != "$ lodge --version\nno such version\n"


def words(picture):
    """The text of the picture without what differs in every run: IDs, ages, sizes and column widths."""
    lines = re.findall(r"<text [^>]*>(.*)</text>", picture)
    lines = [re.sub(r"\b[0-9.]+[smKMG](\s|$)", "N ", ID.sub("ID", re.sub(r"<[^>]*>", "", line))).split() for line in lines]
    return [line for line in lines if line]


def test_the_picture_is_up_to_date():
    with open(os.path.join(SOURCE, "docs/terminal.svg"), encoding="utf-8") as f:
        text = f.read()
    done = subprocess.run([os.path.join(SOURCE, "tools/picture"), BUILD], stdout=subprocess.PIPE, text=True, timeout=SECONDS,
                          check=True)
    assert len(words(text)) > 20 and words(done.stdout) == words(text)
    assert len(text) < 100_000


@pytest.mark.parametrize("page", pages.PAGES)
def test_every_block_is_run(page):
    assert list(pages.complaints(pages.read(page))) == []


@pytest.mark.parametrize("page", pages.PAGES)
def test_links_to_files_work(page):
    with open(os.path.join(SOURCE, page), encoding="utf-8") as f:
        targets = re.findall(r"\]\(([^)#\s]+)", f.read())
    beside = os.path.dirname(os.path.join(SOURCE, page))
    assert [t for t in targets if ":" not in t and not os.path.exists(os.path.join(beside, t))] == []


def test_the_readme_is_short():
    assert os.path.getsize(os.path.join(SOURCE, "README.md")) <= 9000


def test_every_mark_is_used_by_its_test():
    for where, (infos, test) in pages.RUN_BY.items():
        with open(os.path.join(SOURCE, test), encoding="utf-8") as f:
            text = f.read()
        assert f'blocks("{where}"' in text or f'pages.py" {where} ' in text, (where, test)
        assert pages.blocks(where), where
        assert {b.info for b in pages.blocks(where)} == set(infos), where


EXAMPLE = """
<!-- run -->
```sh
id=$(curl -sS -f http://127.0.0.1:7070/v1/sessions -H "x-api-key: $(cat /var/lib/lodge/admin.key)" \\
  -H 'Content-Type: application/json' -d '{"key": "readme"}' | grep -o 'ses_[0-9a-z]*' | head -1)
```
and
```sh
lodge show $id
build/lodge rm $id --yes
```
<!-- /run -->
```text
false
```
"""


def test_a_working_example_passes(paste):
    done = paste(pages.parse(EXAMPLE)[:2])
    assert done.returncode == 0 and re.search(rb"^key +readme$", done.stdout, re.M), done.stdout


def test_a_failing_example_fails(paste):
    done = paste(pages.parse(EXAMPLE.replace("show $id", "show no"))[:2])
    assert done.returncode == 1 and b"failed: lodge show no" in done.stdout, done.stdout


@pytest.mark.parametrize("was, becomes, said", [
    ("<!-- run -->", "<!-- run: nowhere -->", "no test runs blocks of this kind"),
    ("```sh\nlodge", "```\nlodge", "no test runs blocks of this kind"),
    ("```sh\nlodge", "```text\nlodge", "no test runs blocks of this kind"),
    ("```text", "```", "no mark says which test"),
    ("```text", "```sh", "no mark says which test"),
    ("and", "<!-- /run -->\nand\n<!-- run: c -->\n```python\n```", "no test runs blocks of this kind"),
])
def test_blocks_that_no_test_runs_are_reported(was, becomes, said):
    assert not list(pages.complaints(pages.parse(EXAMPLE)))
    assert all(said in c for c in [*pages.complaints(pages.parse(EXAMPLE.replace(was, becomes)))] or [""])


@pytest.mark.parametrize("was, becomes", [
    ("<!-- /run -->", ""), ("<!-- run -->", ""), ("and", "<!-- run -->"), ("and", "  ```sh\n  false\n  ```"),
    ("and", "~~~\n~~~"), ("<!-- run -->", "here: <!-- run -->"), ("```text\nfalse\n```", "```text\nfalse\n")])
def test_malformed_pages_are_refused(was, becomes):
    with pytest.raises(AssertionError):
        pages.parse(EXAMPLE.replace(was, becomes))

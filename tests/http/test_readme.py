# SPDX-License-Identifier: Apache-2.0
"""The commands in README.md, docs and the guides work as they are pasted, and every block there is run by some test.

Those of the mark `<!-- run -->` are run here: a page's in order, in one bash, so that variables stay. No command of a block may
fail. The shell has what a reader has who followed the page so far: a checkout with its build, `lodge` in the PATH, and a
lodged that made its own key, with another data directory and port than the usual ones."""
import os
import re
import shlex
import shutil
import subprocess
import tempfile

import pytest

import pages
from client import BUILD, SOURCE, Client, Lodged

USUAL = re.compile(r"\b(127\.0\.0\.1|localhost):7070\b")
USUAL_DATA = re.compile(r"/var/lib/lodge\b")
SECONDS = 120
# each block by eval, as if pasted; what fails in it is told with its line
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
    """As `./dev run` starts it: with a key that it made, and a socket beside it."""

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
    """For what needs no service."""
    path = tempfile.mkdtemp(prefix="lodge-http-")
    yield path
    st = os.stat(path)
    shutil.rmtree(f"/run/lodge/{st.st_dev:x}.{st.st_ino:x}", ignore_errors=True)
    shutil.rmtree(path)


@pytest.fixture
def paste(lodged, home, tmp_path):
    """Runs commands one after the other, in a checkout."""
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
def test_page(paste, page):
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
    """Runs a transcript; returns it with the real output."""
    commands = [c for c, _ in steps(text)]
    done = paste([Step(f"printf '%s' {shlex.quote('$ ' + c)}; {c}") for c in commands])
    assert done.returncode == 0, done.stdout.decode(errors="replace")
    return done.stdout.decode()


@pytest.mark.parametrize("page", sorted({b.page for b in pages.blocks("transcript")}))
def test_transcript(paste, page):
    text = "".join(b.text for b in pages.blocks("transcript", page))
    try:
        assert ID.sub("ID", replay(paste, text)) == ID.sub("ID", text)
    finally:
        for key in re.findall(r"^\$ lodge new (\w+)", text, re.M):
            paste([Step(f"lodge rm {key} --yes")])


def test_transcript_with_other_output(paste):
    assert replay(paste, "$ lodge --version\nno such version\n") != "$ lodge --version\nno such version\n"


def words(picture):
    """The text of the picture without what differs in every run: IDs, ages, sizes, and columns that are as wide as they are."""
    lines = re.findall(r"<text [^>]*>(.*)</text>", picture)
    lines = [re.sub(r"\b[0-9.]+[smKMG](\s|$)", "N ", ID.sub("ID", re.sub(r"<[^>]*>", "", line))).split() for line in lines]
    return [line for line in lines if line]


def test_the_picture_shows_what_happens():
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


def test_who_runs_them_knows_the_mark():
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


def test_example_that_works(paste):
    done = paste(pages.parse(EXAMPLE)[:2])
    assert done.returncode == 0 and re.search(rb"^key +readme$", done.stdout, re.M), done.stdout


def test_example_that_does_not_work(paste):
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
def test_what_nobody_would_run_is_told(was, becomes, said):
    assert not list(pages.complaints(pages.parse(EXAMPLE)))
    assert all(said in c for c in [*pages.complaints(pages.parse(EXAMPLE.replace(was, becomes)))] or [""])


@pytest.mark.parametrize("was, becomes", [
    ("<!-- /run -->", ""), ("<!-- run -->", ""), ("and", "<!-- run -->"), ("and", "  ```sh\n  false\n  ```"),
    ("and", "~~~\n~~~"), ("<!-- run -->", "here: <!-- run -->"), ("```text\nfalse\n```", "```text\nfalse\n")])
def test_what_cannot_be_told_apart_is_refused(was, becomes):
    with pytest.raises(AssertionError):
        pages.parse(EXAMPLE.replace(was, becomes))

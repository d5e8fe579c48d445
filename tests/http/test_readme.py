# SPDX-License-Identifier: Apache-2.0
"""The commands in README.md and the guides work as they are pasted.

Those in blocks with the info string `sh` between `<!-- run -->` and `<!-- /run -->`, in order, in one
bash, so that variables stay. No command of a block may fail. The shell has what a reader has who
followed the page so far: LODGE and LODGE_URL are the address, LODGE_API_KEY the key, and the usual address is the
one of this test's lodged."""
import glob
import os
import re
import subprocess

import pytest

from client import BUILD, KEY, SOURCE

PAGES = ["README.md", *sorted(os.path.relpath(p, SOURCE) for p in glob.glob(os.path.join(SOURCE, "docs/guides/*.md")))]
USUAL = re.compile(r"\b(127\.0\.0\.1|localhost):7070\b")
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


def blocks(text):
    regions = re.findall(r"^<!-- run -->$(.*?)^<!-- /run -->$", text, re.S | re.M)
    assert len(regions) == text.count("<!-- run -->") == text.count("<!-- /run -->")
    found = [re.findall(r"^```sh\n(.*?)^```$", r, re.S | re.M) for r in regions]
    assert all(found), "nothing to run between <!-- run --> and <!-- /run -->"
    return sum(found, [])


def run(commands, lodged, where):
    at = f"{lodged.host}:{lodged.port}"
    os.symlink(BUILD, os.path.join(where, "build"))
    env = dict(os.environ, LODGE=f"http://{at}", LODGE_URL=f"http://{at}", LODGE_API_KEY=KEY, HOME=str(where))
    return subprocess.run(
        ["bash", "-c", RUNNER, "README.md", *[USUAL.sub(at, c) for c in commands]], cwd=where,
        env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        timeout=SECONDS, check=False)


@pytest.mark.parametrize("page", PAGES)
def test_page(lodged, tmp_path, page):
    with open(os.path.join(SOURCE, page), encoding="utf-8") as f:
        commands = blocks(f.read())
    if not commands:
        pytest.skip(f"{page} has no commands to run: nothing between <!-- run --> comments")
    done = run(commands, lodged, tmp_path)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-6000:]


EXAMPLE = """
<!-- run -->
```sh
id=$(curl -sS -f "$LODGE/v1/sessions" -H "Authorization: Bearer $LODGE_API_KEY" \\
  -H 'Content-Type: application/json' -d '{"key": "readme"}' | grep -o 'ses_[0-9a-z]*' | head -1)
```
and
```sh
curl -sS -f http://127.0.0.1:7070/v1/sessions/$id -H "x-api-key: $LODGE_API_KEY"
```
```
false
```
<!-- /run -->
```sh
false
```
"""


def test_example_that_works(lodged, tmp_path):
    done = run(blocks(EXAMPLE), lodged, tmp_path)
    assert done.returncode == 0 and b'"key":"readme"' in done.stdout, done.stdout


def test_example_that_does_not_work(lodged, tmp_path):
    done = run(blocks(EXAMPLE.replace("/$id", "/no")), lodged, tmp_path)
    assert done.returncode == 1 and b"failed: curl" in done.stdout, done.stdout

# SPDX-License-Identifier: Apache-2.0
"""sdk/typescript: its own tests, run by node --test with a lodged. Each of them is one test here."""
import contextlib
import glob
import json
import os
import re
import subprocess
import sys

import pytest

import pages
from ways import Way  # before same: it puts sdk/python on the path
import same
from client import KEY, SOURCE, certificate, is_older, routes
from typescript_package import BLOCKS, PACKAGE, SECONDS, Both, controlled, run, run_module

FILES = sorted(glob.glob(os.path.join(PACKAGE, "test", "*.test.mts")))
# routes that a client does not need: a page for people
NOT_CALLED = {("GET", "/docs")}


def names():
    """Yield (file, name) of every test in the sources."""
    for path in FILES:
        with open(path, encoding="utf-8") as f:
            text = f.read()
        for quote, name in re.findall(r'^\s*test\((["`])(.*?)\1, ', text, re.M):
            if quote == '"':
                yield os.path.basename(path), name
            else:  # in a loop: `a ${how} of it`
                words = re.search(r'for \(const (\w+) of \[([^]]*)\]', text)
                for word in re.findall(r'"(\w+)"', words.group(2)):
                    yield os.path.basename(path), name.replace("${%s}" % words.group(1), word)


@pytest.fixture(scope="module")
def checking(built):
    """Checks all types in parallel with the tests, which mostly wait."""
    process = subprocess.Popen([os.path.join("node_modules", ".bin", "tsc"), "--strict", "--noEmit"], cwd=PACKAGE,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def finish(command, env):
    """Return its status and output, also after a timeout."""
    process = subprocess.Popen(command, cwd=PACKAGE, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT)
    try:
        said, late = process.communicate(timeout=SECONDS)[0], b""
    except subprocess.TimeoutExpired:
        process.terminate()  # node ends its child processes
        said, late = process.communicate()[0], f"\nnot at its end after {SECONDS} s\n".encode()
    return process.returncode, (said + late).decode(errors="replace")


@pytest.fixture(scope="module")
def node(built, lodged, checking):
    """The results of `node --test` for a file, by name of the test: whether it passed, and the error."""
    said = {}

    def ask(name):
        if name in said:
            return said[name]
        with controlled(lodged) as at:
            env = dict(os.environ, LODGE_TEST_URL=lodged.http_url, LODGE_TEST_KEY=KEY,
                       LODGE_TEST_SOCKET=lodged.socket, LODGE_TEST_CONTROL=at)
            script = os.path.join(built, "test", name.replace(".mts", ".mjs"))
            status, text = finish(["node", "--test", "--test-reporter=tap", script], env)
        said[name] = {}
        for result in re.finditer(r"^ *(not )?ok \d+ - (.*)\n((?: .*\n)*)", text, re.M):
            said[name].setdefault(result.group(2).replace("\\#", "#"), (not result.group(1), result.group(3)))
        said[name][""] = (status == 0, text[-4000:])
        return said[name]

    return ask


# ---- tests ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("file,name", list(names()))
def test_node(node, file, name):
    results = node(file)
    ok, text = results.get(name, (False, "it did not run: " + results[""][1]))
    assert ok, text[:5000]


@pytest.mark.parametrize("file", [os.path.basename(f) for f in FILES])
def test_results_of_a_file(node, file):
    """Nothing outside the tests failed, such as an unhandled promise, and all of the tests are known here."""
    results = node(file)
    ok, text = results[""]
    assert ok, text
    known = {name for at, name in names() if at == file}
    assert {r for r in results if r and not r.endswith(".mjs")} == known


def test_every_route_is_called_by_the_client(node, lodged):
    """By the tests above, according to the log of lodged."""
    for file in FILES:
        node(os.path.basename(file))
    asked = lodged.asked()
    missing = []
    for method, path, _ in routes():
        if is_older(path):
            continue
        pattern = re.compile(re.sub(r"\\{[a-z]+\\}", "[^/]+", re.escape(path).replace(r"\{path\.\.\.\}", ".*")) + "$")
        if (method, path) not in NOT_CALLED and not any(m == method and pattern.match(p) for m, p in asked):
            missing.append((method, path))
    assert not missing


def test_types_are_strict(checking):
    said = checking.communicate(timeout=SECONDS)[0].decode(errors="replace")
    assert checking.returncode == 0, said[-6000:]


def test_types_are_up_to_date_with_the_document():
    run(sys.executable, "make_types.py", "--check")


def test_package_contents(built):
    """It has no dependencies and no registry's name, and only what it needs is published."""
    with open(os.path.join(PACKAGE, "package.json"), encoding="utf-8") as f:
        package = json.load(f)
    assert "dependencies" not in package
    # the types are those of the oldest supported Node; its Symbol.asyncDispose came with 18.18
    assert package["engines"]["node"] == f">={package['devDependencies']['@types/node'].split('.')[0]}.18"
    with open(os.path.join(PACKAGE, "package-lock.json"), encoding="utf-8") as f:
        assert "http" not in f.read()
    said = run("npm", "pack", "--dry-run", "--ignore-scripts", "--json")
    files = re.findall(r'"path": "([^"]+)"', said)
    own = ("package.json", "README.md", "LICENSE")
    assert files and all(f.startswith(("dist/", "src/")) or f in own for f in files), files


@pytest.mark.parametrize("block", range(len(BLOCKS)))
def test_code_of_a_page(built, lodged, block):
    run_module(built, lodged, f"block{block}")


@pytest.fixture(scope="module")
def typescript(built, lodged, tmp_path_factory):
    """What the words of docs/sdks.md do here."""
    script = os.path.join(built, "test", "same.mjs")
    env = dict(os.environ, LODGE_TEST_URL=lodged.http_url, LODGE_TEST_KEY=KEY, LODGE_TEST_SOCKET=lodged.socket)
    directory = str(tmp_path_factory.mktemp("same"))
    return json.loads(run("node", script, lodged.url, KEY, "typescript", directory, env=env))


@pytest.fixture(scope="module", params=["sync", "async"])
def python(request, lodged, tmp_path_factory):
    """The same in Python."""
    with contextlib.closing(Way(request.param, lodged.url)) as way:
        return same.run(way, "python-" + request.param, str(tmp_path_factory.mktemp("same")))


@pytest.mark.parametrize("word", same.documented())
def test_a_word_means_the_same_in_python(typescript, python, word):
    assert typescript[word] == python[word] == same.EXPECTED.get(word, python[word])


def test_every_word_is_documented(typescript):
    assert sorted(typescript) == sorted(same.documented())


TLS = """
import { readFileSync } from "node:fs";
import { LodgeClient } from "lodge-sandbox/client";
const [url, apiKey, cert] = process.argv.slice(2);
const client = new LodgeClient({ url, apiKey, tls: { ca: readFileSync(cert) } });
await client.enter({ key: "tls" });
const box = client.session({ key: "tls" });
const data = Buffer.alloc(1 << 20, "lodge");
await box.files.write("f", (async function* () { yield data; })());
const read = await box.files.read("f");
let out = "";
for await (const e of box.stream("wc -c < f")) if (e.event === "stdout") out += e.data;
const tty = await box.tty({ command: "echo over tls" });
for await (const bytes of tty) out += Buffer.from(bytes);
await box.delete();
const other = new LodgeClient({ url, apiKey, retryMs: 0 });
const refused = await other.health().catch((error) => error.code);
console.log(JSON.stringify([read.equals(data), out.split(/\\s+/), refused]));
"""


def test_https(built, tmp_path):
    """It works with the given certificate, and with no other."""
    cert, key = certificate(tmp_path, "here")
    script = os.path.join(built, "tls.mjs")
    with open(script, "w", encoding="utf-8") as f:
        f.write(TLS)
    d = Both(drain="1s", tls_cert=cert, tls_key=key)
    try:
        said = run("node", script, d.http_url, KEY, cert)
    finally:
        ended = d.stop()
        d.close()
    assert ended == 0 and json.loads(said) == [True, ["1048576", "over", "tls", ""], "CONNECTION"]


def test_bash_tool(built, lodged):
    """A script replaces the model: it requests commands and gets their output."""
    script = os.path.join(built, "drive.mjs")
    with open(script, "w", encoding="utf-8") as f:
        f.write(DRIVE)
    env = dict(os.environ, LODGE_URL=lodged.url, LODGE_API_KEY=KEY)
    said = run("node", script, env=env)
    assert said.splitlines()[-1] == "the answer is 42", said


def test_the_guide_has_the_example():
    with open(os.path.join(SOURCE, "docs", "examples", "bash_tool.ts"), encoding="utf-8") as f:
        text = f.read()
    assert text in [b.text for b in pages.blocks("typescript", "docs/guides/bash-tool.md")]
    assert len([line for line in text.splitlines() if line.strip() and not line.startswith("//")]) <= 30


DRIVE = """
import { runAgent } from "./build/pages/bash_tool.mjs";
const turns = [
    () => ({ bash: "echo 'print(6 * 7)' > answer.py; ls" }),
    (seen) => { if (!seen.includes("answer.py")) throw new Error(seen); return { bash: "python3 answer.py" }; },
    (seen) => { if (!seen.includes("42")) throw new Error(seen); return { bash: "exit 3" }; },
    (seen) => { if (!seen.includes("exit code 3")) throw new Error(seen); return { bash: "sleep 9", timeout_ms: 300 }; },
    (seen) => { if (!seen.includes("timeout: the command was killed")) throw new Error(seen); return { bash: "seq 1000000" }; },
    (seen) => { if (!seen.endsWith("1000000\\n\\n\\nthe beginning of the output was truncated\\nexit code 0"))
                    throw new Error(seen.slice(-99));
                return { answer: "the answer is 42" }; },
];
const model = async (messages) => turns.shift()(messages.at(-1).content);
console.log(await runAgent("bash-tool-test", "what is six times seven?", model));
"""

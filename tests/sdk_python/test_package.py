# SPDX-License-Identifier: Apache-2.0
"""The package as users get it: the wheel, the types, the README, the example."""
import ast
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile

import pages
import pytest
from client import KEY
from conftest import ROOT

import lodge
from lodge import _api

PACKAGE = os.path.join(ROOT, "sdk/python")
EXAMPLE = os.path.join(ROOT, "docs/examples/bash_tool.py")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Build and install it offline."""
    work = tmp_path_factory.mktemp("wheel")
    shutil.copytree(PACKAGE, work / "sdk/python", ignore=shutil.ignore_patterns("__pycache__"))  # pip builds in the source directory
    env = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1",
           "PATH": os.path.dirname(sys.executable) + ":" + os.environ["PATH"]}
    block, = pages.blocks("wheel")
    subprocess.run(["bash", "-ec", block.text], cwd=work, env=env, check=True)
    wheel, = work.glob("lodge_sandbox-*-py3-none-any.whl")
    target, = work.glob("venv/lib/python3*/site-packages")
    return wheel, target


def test_the_wheel(installed):
    wheel, target = installed
    names = zipfile.ZipFile(wheel).namelist()
    ours = {"lodge/" + n for n in os.listdir(os.path.join(PACKAGE, "lodge")) if n != "__pycache__"}
    assert ours <= set(names) and "lodge/py.typed" in names
    r = subprocess.run([sys.executable, "-c", "import lodge; print(lodge.__version__, lodge.__file__)"], cwd="/",
                       env={"PYTHONPATH": str(target)}, capture_output=True, text=True, check=True)
    version, place = r.stdout.split()
    assert place.startswith(str(target)) and f"lodge_sandbox-{version}-" in wheel.name


def test_the_metadata_of_the_wheel(installed):
    wheel, _ = installed
    with zipfile.ZipFile(wheel) as z:
        info = {n.rpartition("/")[2]: z.read(n).decode() for n in z.namelist() if ".dist-info/" in n}
    with open(os.path.join(ROOT, "LICENSE"), encoding="utf-8") as f:
        assert info["LICENSE"] == f.read()
    head, _, readme = info["METADATA"].partition("\n\n")
    for line in ("Name: lodge-sandbox", "License: Apache-2.0", "Requires-Python: >=3.9", "Classifier: Typing :: Typed"):
        assert line in head.splitlines(), head
    assert "Requires-Dist" not in head and "Summary: " in head


def test_the_readme_stands_alone():
    """It begins with Sandbox, and leads to no file that is not in the package."""
    with open(os.path.join(PACKAGE, "README.md"), encoding="utf-8") as f:
        text = f.read()
    assert "lodge.Sandbox.create()" in text.split("```python")[1].split("```")[0] and "../" not in text


def pythons():
    """Of the supported versions, those that are on this machine; always the one that runs this."""
    found = {sys.executable}
    for minor in range(9, 14):
        path = shutil.which(f"python3.{minor}")
        if path and subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            found.add(path)
    return sorted(found)


TRY = """
import asyncio, pathlib, lodge, lodge.records
with lodge.Sandbox.create() as box:
    assert box.run("printf 1; exit 3", on_stdout=print).exit_code == 3
    box.upload_dir("app")
    box.download_dir("app", "back")
    assert pathlib.Path("back/f").read_text() == "x"
    with box.pty("echo hi") as pty:
        assert b"hi" in b"".join(pty)
assert lodge.Sandbox.map(lambda box, n: n * int(box.run("echo 2").stdout), [1, 2], concurrency=2) == [2, 4]
async def main():
    async with await lodge.AsyncSandbox.create() as box:
        job = await box.run("echo ready; cat", background=True)
        assert await job.wait_for_log("ready") == "ready"
        await job.write("x", eof=True)
        assert (await job.wait(60)).stdout == "ready\\nx"
        async with await box.pty("echo hi") as pty:
            assert b"hi" in b"".join([piece async for piece in pty])
        await box.upload_dir("app", "a/b")
        assert await box.files.read("a/b/f") == b"x"
asyncio.run(main())
"""


@pytest.mark.parametrize("python", pythons(), ids=os.path.basename)
def test_the_wheel_on_every_python(installed, service, tmp_path, python):
    (tmp_path / "app").mkdir()
    (tmp_path / "app/f").write_text("x")
    env = {**os.environ, "PYTHONPATH": str(installed[1]), "PYTHONDONTWRITEBYTECODE": "1", "LODGE_URL": service.url,
           "LODGE_API_KEY": KEY}
    r = subprocess.run([python, "-W", "error", "-c", TRY], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert (r.returncode, r.stdout, r.stderr) == (0, "1\n", "")


# newer than Python 3.9, but accepted by its parser
LATER = {"tomllib", "aiter", "anext", "ExceptionGroup", "BaseExceptionGroup", "EncodingWarning", "add_note", "TaskGroup",
         "Runner", "timeout_at", "Barrier", "aclosing", "pairwise", "batched", "bit_count", "StrEnum", "UTC",
         "get_annotations", "Self",
         "TypeAlias", "ParamSpec", "Concatenate", "TypeGuard", "Never", "LiteralString", "NotRequired", "Required", "Unpack",
         "TypeVarTuple", "assert_never", "assert_type", "reveal_type", "override", "dataclass_transform", "EllipsisType",
         "NoneType", "UnionType", "stdlib_module_names", "orig_argv", "file_digest"}
LATER_OF = {("asyncio", "timeout"), ("contextlib", "chdir"), ("sys", "exception"), ("typing", "get_overloads")}
LATER_ARGUMENTS = {"zip": {"strict"}, "dataclass": {"slots", "kw_only", "match_args", "weakref_slot"}, "bisect": {"key"},
                   "TypeVar": {"default"}, "create_task": {"context"}}
TYPES = {"str", "bytes", "bytearray", "int", "float", "bool", "dict", "list", "tuple", "set", "object", "None", "Any"}


def sources():
    for name in os.listdir(os.path.join(PACKAGE, "lodge")):
        if name.endswith(".py"):
            with open(os.path.join(PACKAGE, "lodge", name)) as f:
                yield name, ast.parse(f.read(), feature_version=(3, 9))


def is_type(node):
    name = getattr(node, "id", getattr(node, "attr", ""))
    return isinstance(node, ast.Subscript) or (isinstance(node, ast.Constant) and node.value is None) or name in TYPES


def later(node):
    """Names in the node that Python 3.9 does not have."""
    name = getattr(node, "id", getattr(node, "attr", None))
    if isinstance(node, (ast.Name, ast.Attribute)) and name in LATER:
        yield name
    if isinstance(node, ast.Attribute) and (getattr(node.value, "id", ""), node.attr) in LATER_OF:
        yield node.attr
    if isinstance(node, ast.ImportFrom):
        yield from (a.name for a in node.names if a.name in LATER or (node.module, a.name) in LATER_OF)
    if isinstance(node, ast.Call):
        called = getattr(node.func, "id", getattr(node.func, "attr", ""))
        yield from {k.arg for k in node.keywords} & LATER_ARGUMENTS.get(called, set())
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr) and (is_type(node.left) or is_type(node.right)):
        yield "a union of types"


def test_only_the_standard_library_of_3_9():
    for name, tree in sources():
        for node in ast.walk(tree):
            found = [a.name for a in node.names] if isinstance(node, ast.Import) else \
                [node.module] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert all(m.split(".")[0] in sys.stdlib_module_names and m not in LATER for m in found), (name, found)
            assert not list(later(node)), (name, node.lineno, list(later(node)))


@pytest.mark.parametrize("text", ["asyncio.timeout(3)", "from asyncio import TaskGroup", "x: int | None",
                                  "isinstance(x, str | bytes)", "zip(a, b, strict=True)", "typing.Self",
                                  "@dataclasses.dataclass(slots=True)\nclass A: pass",
                                  "def f() -> Dict[str, int] | None: pass"])
def test_newer_features_are_detected(text):
    assert any(list(later(node)) for node in ast.walk(ast.parse(text)))


def texts(found):
    """The text of all blocks, to run in one process."""
    return "\n".join(b.text for b in found)


def run(code, environment, cwd):
    env = {**{k: v for k, v in os.environ.items() if not k.startswith("LODGE_")}, **environment, "PYTHONPATH": PACKAGE}
    r = subprocess.run([sys.executable, "-c", code], cwd=cwd, env=env, capture_output=True, text=True, timeout=120)
    assert r.returncode == 0, r.stderr
    return r.stdout


def release_home(world):
    """Another process needs exclusive use of the home."""
    if world.mode == "local":
        world.leave()


def back(world):
    if world.mode == "local":
        world.back()


def test_the_readme_in_both_modes(world, tmp_path):
    release_home(world)
    try:
        run(f"mode = {world.mode!r}\n" + texts(pages.blocks("mode")), world.environment(), tmp_path)
        assert (tmp_path / "note.txt").read_text() == "hello\n"
    finally:
        back(world)


@pytest.mark.parametrize("page", sorted({b.page for b in pages.blocks("python")}))
def test_code_of_a_page(service, tmp_path, page):
    run(texts(pages.blocks("python", page)), {"LODGE_URL": service.url, "LODGE_API_KEY": KEY}, tmp_path)


def test_the_guide_has_the_example():
    with open(EXAMPLE) as f:
        assert f.read() in [b.text for b in pages.blocks("python", "docs/guides/bash-tool.md")]


def settings_of(service):
    return {"LODGE_URL": service.url, "LODGE_API_KEY": KEY}


def test_the_example_runs(service, tmp_path):
    out = subprocess.run([sys.executable, EXAMPLE], cwd=tmp_path, timeout=120, capture_output=True, text=True,
                         env={**os.environ, **settings_of(service), "PYTHONPATH": PACKAGE}, check=True).stdout
    assert out.startswith("Linux ") and out.endswith("exit code 0\n")
    with open(EXAMPLE) as f:
        assert len([line for line in f if line.strip() and not line.startswith("#")]) <= 30


@pytest.fixture
def tool(service, monkeypatch):
    for name, value in settings_of(service).items():
        monkeypatch.setenv(name, value)
    spec = importlib.util.spec_from_file_location("bash_tool", EXAMPLE)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    yield found
    found.client.cleanup()
    found.client.close()


def test_the_example_reports_lost_files_to_the_model(tool, monkeypatch):
    assert tool.bash("ada", "lost", "touch f; ls") == "f\n\n\nexit code 0"
    made = _api.SessionApi.__init__

    def lost(self, driver, ref, entered=None, **how):
        made(self, driver, ref, entered and {**entered, "state_lost": True, "cause": None}, **how)
    with monkeypatch.context() as patched, pytest.warns(lodge.StateLostWarning):
        patched.setattr(_api.SessionApi, "__init__", lost)
        assert tool.bash("ada", "lost", "true") == "\n\nearlier files are gone\nexit code 0"
    assert tool.bash("ada", "lost", "ls") == "f\n\n\nexit code 0"


def test_the_example_reports_truncated_output_to_the_model(tool):
    said = tool.bash("ada", "cut", "head -c 3000000 /dev/zero | tr '\\0' x")
    assert said == "x" * (1 << 20) + "\n\nthe beginning of the output was truncated\nexit code 0", (len(said), said[:40], said[-80:])


def test_the_example_with_a_model(tool):
    """A script replaces the model."""
    script = ["echo 6 > n", "expr $(cat n) \\* 7", "no-such-program", "kill -9 $$"]
    seen = []

    def model(messages, tools):
        assert tools[0]["name"] == "bash"
        seen.append(messages[-1]["content"])
        step = sum(m["role"] == "assistant" for m in messages)
        return {"content": "thinking", "command": script[step]} if step < len(script) else {"content": "42"}

    assert tool.converse(model, "six times seven?", "ada", "talk") == "42"
    assert seen[0] == "six times seven?" and seen[2] == "42\n\n\nexit code 0"
    assert seen[3].endswith("\nexit code 127") and seen[4].endswith("\nkilled by signal 9")

# SPDX-License-Identifier: Apache-2.0
"""The file that `npm pack` makes, installed in other projects: ES modules, CommonJS, TypeScript without @types/node, and with
LODGE_SLOW other runtimes."""
import json
import os
import re
import shutil
import subprocess

import pytest

import pages
from client import KEY, SOURCE
from typescript_package import PACKAGE, PROGRAMS, run

NPM = ("npm", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
BODY = """
const box = await Sandbox.create({ memory: "64M" });
const result = await box.run("cat", { input: "hi" });
const missing = await Sandbox.get("no-such-name").catch((error) => error);
await box.files.write("a/b", "text");
const chunks = [];
for await (const text of await box.pty("echo shown")) chunks.push(text);
await box.uploadDir("words");
await box.downloadDir("words", "back");
const sorted = (await box.run("sort words/*")).stdout.split("\\n").length;
await box.delete();
console.log(JSON.stringify([result.stdout, missing instanceof NotFoundError, chunks.join("").trim(), sorted]));
"""
ESM = 'import { NotFoundError, Sandbox } from "lodge-sandbox";\n' + BODY
CJS = 'const { NotFoundError, Sandbox } = require("lodge-sandbox");\n(async () => {' + BODY + "})();\n"
TYPED = """
import { LodgeError, Sandbox, type Result } from "lodge-sandbox";
import { LodgeClient } from "lodge-sandbox/client";
import { SandboxSessionManager } from "lodge-sandbox/manager";

export async function use(): Promise<Result> {
  await using box = await Sandbox.create({ memory: "64M", client: new LodgeClient() });
  const bytes: Uint8Array = (await box.run("x", { text: false })).stdout;
  if (bytes.length > 5) throw new LodgeError({ code: "INVALID", message: String(new SandboxSessionManager().config) });
  const wrong: number = 1;
  return box.run("echo hi", { onStdout: (text) => text.toUpperCase() });
}
"""


@pytest.fixture(scope="module")
def tarball(built, tmp_path_factory):
    out = tmp_path_factory.mktemp("pack")
    run("npm", "run", "-s", "build:cjs", "--", "--noCheck")  # the rest is built
    run(*NPM, "pack", "--pack-destination", str(out))
    return str(next(out.glob("*.tgz")))


def test_the_commands_of_the_readme_install_the_package(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "sdk/typescript", ignore=shutil.ignore_patterns("node_modules", "build", "dist", "test"))
    (tmp_path / "package.json").write_text('{"private": true, "type": "module"}\n')
    block, = pages.blocks("pack")
    quiet = {"npm_config_audit": "false", "npm_config_fund": "false", "npm_config_prefer_offline": "true"}
    run("bash", "-ec", block.text, cwd=tmp_path, env={**os.environ, **quiet})
    said = run("node", "-e", 'import("lodge-sandbox").then((m) => console.log(m.VERSION, typeof m.Sandbox.create))', cwd=tmp_path)
    assert re.fullmatch(r"\d+\.\d+\.\d+ function\n", said), said


@pytest.fixture(scope="module")
def project(tarball, tmp_path_factory):
    """A directory in which the package is installed."""
    at = tmp_path_factory.mktemp("project")
    (at / "package.json").write_text('{"private": true}\n')
    run(*NPM, "install", "--offline", tarball, cwd=at)
    (at / "words").mkdir()
    (at / "words" / "a").write_text("b\na\n")
    (at / "use.mjs").write_text(ESM)
    (at / "use.cjs").write_text(CJS)
    return at


def use(lodged, project, *command):
    env = dict(os.environ, LODGE_URL=lodged.url, LODGE_API_KEY=KEY)
    said = run(*command, cwd=project, env=env)
    assert json.loads(said.splitlines()[-1]) == ["hi", True, "shown", 3]
    assert (project / "back" / "a").read_text() == "b\na\n"


@pytest.mark.parametrize("script", ["use.mjs", "use.cjs"])
def test_installed_package_runs_on_node(lodged, project, script):
    use(lodged, project, "node", script)


@pytest.mark.parametrize("options", [
    {"module": "NodeNext"},
    {"module": "ESNext", "moduleResolution": "Bundler", "lib": ["ES2022", "DOM"]},
    {"module": "ESNext", "moduleResolution": "Bundler", "lib": ["ES2022"]},
], ids=["default", "bundler", "no-dom"])
def test_declarations_need_no_types_of_node(project, options):
    """Every declaration is checked, and a wrong line of the project itself is found."""
    (project / "typed.mts").write_text(TYPED)
    config = {"target": "ES2022", "strict": True, "noEmit": True, "skipLibCheck": False, "types": [], "noUnusedLocals": True}
    (project / "tsconfig.json").write_text(json.dumps({"compilerOptions": {**config, **options}, "files": ["typed.mts"]}))
    done = subprocess.run([os.path.join(PACKAGE, "node_modules", ".bin", "tsc"), "-p", "."], cwd=project, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = done.stdout.decode()
    assert [line.split(":")[0] for line in said.splitlines()] == ["typed.mts(10,9)"], said
    assert not (project / "node_modules" / "@types").exists()


def test_what_is_published(project):
    at = project / "node_modules" / "lodge-sandbox"
    with open(os.path.join(SOURCE, "LICENSE"), encoding="utf-8") as f:
        assert (at / "LICENSE").read_text() == f.read()
    package = json.loads((at / "package.json").read_text())
    assert all(package[word] for word in ("description", "keywords", "author", "license", "engines"))
    assert (at / "dist" / "version.js").read_text().count(f'"{package["version"]}"') == 1
    readme = (at / "README.md").read_text()
    assert readme.index("Sandbox.create") < readme.index("LodgeClient")
    assert not re.search(r"\]\((?!https?://|#)", readme), "a link that leads nowhere on its own"
    for entry in package["exports"].values():
        for how in entry.values() if isinstance(entry, dict) else []:
            assert all((at / path).is_file() for path in how.values())
    for path in [*at.glob("dist/*.js.map"), *at.glob("dist/*.d.ts.map")]:
        sources = json.loads(path.read_text())["sources"]
        assert sources and all((path.parent / source).resolve().is_file() for source in sources), path


@pytest.mark.skipif(not os.environ.get("LODGE_SLOW"), reason="LODGE_SLOW=1 downloads other runtimes")
@pytest.mark.parametrize("runtime", ["bun", "deno"])
def test_installed_package_runs_elsewhere(lodged, project, tmp_path, runtime):
    (tmp_path / "package.json").write_text('{"private": true}\n')
    done = subprocess.run(["npm", "install", "--no-audit", "--no-fund", runtime], cwd=tmp_path, check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        pytest.skip(f"npm has no {runtime} for this machine: {done.stdout.decode()[-200:]}")
    shutil.rmtree(project / "back", ignore_errors=True)
    program = str(tmp_path / "node_modules" / ".bin" / runtime)
    use(lodged, project, program, "run", *(["-A"] if runtime == "deno" else []), "use.mjs")


def test_programs_are_not_published(project):
    assert PROGRAMS and not (project / "node_modules" / "lodge-sandbox" / "examples").exists()

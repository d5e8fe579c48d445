# SPDX-License-Identifier: Apache-2.0
"""The package of sdk/typescript, compiled with its tests and examples, and a lodged for it that can be killed."""
import contextlib
import glob
import http.server
import os
import re
import shutil
import signal
import subprocess
import threading
import urllib.parse

import pages
from client import KEY, SOURCE, SocketLodged

PACKAGE = os.path.join(SOURCE, "sdk", "typescript")
OUT = os.path.join(PACKAGE, "build")  # output of the build
PAGES = os.path.join(OUT, "pages")
SECONDS = 900 if os.environ.get("LODGE_SLOW") else 600


# ---- a lodged that can be killed ------------------------------------------------------------------


class Both(SocketLodged):
    """Its port survives restarts too."""
    port = 0

    @property
    def listen(self):
        return (f"127.0.0.1:{self.port}", self.url)

    def asked(self):
        """Method and path of all requests so far, from its log."""
        with open(self.home + ".log", encoding="utf-8", errors="replace") as f:
            return set(re.findall(r'"method":"([A-Z]+)","path":"([^"?]*)', f.read()))


def control(lodged):
    """A server through which the tests kill and start lodged."""
    def do(what, query):
        if what == "kill-sandbox":
            lodged.kill_sandbox(lodged.client().session("key:" + query["key"][0]))
        elif what in ("kill", "restart", "stop"):
            lodged.stop(signal.SIGTERM if what == "restart" else signal.SIGKILL)
        if what in ("kill", "restart", "start"):
            lodged.start()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            url, status, text = urllib.parse.urlsplit(self.path), 200, b""
            try:
                do(url.path.strip("/"), urllib.parse.parse_qs(url.query))
            except Exception as e:  # passed on to the test
                status, text = 500, repr(e).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, *_):
            pass

    return http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)


@contextlib.contextmanager
def controlled(lodged):
    server = control(lodged)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# ---- the package ----------------------------------------------------------------------------------


def run(*command, cwd=PACKAGE, **kw):
    done = subprocess.run(command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=SECONDS, check=False, **kw)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-6000:]
    return done.stdout.decode(errors="replace")


def tsc(*args):
    return run(os.path.join("node_modules", ".bin", "tsc"), *args)


def install(package=PACKAGE):
    """npm ci, unless the installed packages are of the same lock file."""
    lock, there = os.path.join(package, "package-lock.json"), os.path.join(package, "node_modules", ".of-lock")
    with open(lock, "rb") as f:
        wanted = f.read()
    with contextlib.suppress(OSError):
        with open(there, "rb") as f:
            if f.read() == wanted:
                return
    run("npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", cwd=package)
    with open(there, "wb") as f:
        f.write(wanted)


BLOCKS = pages.blocks("typescript")
PROGRAMS = {os.path.basename(p)[:-len(".ts")]: p for p in sorted(glob.glob(os.path.join(PACKAGE, "examples", "*.ts")))}
EXAMPLE = re.compile(r"@example\n \* ```ts\n((?: \*.*\n)*?) \* ```\n(?: \*.*\n)*? ?\*/\nexport class (\w+)")


def class_examples():
    """Yield the name of a class and the example in its comment."""
    for path in sorted(glob.glob(os.path.join(PACKAGE, "src", "*.ts"))):
        with open(path, encoding="utf-8") as f:
            for text, name in EXAMPLE.findall(f.read()):
                yield f"{os.path.basename(path)[:-len('.ts')]}_{name}", re.sub(r"^ \* ?", "", text, flags=re.M)


def write_pages():
    """Write each block of a page, each program and the example of each class as a module."""
    os.makedirs(PAGES)
    modules = {f"block{i}": block.text for i, block in enumerate(BLOCKS)}
    modules.update({"example_" + name: text for name, text in class_examples()})
    for name, path in {**{"program_" + n: p for n, p in PROGRAMS.items()},
                       "bash_tool": os.path.join(SOURCE, "docs", "examples", "bash_tool.ts")}.items():
        with open(path, encoding="utf-8") as f:
            modules[name] = f.read()
    for name, text in modules.items():
        with open(os.path.join(PAGES, name + ".mts"), "w", encoding="utf-8") as f:
            f.write(text + "\nexport {};\n")


def run_module(built, lodged, name, *args, **kw):
    """Run a module of write_pages() with lodged in its environment; return its output."""
    env = dict(os.environ, LODGE_URL=lodged.url, LODGE_API_KEY=KEY)
    return run("node", os.path.join(built, "build", "pages", name + ".mjs"), *args, env=env, **kw)


@contextlib.contextmanager
def build():
    """The package and its tests, compiled."""
    missing = [p for p in ("node", "npm") if not shutil.which(p)]
    assert not missing, f"{' and '.join(missing)} missing: apt-get install nodejs npm"
    install()
    shutil.rmtree(OUT, ignore_errors=True)
    shutil.rmtree(os.path.join(PACKAGE, "dist"), ignore_errors=True)
    write_pages()
    for project in ("tsconfig.build.json", "tsconfig.test.json"):
        tsc("-p", project, "--noCheck")  # test_types_are_strict checks everything once
    yield OUT
    shutil.rmtree(OUT, ignore_errors=True)

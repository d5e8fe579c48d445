# SPDX-License-Identifier: Apache-2.0
"""Starts sandboxes for the checks and reports results as TAP."""
import os
import re
import subprocess
import sys

from machine import in_terminal

HELD, BROKEN, UNJUDGED, TROUBLE = 0, 1, 77, 99
RUN_SECONDS = 300


class Tap:
    def __init__(self):
        self.n = self.failed = self.skipped = 0

    def _line(self, text):
        print(text, flush=True)

    def ok(self, good, name, text=""):
        self.n += 1
        self.failed += not good
        self._line(f"{'ok' if good else 'not ok'} {self.n} - {name}")
        if not good and text:
            self._line(f"# {text}")

    def skip(self, name, why):
        self.n += 1
        self.skipped += 1
        self._line(f"ok {self.n} - {name} # SKIP {why}")

    def result(self, status, label, text=""):
        if status == UNJUDGED:
            self.skip(label, text)
        else:
            self.ok(status == HELD, label, text if status == BROKEN else f"status {status}: {text}")

    def note(self, text):
        self._line(f"# {text}")

    def bail(self, why):
        self._line(f"Bail out! {why}")
        sys.exit(1)

    def end(self):
        self._line(f"1..{self.n}")
        good = self.n - self.failed - self.skipped
        self._line(f"# {good} good, {self.failed} failed, {self.skipped} skipped")
        return 1 if self.failed else 0


class Result:
    def __init__(self, code, out, err):
        self.code = 128 - code if code < 0 else code
        self.out, self.err = out, err

    def why(self):
        tail = (self.err.strip() or self.out.strip()).splitlines()
        return f"status {self.code}" + (f", {tail[-1]}" if tail else "")


class Lodge:
    """One lodge binary. `probe` arguments run escape-probe, `command` anything."""

    def __init__(self, binary, host):
        self.binary, self.host, self.base = binary, host, []
        r = subprocess.run([binary, "run", "--help"], capture_output=True, text=True)
        self.options = set(re.findall(r"--[a-z][a-z-]*", r.stdout + r.stderr))

    def environment(self, weaken):
        env = {k: os.environ[k] for k in ("PATH", "HOME", "XDG_RUNTIME_DIR") if k in os.environ}
        env.update(LODGE_HOME=self.host.home, ESCAPE_SECRET=self.host.secret)
        if weaken:
            env["LODGE_WEAKEN"] = weaken
        return env

    def argv(self, options, command, writable=False):
        bind = f"{self.host.probe_dir}:/probe" + (":rw" if writable else "")
        return [self.binary, "run", *self.base, "--dir", bind, *options, "--", *command]

    def probe(self, weaken):
        """The path of the probe; without a mount namespace, its path on the host."""
        if weaken and "mountns" in weaken.split(","):
            return self.host.probe
        return "/probe/escape-probe"

    def run(self, options, arguments, weaken=None, writable=False, under_tty=False):
        return self.command(options, [self.probe(weaken), *arguments], weaken, writable, under_tty)

    def command(self, options, command, weaken=None, writable=False, under_tty=False,
                seconds=RUN_SECONDS):
        argv = self.argv(options, command, writable)
        env = self.environment(weaken)
        if under_tty:
            return self._under_tty(argv, env)
        try:
            r = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, errors="replace", timeout=seconds)
        except subprocess.TimeoutExpired:
            return Result(124, "", f"did not end within {seconds} s")
        return Result(r.returncode, r.stdout, r.stderr)

    def _under_tty(self, argv, env):
        """With a controlling terminal, as at a shell prompt."""
        def act():
            # output through pipes, so that only the session uses the terminal
            r = subprocess.run(argv, env=env, stdin=subprocess.DEVNULL, capture_output=True)
            os.write(1, r.stdout + r.stderr)
            os._exit(r.returncode & 0xff)

        out, status = in_terminal(act, seconds=RUN_SECONDS)
        return Result(status, out.decode(errors="replace"), "")

    def start(self, options, command, weaken=None, stdin=subprocess.DEVNULL):
        """In the background; returns once the command printed its first line."""
        p = subprocess.Popen(self.argv(options, command), env=self.environment(weaken),
                             stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = p.stdout.readline()
        if not line:
            p.wait()
            raise RuntimeError(f"the command did not start: {p.stderr.read().strip()}")
        return p


def stop(p):
    if p.poll() is None:
        p.terminate()
        try:
            p.wait(60)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
    p.stdout.close()
    p.stderr.close()


def result_of(check, lodge, host, weaken):
    try:
        return check.run(lodge, host, weaken)
    except PermissionError as e:
        return (TROUBLE if os.geteuid() == 0 else UNJUDGED), str(e)
    except (RuntimeError, OSError) as e:
        return TROUBLE, str(e)

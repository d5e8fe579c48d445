#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the containment checks inside real sandboxes, then the usual programs (programs.py), and
prints TAP.

Environment:
  LODGE_BUILD      the build to test (default build)
  LODGE_BIN_HOOKS  a build with -Dtest_hooks=true: every check is also run in a sandbox weakened
                   by LODGE_WEAKEN and must fail there ("can fail")
  ESCAPE_PROBE     escape-probe (default: of LODGE_BUILD)
  ESCAPE_ONLY      comma-separated patterns of check names
  ESCAPE_TEMPLATE  a template with a root inside, for the root class (default: host with --root)

As root, everything runs in the runner's own mount, pid, uts and ipc namespaces. A sandbox that is
weakened on purpose shares only these, and they end with the runner.
"""
import fnmatch
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import machine  # noqa: E402
import outside  # noqa: E402
import programs  # noqa: E402
from harness import HELD, BROKEN, UNJUDGED, Lodge, Tap, result_of  # noqa: E402


def enter_namespaces():
    if os.geteuid() != 0 or os.environ.get("ESCAPE_INSIDE"):
        return
    os.environ["ESCAPE_INSIDE"] = "1"
    # shared propagation, as on most hosts: a sandbox must end it itself
    os.execvp("unshare", ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--mount-proc",
                          "--kill-child", "sh", "-c", 'mount --make-rshared / && exec "$@"', "sh",
                          sys.executable, os.path.abspath(__file__)])


class Host:
    """Facts and canaries on the host, and the directory with the probe that sandboxes mount."""

    def __init__(self, probe):
        self.dir = tempfile.mkdtemp(prefix="lodge-escape-")
        os.chmod(self.dir, 0o755)
        self.home = os.path.join(self.dir, "home")
        self.probe_dir = os.path.join(self.dir, "probe")
        canary = os.path.join(self.dir, "canary")
        os.mkdir(self.home, 0o700)
        self.mounted = os.geteuid() == 0
        if self.mounted:
            # a mount whose name is the data directory of lodge; the checks must not find it
            subprocess.run(["mount", "--bind", self.home, self.home], check=True)
        os.mkdir(self.probe_dir)
        os.mkdir(canary)
        os.chmod(canary, 0o777)
        self.probe = os.path.join(self.probe_dir, "escape-probe")
        shutil.copy(probe, self.probe)
        self.process = subprocess.Popen([self.probe, "--host", canary], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.facts = {}
        for line in self.process.stdout:
            key, _, value = line.rstrip("\n").partition("=")
            if key == "END":
                break
            self.facts[key] = value
        self.secret = "s3cret" + self.facts["TOKEN"][-8:]
        self.facts.update(LODGE_HOME=self.home, SECRET=self.secret,
                          ROOTLESS=int(os.geteuid() != 0))

    def write_facts(self, root_class):
        self.facts["CLASS"] = "root" if root_class else "user"
        with open(os.path.join(self.probe_dir, "facts"), "w") as f:
            f.writelines(f"{k}={v}\n" for k, v in self.facts.items())

    def setuid_copy(self, there):
        path = os.path.join(self.probe_dir, "setuid-probe")
        if there:
            shutil.copy(self.probe, path)
            os.chmod(path, 0o6755)
        elif os.path.exists(path):
            os.unlink(path)

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        if self.mounted:
            subprocess.run(["umount", "--lazy", self.home], check=False)
        shutil.rmtree(self.dir, ignore_errors=True)


def batches(checks, weak):
    """Groups of checks that can share one sandbox, by its options."""
    groups = {}
    for c in checks:
        if weak:
            options = c["weak_options"] if c["weak_options"] is not None else c["options"]
        else:
            options = c["options"]
        alone = c["name"] if c["options"] is not None else None
        key = (c["weaken"] or "" if weak else "", options or "", alone)
        groups.setdefault(key, []).append(c)
    return groups


def run_batch(lodge, host, checks, weaken, options):
    """{name: (status, text)} of checks run in one sandbox."""
    names = [c["name"] for c in checks]
    writable = "PROBE_RW" in options
    options = [o for o in options.split() if o != "PROBE_RW"]
    needs_setuid = "caps-setuid-file" in names
    if needs_setuid:
        host.setuid_copy(True)
    try:
        # most checks run with a controlling terminal, because the caller's terminal must not matter
        r = lodge.run(options, ["--run", *names], weaken=weaken, writable=writable,
                      under_tty="processes-own-session" in names)
    finally:
        if needs_setuid:
            host.setuid_copy(False)
    results = {}
    for line in r.out.replace("\r", "").splitlines():
        parts = line.split("\t")
        if len(parts) == 3 and parts[0] in names:
            results[parts[0]] = (int(parts[1]), parts[2])
    for name in names:
        if name in results:
            continue
        # the memory limit may kill the whole command, which is also a pass
        if name.startswith("bombs-memory-") and r.code == 137 and not weaken:
            results[name] = (HELD, "killed")
        else:
            results[name] = (r.code or 99, f"no answer: {r.why()}")
    return results


NEEDS_GROUPS = ("bombs-fork*", "bombs-threads", "bombs-memory-*")


def run_inside(tap, lodge, host, checks, label):
    if os.geteuid() != 0:
        for c in checks:
            if any(fnmatch.fnmatch(c["name"], p) for p in NEEDS_GROUPS):
                tap.skip(f"{label}{c['name']}", "an ordinary user has no cgroups")
        checks = [c for c in checks
                  if not any(fnmatch.fnmatch(c["name"], p) for p in NEEDS_GROUPS)]
    for (_, options, _), group in batches(checks, False).items():
        results = run_batch(lodge, host, group, None, options)
        for c in group:
            status, text = results[c["name"]]
            tap.result(status, f"{label}{c['name']}: {c['holds']}", text)


def run_weakened(tap, lodge, host, checks, label):
    for c in checks:
        if c["nofail"]:
            tap.note(f"{c['name']} cannot be shown to fail: {c['nofail']}")
    able = [c for c in checks if not c["nofail"]]
    for (weaken, options, _), group in batches(able, True).items():
        results = run_batch(lodge, host, group, weaken or None, options)
        for c in group:
            status, text = results[c["name"]]
            how = f"LODGE_WEAKEN={weaken}" if weaken else options
            name = f"{label}{c['name']} can fail ({how})"
            if status == UNJUDGED:
                tap.skip(name, text)
            else:
                tap.ok(status == BROKEN, name, f"status {status} {text}")


def wanted(name):
    only = os.environ.get("ESCAPE_ONLY")
    return not only or any(fnmatch.fnmatch(name, p) for p in only.split(","))


def in_class(checks, name):
    return [c for c in checks if c["class"] in (name, "both") and wanted(c["name"])]


def test_user_class(tap, lodge, hooks, host, checks):
    host.write_facts(False)
    run_inside(tap, lodge, host, in_class(checks, "user"), "")
    run_outside(tap, lodge, host, outside.CHECKS, "")
    if not hooks:
        tap.skip("every check can fail", "LODGE_BIN_HOOKS is not set")
        return
    run_weakened(tap, hooks, host, in_class(checks, "user"), "")
    run_outside_weakened(tap, hooks, host)


def run_outside(tap, lodge, host, checks, label):
    for c in checks:
        if wanted(c.name):
            status, text = result_of(c, lodge, host, None)
            tap.result(status, f"{label}{c.name}: {c.holds}", text)


def run_outside_weakened(tap, hooks, host):
    for c in outside.CHECKS:
        if not wanted(c.name):
            continue
        if c.nofail:
            tap.note(f"{c.name} cannot be shown to fail: {c.nofail}")
            continue
        status, text = result_of(c, hooks, host, c.weaken)
        name = f"{c.name} can fail (LODGE_WEAKEN={c.weaken})"
        if status == UNJUDGED:
            tap.skip(name, text)
        else:
            tap.ok(status == BROKEN, name, f"status {status} {text}")


def test_root_class(tap, lodge, host, checks):
    template = os.environ.get("ESCAPE_TEMPLATE")
    lodge.base = (["--template", template] if template else []) + ["--root"]
    host.write_facts(True)
    r = lodge.run([], ["--ids"])
    if r.code != 0:
        tap.skip("root class", f"cannot start a sandbox with root inside: {r.why()}")
    else:
        run_inside(tap, lodge, host, in_class(checks, "root"), "root class: ")
        run_outside(tap, lodge, host, [c for c in outside.CHECKS if c.root], "root class: ")
    lodge.base = []


def main():
    enter_namespaces()
    # PID 1 of a namespace ignores signals without a handler
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    binary = os.path.join(machine.build(), "lodge")
    probe = os.environ.get("ESCAPE_PROBE", os.path.join(machine.build(), "escape-probe"))
    hooks = os.environ.get("LODGE_BIN_HOOKS")
    tap = Tap()
    for path in filter(None, (binary, probe, hooks)):
        if not os.access(path, os.X_OK):
            tap.bail(f"{path} does not exist")
    listing = subprocess.run([probe, "--list"], capture_output=True, text=True, check=True).stdout
    checks = [json.loads(line) for line in listing.splitlines()]
    host = Host(probe)
    try:
        lodge = Lodge(binary, host)
        r = lodge.run([], ["--ids"])
        if r.code != 0:
            tap.bail(f"cannot start a sandbox: {r.why()}")
        test_user_class(tap, lodge, Lodge(os.path.abspath(hooks), host) if hooks else None, host,
                        checks)
        test_root_class(tap, lodge, host, checks)
        if not os.environ.get("ESCAPE_ONLY"):
            programs.test(tap, binary, host.home, host.dir)
    finally:
        host.close()
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())

# SPDX-License-Identifier: Apache-2.0
"""./dev run: the commands it prints work when pasted. The other command of a checkout, ./dev test, runs these tests."""
import os
import re
import signal
import subprocess
import tempfile

import pages
from client import BUILD, KEY, SOURCE, Client
from machine import remove_home

READY = "Ctrl-C stops the service"


def test_the_documented_commands_of_a_checkout():
    block, = pages.blocks("dev")
    assert [line.split("#")[0].split() for line in block.text.splitlines()] == [["./dev", "run"], ["./dev", "test"]]


def test_the_printed_commands_work():
    home = tempfile.mkdtemp(prefix="lodge-http-")
    env = {k: v for k, v in os.environ.items() if not k.startswith("LODGE_")}
    env.update(LODGE_BUILD=BUILD, LODGE_DATA=home)
    run = subprocess.Popen([os.path.join(SOURCE, "dev"), "run", "--listen", "127.0.0.1:0"], env=env, text=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                           start_new_session=True)
    try:
        said = ""
        for line in run.stdout:
            said += line
            if READY in line:
                break
        commands = re.findall(r"^  (curl .*)$", said, re.M)
        assert len(commands) == 3, said
        answers = [subprocess.run(["bash", "-c", c], capture_output=True, text=True, check=True).stdout for c in commands]
        assert '"outcome":"created"' in answers[0].replace(" ", "")
        assert "uid=1000" in answers[1]
        assert answers[2] == "hello\n"
        lodge = re.search(r"^  export .*\n((?:  lodge .*\n)+)", said, re.M)
        assert [line.split()[1] for line in lodge[1].splitlines()] == ["create", "exec", "cp", "shell"], said
        script = re.sub(r"^  lodge shell.*$", "", lodge[0], flags=re.M)  # needs a terminal; see tests/cli
        done = subprocess.run(["bash", "-ec", script], capture_output=True, text=True, check=True, env={**env, "HOME": home})
        assert done.stdout.startswith("ses_") and "uid=1000" in done.stdout and done.stdout.endswith("hello\n"), done
        host, port = re.search(r"http://([0-9.]+):([0-9]+)", said).groups()
        with open(os.path.join(home, "admin.key")) as f:
            assert f.read().strip() != KEY
            f.seek(0)
            assert Client(host, int(port), f.read().strip()).delete("/v1/sessions/key:me").status == 200
    finally:
        os.killpg(run.pid, signal.SIGINT)
        run.stdout.read()
        assert run.wait(60) in (0, 130)
        remove_home(home)

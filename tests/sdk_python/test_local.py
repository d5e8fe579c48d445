# SPDX-License-Identifier: Apache-2.0
"""Local mode: one process at a time has the engine of a data directory."""
import contextlib
import os
import subprocess
import sys

from places import LocalWorld

import lodge

SDK = os.path.dirname(os.path.dirname(lodge.__file__))


def run(world, text, **more):
    """Run a Python program in another process, with the world's data directory."""
    env = {**os.environ, **world.environment(), "PYTHONPATH": SDK, **more}
    return subprocess.run([sys.executable, "-c", text], env=env, capture_output=True, text=True, timeout=300)


def test_a_second_process_is_told_who_has_it_and_what_to_do(tmp_path):
    use = "import lodge; c = lodge.SandboxClient('local'); c.get_or_create_session('u', 't'); print(c.execute('echo on')['stdout'])"
    with contextlib.closing(LocalWorld()) as world:
        refused = run(world, use)
        assert refused.returncode == 1 and f"in use by process {os.getpid()} (liblodge)" in refused.stderr, refused
        assert "set LODGE_DATA to another directory" in refused.stderr and "one lodged" in refused.stderr, refused
        elsewhere = run(world, use + "; c.close_session()", LODGE_DATA=str(tmp_path))
        assert elsewhere.returncode == 0 and elsewhere.stdout == "on\n\n", elsewhere

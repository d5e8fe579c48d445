# SPDX-License-Identifier: Apache-2.0
# Bound a command, and the life of the sandbox.
import lodge

with lodge.Sandbox.create(idle_timeout=300, lifetime=3600) as box:
    print(box.run("sleep 60", timeout=0.5).timed_out)
    box.extend(600)

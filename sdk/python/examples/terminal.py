# SPDX-License-Identifier: Apache-2.0
# Type into a terminal, and show what it shows.
import lodge

with lodge.Sandbox.create() as box, box.pty("read name; echo hello $name", cols=120) as pty:
    pty.write("ada\n")
    print(b"".join(pty).decode())

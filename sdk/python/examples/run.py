# SPDX-License-Identifier: Apache-2.0
# Run a command. The sandbox is deleted at the end of the block.
import lodge

with lodge.Sandbox.create() as box:
    print(box.run("echo hi").stdout, end="")

# SPDX-License-Identifier: Apache-2.0
# Show output while the command runs.
import lodge

with lodge.Sandbox.create() as box:
    box.run("for i in 1 2 3; do echo line $i; sleep 0.1; done", on_stdout=lambda text: print(text, end=""))

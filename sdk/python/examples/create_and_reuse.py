# SPDX-License-Identifier: Apache-2.0
# Come back to the same sandbox by its name. Its files are kept.
import lodge

for _ in range(2):
    with lodge.Sandbox.get_or_create("alice", memory="256M") as box:
        box.run("echo visit >> log")
        print(box.created, box.files.read_text("log").count("visit"))

# SPDX-License-Identifier: Apache-2.0
# Save the files, try something in copies, and go back.
import lodge

with lodge.Sandbox.create() as box:
    box.files.write("plan.txt", "first")
    snapshot = box.snapshot()
    box.files.write("plan.txt", "second")
    with snapshot.fork() as copy:
        print(copy.files.read_text("plan.txt"), box.files.read_text("plan.txt"))
    snapshot.rollback()
    print(box.files.read_text("plan.txt"))

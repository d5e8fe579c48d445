# SPDX-License-Identifier: Apache-2.0
# Start a server, wait until it is ready, and find it again later.
import lodge

with lodge.Sandbox.get_or_create("server") as box:
    job = box.run("echo listening on 8080; sleep 1; echo bye", background=True)
    print(job.wait_for_log("listening"))
with lodge.Sandbox.get("server") as box:  # in another process, say
    print(box.command(job.id).wait().stdout.splitlines())

# SPDX-License-Identifier: Apache-2.0
# A failing command is a result, or with check=True an error that has it.
import lodge

with lodge.Sandbox.create() as box:
    print(box.run("exit 3").exit_code)
    try:
        box.run("echo no such target >&2; exit 2", check=True)
    except lodge.CommandError as e:
        print(e.result.exit_code, e.result.stderr, end="")

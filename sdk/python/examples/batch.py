# SPDX-License-Identifier: Apache-2.0
# One hundred programs, each in a sandbox of its own, eight at a time.
import lodge

squares = lodge.Sandbox.map(lambda box, n: int(box.run(f"echo $(({n} * {n}))").stdout), range(100))
print(sum(squares))

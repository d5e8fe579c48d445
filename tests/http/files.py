# SPDX-License-Identifier: Apache-2.0
"""What the tests of files have in common."""


def run(client, at, command, **more):
    """What it wrote, in the session at this path."""
    return client.run(at.rsplit("/", 1)[1], command, **more)

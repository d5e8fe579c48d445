# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of files."""


def run(client, at, command, **more):
    """Run a command in the session at this path; return its stdout."""
    return client.run(at.rsplit("/", 1)[1], command, **more)

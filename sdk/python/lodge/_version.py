# SPDX-License-Identifier: Apache-2.0
"""The version of this package, and whether it fits that of a service."""
VERSION = "0.1.0"


def series(version: str) -> str:
    """What two versions that fit have in common: the first number, and before 1.0 also the second."""
    return ".".join(version.split(".")[:2 if version.startswith("0.") else 1])

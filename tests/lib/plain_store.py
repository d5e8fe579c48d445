# SPDX-License-Identifier: Apache-2.0
"""A lodged whose files the tests can inspect."""
import os

from client import Lodged


class Plain(Lodged):
    """Its store has plain directories, which the tests can inspect."""

    def start(self):
        os.makedirs(os.path.join(self.home, "keeper", "store"), 0o711, exist_ok=True)
        super().start()

    def entries(self, prefix):
        return [n for n in os.listdir(os.path.join(self.keeper_home(), "store")) if n.startswith(prefix)]

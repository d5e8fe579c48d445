# SPDX-License-Identifier: Apache-2.0
"""The short version of `./dev soak sessions`: a few seconds, with and without kills."""
import random

import pytest

from engine import World
from model import Model


@pytest.mark.parametrize("store,kill,seed", [("volume", 0, 1), ("volume", 3, 2), ("dir", 0, 3),
                                             ("dir", 3, 4)])
def test_random_interleavings(store, kill, seed):
    w = World(store="dir" if store == "dir" else None)
    m = Model(w, random.Random(seed), keys=12)
    try:
        m.run(seconds=12, threads=6, kill=kill, execs=20)
        w.assert_clean("the end", seconds=60)  # large trees are removed by a child of idle priority
    finally:
        if m.engine and m.engine.process.poll() is None:
            m.engine.kill()
        w.close()

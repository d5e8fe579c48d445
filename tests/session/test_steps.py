# SPDX-License-Identifier: Apache-2.0
"""The engine is killed with SIGKILL at every named step of the source. Then the next one starts, and nothing
acknowledged is lost, nothing is incomplete, and nothing is left over."""
import contextlib
import os
import re

import pytest

from engine import Engine, wait_for
import steps_work  # noqa: F401 more scenarios
from stage import Case, Refused, Stage
from steps import KEEPER, SCENARIOS, TWICE
from world import sources

CASES = [(name, step) for name, (_, steps, _) in SCENARIOS.items() for step in steps]


# the crash suite covers the steps of the keeper and lodge-init
LAYERS = ("exec", "layers", "machine", "project", "sandbox", "service", "session", "snapshot", "store", "template")


def named_steps():
    found = set()
    for path, text in sources(*LAYERS):
        unnamed = re.findall(r'(?<![\w.>])hook_crash\([^"\n]*\)', text)
        assert not unnamed, f"{path}: hooks without a literal name: {unnamed}"
        found.update(re.findall(r'(?<![\w.>])hook_crash\("([^"]+)"\)', text))
    return found


OVER_HTTP = [os.path.join(os.path.dirname(__file__), "..", "http", n) for n in ("test_templates.py", "test_images.py", "test_disk.py")]


def test_every_step_is_tried():
    tried = {step for *_, step in CASES} | {s for _, *both in TWICE for s in both}
    for path in OVER_HTTP:  # templates are created over HTTP only; those tests have a full disk
        with open(path) as f:
            tried |= set(re.findall(r'"((?:template|promote|image|reserve):[a-z]+)"', f.read()))
    assert len(named_steps()) > 45
    assert named_steps() == tried, (f"never reached: {sorted(named_steps() - tried)}, "
                                    f"not in the source: {sorted(tried - named_steps())}")


@pytest.fixture(scope="module", params=["volume", "directory"])
def stage(request):
    with contextlib.closing(Stage(request.param)) as s:
        yield s
        if s.engine.process.poll() is not None:  # a test failed in the middle
            s.start()
        s.end()


def prepare(stage, name):
    """Run the scenario up to its yield; return the generator, the action and the engine's options."""
    fn, _, stores = SCENARIOS[name]
    if stage.kind not in stores:
        pytest.skip("not on this store")
    if stage.engine.process.poll() is not None:  # the previous test failed
        stage.start()
    rest = fn(Case(stage))
    wanted = next(rest)
    act, *options = wanted if isinstance(wanted, tuple) else (wanted,)
    return rest, act, options


def finish(stage, rest, answer, what):
    stage.start()
    stage.check(f"{what}, after the next start")
    with pytest.raises(StopIteration):
        rest.send(answer)
    stage.check(f"{what}, after use")
    stage.clear()


@pytest.mark.parametrize("name,step", CASES)
def test_the_engine_died_at(stage, name, step):
    rest, act, options = prepare(stage, name)
    answer = stage.die(step, act, *options)
    assert answer is None, f"{name} does not reach {step}: {answer}"
    finish(stage, rest, None, f"{name} at {step}")


@pytest.mark.parametrize("name,first,second", TWICE)
def test_the_engine_died_again_during_recovery(stage, name, first, second):
    rest, act, options = prepare(stage, name)
    assert stage.die(first, act, *options) is None, f"{name} does not reach {first}"
    e = Engine(stage.world, crash=second, wait=False)
    died = wait_for(lambda: e.process.poll() is not None, 120)
    e.kill()
    assert died, f"recovery from {first} does not reach {second}"
    finish(stage, rest, None, f"{name} at {first}, then {second}")


@pytest.mark.parametrize("name,step", [(name, s) for name, steps in KEEPER.items() for s in steps])
def test_the_keeper_died_at(stage, name, step):
    """Whenever it is started: the engine reports it and survives; the next engine has a keeper that does not die."""
    rest, act, options = prepare(stage, name)
    answer = stage.try_with(step, act, *options)
    if isinstance(answer, Refused):
        assert answer.code == "UNAVAILABLE" or "died" in answer.msg, answer
        answer = None
    finish(stage, rest, answer, f"{name}, the keeper at {step}")


def test_scenarios_without_a_crash(stage):
    """The checks of the scenarios hold without a crash."""
    for name, (_, _, stores) in SCENARIOS.items():
        if stage.kind in stores:
            rest, act, options = prepare(stage, name)
            answer = stage.die(None, act, *options)
            assert answer is not None, f"{name}: the engine died"
            finish(stage, rest, answer, name)

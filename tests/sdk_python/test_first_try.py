# SPDX-License-Identifier: Apache-2.0
"""What people try first with a Sandbox works, or is refused with words that help."""
import uuid

import pytest

import lodge


@pytest.fixture
def kind(way):
    """Sandbox or AsyncSandbox."""
    return lodge.Sandbox if way.kind == "sync" else lodge.AsyncSandbox


@pytest.fixture
def box(way, do, kind):
    made = do(kind.create(client=way.client))
    yield made
    do(made.close())


@pytest.mark.parametrize("name", [None, ""])
def test_a_name_that_is_missing_is_refused(way, do, kind, name):
    for call in (kind.get_or_create, kind.get):
        with pytest.raises(lodge.InvalidError, match="^name: must not be empty"):
            do(call(name, client=way.client))
    with pytest.raises(lodge.InvalidError, match="^name: must be text, not int"):
        do(kind.get_or_create(5, client=way.client))


def test_what_was_deleted_is_not_found(way, do, kind):
    name = uuid.uuid4().hex
    do(do(kind.get_or_create(name, client=way.client)).delete())
    with pytest.raises(lodge.NotFoundError) as e:
        do(kind.get(name, client=way.client))
    assert isinstance(e.value, lodge.GoneError) and e.value.code == "GONE" and "(GONE, request " in str(e.value)

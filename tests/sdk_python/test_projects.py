# SPDX-License-Identifier: Apache-2.0
"""Projects and teams: the same calls with a service and with the engine in this process."""
import contextlib

import pytest

import lodge


@pytest.fixture(scope="module")
def client(world):
    with contextlib.closing(world.projects()) as c:
        yield c


@pytest.fixture
def site(client):
    """A project of ann with two fragments."""
    client.projects.create("Site", id="site", user="ann", team="blue")
    for text in ("one", "two"):
        made = client.projects.create_fragment("site", id=text, title=text.upper(), user="ann", files={"f": text, "d/g": "x"})
        assert (made["id"], made["projectId"], made["title"], made["fileCount"]) == (text, "site", text.upper(), 2)
    yield "site"
    client.projects.kill_all_user_sandboxes()
    client.projects.delete("site", user="ann")


def test_a_user_moves_between_fragments(client, site):
    p = client.projects
    assert p.get_user_active_fragment("ann") is None
    first = p.switch_user_to_fragment("ann", site, "one")
    assert (first["restoredFiles"], first["fragmentId"], first["activeProjectId"]) == (2, "one", site)
    active = p.get_user_active_fragment("ann")
    assert (active["projectId"], active["fragmentId"], active["fragment"]["title"]) == (site, "one", "ONE")
    p.create("Other", id="other", user="ann")
    away = p.switch_user_to_project("ann", "other")
    assert (away["restoredFiles"], away["hasRestoredFiles"], away["fragmentId"]) == (0, False, None)
    back = p.switch_user_to_project("ann", site)
    assert back["hasRestoredFiles"] and not back["stateLost"]
    killed = p.kill_user_active_sandbox("ann")
    assert killed == {"killed": True, "sandboxId": back["sandboxId"]}
    assert p.kill_user_active_sandbox("ann") == {"killed": False, "sandboxId": None}
    p.delete("other", user="ann")


def test_all_sandboxes_are_killed(client, site):
    client.teams.set_member("blue", "bob", "VIEWER")
    ids = {client.projects.switch_user_to_project(user, site)["sandboxId"] for user in ("ann", "bob")}
    done = client.projects.kill_all_user_sandboxes()
    assert (done["users"], done["killed"], done["failed"], set(done["killedSandboxes"])) == (2, 2, 0, ids)
    assert client.projects.kill_all_user_sandboxes()["killed"] == 0


def test_projects_fragments_and_teams(world, client, site):
    p, t = client.projects, client.teams
    assert p.get_user_id_for_project(site) == "ann" and p.get(site)["name"] == "Site"
    assert p.get(site, user="ann") == p.get(site) and [x["id"] for x in p.list(user="ann")] == [site]
    assert [f["id"] for f in p.fragments(site, user="ann")] == ["two", "one"]
    t.set_member("blue", "bob", "VIEWER")
    assert t.set_member("blue", "bob", "MEMBER", by="ann") == {"team": "blue", "user": "bob", "role": "MEMBER"}
    assert {(m["user"], m["role"]) for m in t.members("blue")} == {("ann", "OWNER"), ("bob", "MEMBER")}
    if world.mode == "remote":  # liblodge has no list of teams
        assert [x for x in t.list() if x["team"] == "blue"] == [{"team": "blue", "members": 2, "projects": 1, "role": None}]
        assert [(x["team"], x["role"]) for x in t.list(user="bob")] == [("blue", "MEMBER")]
    assert p.create_fragment(site, user="bob", files={"x": "y"})["fileCount"] == 1
    assert t.remove_member("blue", "bob")["role"] == "MEMBER"
    assert p.delete_fragment(site, "one", user="ann")["title"] == "ONE"


@pytest.mark.parametrize("wrong, error", [
    (lambda c: c.projects.switch_user_to_fragment("ann", "site", "none"), lodge.NotFoundError),
    (lambda c: c.projects.switch_user_to_project("eve", "site"), lodge.NotFoundError),
    (lambda c: c.projects.get_user_id_for_project("none"), lodge.NotFoundError),
    (lambda c: c.projects.get("site", user="eve"), lodge.NotFoundError),
    (lambda c: c.projects.create("Again", id="site", user="ann"), lodge.ConflictError),
    (lambda c: c.projects.create("", user="ann"), lodge.InvalidError),
    (lambda c: c.projects.create("X"), lodge.InvalidError),
    (lambda c: c.projects.create(7, user="ann"), lodge.InvalidError),
    (lambda c: c.projects.create_fragment("site", user="ann", files={"../x": "y"}), lodge.InvalidError),
    (lambda c: c.projects.delete_fragment("site", "none", user="ann"), lodge.NotFoundError),
    (lambda c: c.teams.set_member("blue", "eve", "KING"), lodge.InvalidError),
    (lambda c: c.teams.set_member("blue", "eve", "OWNER", by="eve"), lodge.NotFoundError),
])
def test_errors_are_the_same_in_both_modes(client, site, wrong, error):
    with pytest.raises(error):
        wrong(client)


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="neither"):
        lodge.ProjectClient("elsewhere")

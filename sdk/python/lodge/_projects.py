# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="no-any-return"
"""Projects and teams, once for both clients, as _api.py. A user works in one sandbox, which moves between projects.

`user` is the acting user; a client with the token of one user leaves it out."""
from typing import TYPE_CHECKING, Any, Dict, Generator, Iterator, List, Mapping, Optional

from . import _calls as c
from ._http import Call, quote, request
from ._part import Part
from .errors import Error, NotFoundError
from .types import Record

if TYPE_CHECKING:
    from . import records


def _project(project: str) -> str:
    return f"/api/projects/{quote(project)}"


def _fragment(project: str, fragment: str) -> str:
    return f"{_project(project)}/fragments/{quote(fragment)}"


def _find_active(user: str) -> Generator[Call[Any], Any, Optional[Record]]:
    try:
        found = (yield c.get(f"/v1/users/{quote(user)}"))["user"]
    except NotFoundError:
        return None
    if found["project"] is None:
        return None
    active = {"projectId": found["project"], "fragmentId": found["fragment"]}
    if found["fragment"] is not None:
        try:
            active["fragment"] = yield c.get(_fragment(found["project"], found["fragment"]), pairs={"userId": user})
        except NotFoundError:
            pass  # it was deleted since
    return active


def _kill_all() -> Generator[Call[Any], Any, Record]:
    """One failure does not stop the rest."""
    of_user: Dict[str, List[str]] = {}
    after = None
    while True:
        page = yield c.get("/v1/sessions", pairs={"limit": 1000, "after": after})
        for s in page["sessions"]:
            if s["user"] is not None and s["sandbox"] is not None:
                of_user.setdefault(s["user"], []).append(s["sandbox"])
        after = page["next"]
        if not after:
            break
    done: Record = {"users": len(of_user), "killed": 0, "failed": 0, "killedSandboxes": [], "failedSandboxes": []}
    for user, sandboxes in of_user.items():
        try:
            results = yield c.post("/api/cleanup-sandboxes", {"userId": user}, c.member("results"), timeout=c.LONG)
        except Error:
            results = {"killed": 0, "failed": len(sandboxes), "killedSandboxes": [], "failedSandboxes": sandboxes}
        for name in ("killed", "failed", "killedSandboxes", "failedSandboxes"):
            done[name] += results[name]
    return done


class ProjectsApi(Part):
    """Projects, their fragments (saved sets of files), and the sandbox of each user.

    >>> made = client.projects.create("Site", user="ada")
    >>> client.projects.get_user_id_for_project(made["id"])
    'ada'
    >>> client.projects.delete(made["id"], user="ada")["name"]
    'Site'
    """

    def switch_user_to_fragment(self, user: Optional[str], project: str, fragment: Optional[str] = None) -> "records.ProjectsSwitched":
        """Move the sandbox of a user to a fragment of a project.

        The answer has sandboxId, sessionId, restoredFiles, hasRestoredFiles and more; sandboxUrl is None, and sandboxUrlReason says
        why. What the user did elsewhere is kept as the working copy of that project."""
        body = {"userId": user, "projectId": project, "fragmentId": fragment}
        return self._do(c.post("/api/switch-project", body, c.member("result"), timeout=c.LONG))

    def switch_user_to_project(self, user: Optional[str], project: str) -> "records.ProjectsSwitched":
        """Move the sandbox of a user to the user's working copy of a project, or else its latest fragment."""
        return self.switch_user_to_fragment(user, project)

    def get_user_active_fragment(self, user: str) -> Optional[Record]:
        """Return where a user is, as projectId, fragmentId and fragment; None: nowhere.

        `fragment` has its files, and is missing if it was deleted."""
        return self._do(_find_active(user))

    def kill_user_active_sandbox(self, user: Optional[str]) -> Record:
        """End the sandbox of a user; sandboxId of the answer is None if there was none."""
        def decode(reply: Any) -> Record:
            results = reply.json()["results"]
            killed = results["killedSandboxes"]
            return {"killed": results["killed"] > 0, "sandboxId": killed[0] if killed else None}
        return self._do(c.post("/api/cleanup-sandboxes", {"userId": user}, decode, timeout=c.LONG))

    def get_user_id_for_project(self, project: str) -> str:
        """Return the id of the user who owns a project."""
        return self._do(c.get(_project(project), c.member("owner")))

    def kill_all_user_sandboxes(self) -> Record:
        """End the sandboxes of all users; the answer has users, killed, failed, killedSandboxes and failedSandboxes."""
        return self._do(_kill_all())

    def create(self, name: str, *, user: Optional[str] = None, id: Optional[str] = None,
               team: Optional[str] = None) -> "records.ProjectsProject":
        """Make a project, which the user owns."""
        return self._do(c.post("/api/projects", {"userId": user, "id": id, "name": name, "team": team}))

    def get(self, project: str, *, user: Optional[str] = None) -> "records.ProjectsProject":
        """Return a project."""
        return self._do(c.get(_project(project), pairs={"userId": user}))

    def list(self, *, user: Optional[str] = None) -> Iterator["records.ProjectsProject"]:
        """Iterate over the projects that a user owns or shares by a team."""
        return self._pages(c.page("/api/projects", {"userId": user}), "projects")

    def delete(self, project: str, *, user: Optional[str] = None) -> "records.ProjectsProject":
        """Delete a project, and return it as it was."""
        return self._do(c.delete(_project(project), pairs={"userId": user}))

    def create_fragment(self, project: str, *, user: Optional[str] = None, title: Optional[str] = None,
                        files: Optional[Mapping[str, str]] = None, from_sandbox: Optional[bool] = None,
                        snapshot: Optional[str] = None, id: Optional[str] = None) -> "records.ProjectsFragmentAdded":
        """Save files (path: text, or "__BASE64__..."), those of the user's sandbox, or a snapshot as a fragment."""
        body = {"userId": user, "id": id, "title": title, "files": files, "fromSandbox": from_sandbox,
                "snapshotId": snapshot}
        return self._do(c.post(_project(project) + "/fragments", body, timeout=c.LONG))

    def fragments(self, project: str, *, user: Optional[str] = None) -> Iterator["records.ProjectsFragment"]:
        """Iterate over the fragments of a project without their files, newest first."""
        return self._pages(c.page(_project(project) + "/fragments", {"userId": user}), "fragments")

    def fragment(self, project: str, fragment: str, *, user: Optional[str] = None) -> "records.ProjectsFragmentFiles":
        """Return a fragment with its files."""
        return self._do(c.get(_fragment(project, fragment), pairs={"userId": user}))

    def delete_fragment(self, project: str, fragment: str, *, user: Optional[str] = None) -> "records.ProjectsFragment":
        """Delete a fragment."""
        return self._do(c.delete(_fragment(project, fragment), pairs={"userId": user}))


class TeamsApi(Part):
    """Teams and their members, which share projects.

    Roles are OWNER, ADMIN, MEMBER and VIEWER. `by` is the acting user; without it the application itself acts.

    >>> client.teams.set_member("crew", "ada", "OWNER")["role"]
    'OWNER'
    >>> [m["user"] for m in client.teams.members("crew")]
    ['ada']
    """

    def list(self, user: Optional[str] = None) -> Iterator["records.Team"]:
        """Iterate over all teams by name, or over those of a user with the role there."""
        return self._pages(c.page("/v1/teams", {"user": user}), "teams")

    def members(self, team: str, *, by: Optional[str] = None) -> Iterator["records.ProjectsMember"]:
        """Iterate over the members of a team."""
        return self._pages(c.page(f"/api/teams/{quote(team)}/members", {"userId": by}), "members")

    def set_member(self, team: str, user: str, role: str, *, by: Optional[str] = None) -> "records.ProjectsMember":
        """Add a user to a team, or change the role."""
        ask = request("PUT", f"/api/teams/{quote(team)}/members/{quote(user)}", {"role": role, "userId": by})
        return self._do(Call(ask, c.whole))

    def remove_member(self, team: str, user: str, *, by: Optional[str] = None) -> "records.ProjectsMember":
        """Remove a user from a team."""
        return self._do(c.delete(f"/api/teams/{quote(team)}/members/{quote(user)}", pairs={"userId": by}))

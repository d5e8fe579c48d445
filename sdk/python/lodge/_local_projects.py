# SPDX-License-Identifier: Apache-2.0
"""Projects and teams by the engine in this process: the names and results of _projects.py, from liblodge."""
import ctypes
import json
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_uint32, c_void_p
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional

from . import _native as n
from ._local import _Busy, _iso, open_engine
from ._local import _text as _checked
from .errors import InvalidError, NotFoundError, SandboxError, of_code
from .types import Record


def _fields(**types: Any) -> Any:
    return list(types.items())


class Cause(ctypes.Structure):
    _fields_ = _fields(code=c_char_p, text=c_char_p, actor=c_char_p, at=c_int64)


class Switched(ctypes.Structure):
    _fields_ = _fields(session=c_char_p, sandbox=c_char_p, project=c_char_p, fragment=c_char_p, previous=c_char_p,
                       restored_files=c_uint32, has_restored_files=c_int, state_lost=c_int, outcome=c_int,
                       cause=POINTER(Cause))


class Active(ctypes.Structure):
    _fields_ = _fields(project=c_char_p, fragment=c_char_p)


class Kill(ctypes.Structure):
    _fields_ = _fields(killed=c_int, user=c_char_p, session=c_char_p, sandbox=c_char_p, project=c_char_p)


class Kills(ctypes.Structure):
    _fields_ = _fields(items=POINTER(Kill), count=c_size_t, killed=c_size_t, failed=c_size_t)


class Project(ctypes.Structure):
    _fields_ = _fields(id=c_char_p, name=c_char_p, owner=c_char_p, team=c_char_p, created_at=c_int64)


class ProjectList(ctypes.Structure):
    _fields_ = _fields(items=POINTER(Project), count=c_size_t, next=c_int64)


class FragmentOptions(ctypes.Structure):
    _fields_ = _fields(size=c_size_t, id=c_char_p, title=c_char_p, files=c_char_p, snapshot=c_char_p,
                       from_sandbox=c_int)


class Fragment(ctypes.Structure):
    _fields_ = _fields(id=c_char_p, project=c_char_p, title=c_char_p, snapshot=c_char_p, files=c_int64, bytes=c_int64,
                       created_at=c_int64)


class FragmentList(ctypes.Structure):
    _fields_ = _fields(items=POINTER(Fragment), count=c_size_t, next=c_int64)


class Member(ctypes.Structure):
    _fields_ = _fields(user=c_char_p, role=c_char_p)


class MemberList(ctypes.Structure):
    _fields_ = _fields(items=POINTER(Member), count=c_size_t)


TAKES: Dict[str, List[Any]] = {  # after the engine; a class: a pointer to the result
    "lodge_switch_user_to_fragment": [c_char_p, c_char_p, c_char_p, Switched],
    "lodge_get_user_active_fragment": [c_char_p, Active],
    "lodge_kill_user_active_sandbox": [c_char_p, Kills],
    "lodge_kill_all_user_sandboxes": [Kills],
    "lodge_project_add": [c_char_p, c_char_p, c_char_p, c_char_p, Project],
    "lodge_get_user_id_for_project": [c_char_p, Project],
    "lodge_project_list": [c_char_p, c_int64, c_uint32, ProjectList],
    "lodge_project_remove": [c_char_p, c_char_p],
    "lodge_fragment_add": [c_char_p, c_char_p, POINTER(FragmentOptions), Fragment],
    "lodge_fragment_list": [c_char_p, c_char_p, c_int64, c_uint32, FragmentList],
    "lodge_fragment_remove": [c_char_p, c_char_p, c_char_p],
    "lodge_team_put": [c_char_p, c_char_p, c_char_p, c_char_p],
    "lodge_team_remove": [c_char_p, c_char_p, c_char_p],
    "lodge_team_list": [c_char_p, c_char_p, MemberList],
}


def _declare(lib: ctypes.CDLL) -> None:
    for name, types in TAKES.items():
        try:
            call = getattr(lib, name)
        except AttributeError as e:
            raise SandboxError(f"liblodge is older than this package: {e}") from e
        call.argtypes = [c_void_p] + [POINTER(POINTER(t)) if isinstance(t, type) and issubclass(t, ctypes.Structure) else t
                                      for t in types]
        call.restype = c_int


def _text(name: str, value: Any) -> bytes:
    try:
        return _checked(name, value)
    except SandboxError as e:
        raise InvalidError(e.message) from None


def _given(name: str, value: Optional[str]) -> Optional[bytes]:
    return None if value is None else _text(name, value)


def _named(user: Optional[str]) -> bytes:
    if user is None:
        raise InvalidError("user: missing")
    return _text("user", user)


def _str(value: bytes) -> str:
    return value.decode("utf-8", "replace")


def _or_none(value: bytes) -> Optional[str]:
    return _str(value) or None


def _project(p: Project) -> Record:
    return {"id": _str(p.id), "name": _str(p.name), "owner": _str(p.owner), "team": _or_none(p.team),
            "createdAt": _iso(p.created_at)}


def _fragment(f: Fragment) -> Record:
    return {"id": _str(f.id), "projectId": _str(f.project), "title": _or_none(f.title),
            "snapshotId": _or_none(f.snapshot), "fileCount": f.files, "bytes": f.bytes, "createdAt": _iso(f.created_at)}


class _Local:
    def __init__(self) -> None:
        self._engine = open_engine()
        _declare(self._engine.lib)

    def _call(self, name: str, *args: Any, decode: Optional[Callable[[Any], Any]] = None) -> Any:
        """The decoded result, if the function has one; None if it is NULL."""
        with _Busy(self._engine) as e:
            result = TAKES[name][-1] if decode else None
            found = POINTER(result)() if result else None
            more = [ctypes.byref(found)] if found is not None else []
            if getattr(e.lib, name)(e.handle, *args, *more) < 0:
                raise of_code(n.CODES[e.lib.lodge_last_code()], _str(e.lib.lodge_last_error()))
            if decode is None or not found:
                return None
            try:
                return decode(found.contents)
            finally:
                e.lib.lodge_free(found)

    def _pages(self, name: str, *args: Any, decode: Callable[[Any], Record]) -> Iterator[Record]:
        def page(found: Any) -> Any:
            return [decode(found.items[i]) for i in range(found.count)], found.next
        after = 0
        while True:
            items, after = self._call(name, *args, after, 0, decode=page)
            yield from items
            if not after:
                return


def _switched(s: Switched) -> Record:
    cause = s.cause.contents if s.state_lost and s.cause else None
    return {"sandboxId": _str(s.sandbox), "sandboxUrl": None, "restoredFiles": s.restored_files,
            "hasRestoredFiles": bool(s.has_restored_files), "fragmentId": _or_none(s.fragment),
            "activeProjectId": _str(s.project), "activeFragmentId": _or_none(s.fragment),
            "stateLost": bool(s.state_lost),
            "cause": cause and {"code": _str(cause.code), "text": _str(cause.text), "at": _iso(cause.at)}}


def _killed(found: Kills) -> Record:
    """As /api/cleanup-sandboxes has it."""
    items = [found.items[i] for i in range(found.count)]
    return {"users": len({k.user for k in items}), "killed": found.killed, "failed": found.failed,
            "killedSandboxes": [_str(k.sandbox) for k in items if k.killed],
            "failedSandboxes": [_str(k.sandbox) for k in items if not k.killed]}


class LocalProjects(_Local):
    def switch_user_to_fragment(self, user: Optional[str], project: str, fragment: Optional[str] = None) -> Record:
        made: Record = self._call("lodge_switch_user_to_fragment", _named(user), _text("project", project),
                                  _given("fragment", fragment), decode=_switched)
        return made

    def switch_user_to_project(self, user: Optional[str], project: str) -> Record:
        return self.switch_user_to_fragment(user, project)

    def get_user_active_fragment(self, user: str) -> Optional[Record]:
        active: Optional[Record] = self._call(
            "lodge_get_user_active_fragment", _named(user),
            decode=lambda a: {"projectId": _str(a.project), "fragmentId": _or_none(a.fragment)})
        if active and active["fragmentId"]:
            found = [f for f in self.fragments(active["projectId"], user=user) if f["id"] == active["fragmentId"]]
            active.update({"fragment": f for f in found})
        return active

    def kill_user_active_sandbox(self, user: Optional[str]) -> Record:
        done = self._call("lodge_kill_user_active_sandbox", _named(user), decode=_killed)
        return {"killed": done["killed"] > 0, "sandboxId": (done["killedSandboxes"] or [None])[0]}

    def get_user_id_for_project(self, project: str) -> str:
        return str(self.get(project)["owner"])

    def kill_all_user_sandboxes(self) -> Record:
        return dict(self._call("lodge_kill_all_user_sandboxes", decode=_killed))

    def create(self, name: str, *, user: Optional[str] = None, id: Optional[str] = None,
               team: Optional[str] = None) -> Record:
        return dict(self._call("lodge_project_add", _named(user), _given("id", id), _text("name", name),
                               _given("team", team), decode=_project))

    def get(self, project: str, *, user: Optional[str] = None) -> Record:
        if user is None:
            return dict(self._call("lodge_get_user_id_for_project", _text("project", project), decode=_project))
        for p in self.list(user=user):
            if p["id"] == project:
                return p
        raise NotFoundError("Project not found")

    def list(self, *, user: Optional[str] = None) -> Iterator[Record]:
        return self._pages("lodge_project_list", _named(user), decode=_project)

    def delete(self, project: str, *, user: Optional[str] = None) -> Record:
        was = self.get(project, user=user)
        self._call("lodge_project_remove", _named(user), _text("project", project))
        return was

    def create_fragment(self, project: str, *, user: Optional[str] = None, title: Optional[str] = None,
                        files: Optional[Mapping[str, str]] = None, from_sandbox: Optional[bool] = None,
                        snapshot: Optional[str] = None, id: Optional[str] = None) -> Record:
        want = FragmentOptions(
            size=ctypes.sizeof(FragmentOptions), id=_given("id", id), title=_given("title", title),
            files=None if files is None else json.dumps(dict(files)).encode(), snapshot=_given("snapshot", snapshot),
            from_sandbox=bool(from_sandbox))
        return dict(self._call("lodge_fragment_add", _named(user), _text("project", project), ctypes.byref(want),
                               decode=_fragment))

    def fragments(self, project: str, *, user: Optional[str] = None) -> Iterator[Record]:
        return self._pages("lodge_fragment_list", _named(user), _text("project", project), decode=_fragment)

    def delete_fragment(self, project: str, fragment: str, *, user: Optional[str] = None) -> Record:
        for f in self.fragments(project, user=user):
            if f["id"] == fragment:
                self._call("lodge_fragment_remove", _named(user), _text("project", project), _text("fragment", fragment))
                return f
        raise NotFoundError(f"Fragment not found: {fragment}")


class LocalTeams(_Local):
    def _member(self, team: str, user: str, by: Optional[str]) -> Record:
        for m in self.members(team, by=by):
            if m["user"] == user:
                return m
        raise NotFoundError(f"{user} is not a member of team {team}")

    def members(self, team: str, *, by: Optional[str] = None) -> Iterator[Record]:
        def decode(found: MemberList) -> List[Record]:
            return [{"team": team, "user": _str(found.items[i].user), "role": _str(found.items[i].role)}
                    for i in range(found.count)]
        return iter(self._call("lodge_team_list", _given("by", by), _text("team", team), decode=decode))

    def set_member(self, team: str, user: str, role: str, *, by: Optional[str] = None) -> Record:
        self._call("lodge_team_put", _given("by", by), _text("team", team), _text("user", user), _text("role", role))
        return {"team": team, "user": user, "role": role}

    def remove_member(self, team: str, user: str, *, by: Optional[str] = None) -> Record:
        was = self._member(team, user, by)
        self._call("lodge_team_remove", _given("by", by), _text("team", team), _text("user", user))
        return was

# SPDX-License-Identifier: Apache-2.0
"""Options of a Sandbox as people write them, and as the API takes them."""
import difflib
import functools
import inspect
import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Type, TypeVar, Union

from ._calls import ms
from ._words import OPTIONS
from .errors import InvalidError

Size = Union[int, str]
T = TypeVar("T")
UNSET: Any = object()  # an argument that was not given, where None means something
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)", re.IGNORECASE)
_SHIFTS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}
# of the request: what callers of Sandbox know it as
NAMES = {"limits.memory_bytes": "memory", "limits.cpus": "cpus", "limits.disk_bytes": "disk", "limits.pids": "processes",
         "limits.file_bytes": "file_size",
         "idle_timeout_ms": "idle_timeout", "lifetime_ms": "lifetime", "max_lifetime_ms": "lifetime"}


def check_name(name: object) -> None:
    if name is None or name == "":
        raise InvalidError("name: must not be empty")
    if not isinstance(name, str):
        raise InvalidError(f"name: must be text, not {type(name).__name__}")


def size_of(name: str, size: Optional[Size]) -> Optional[int]:
    """Bytes of "512M", "1.5G" or a number."""
    if size is None or (isinstance(size, int) and not isinstance(size, bool)):
        return size
    found = _SIZE.fullmatch(size.strip()) if isinstance(size, str) else None
    if not found:
        raise InvalidError(f'{name}: {size!r} is not a size; use a number of bytes, or text such as "512M" or "2G"')
    return int(float(found.group(1)) * (1 << _SHIFTS[found.group(2).upper()]))


def limits_of(memory: Optional[Size], cpus: Optional[float], disk: Optional[Size], processes: Optional[int],
              file_size: Optional[Size]) -> Dict[str, Any]:
    wanted = {"memory_bytes": size_of("memory", memory), "cpus": cpus, "disk_bytes": size_of("disk", disk),
              "pids": processes, "file_bytes": size_of("file_size", file_size)}
    return {k: v for k, v in wanted.items() if v is not None}


def session_of(*, memory: Optional[Size], cpus: Optional[float], disk: Optional[Size], processes: Optional[int],
               file_size: Optional[Size], idle_timeout: Optional[float], lifetime: Optional[float], **same: Any) -> Dict[str, Any]:
    """The fields of POST /v1/sessions."""
    body = {**same, "limits": limits_of(memory, cpus, disk, processes, file_size) or None,
            "idle_timeout_ms": ms("idle_timeout", idle_timeout) or None, "lifetime_ms": ms("lifetime", lifetime) or None}
    return {k: v for k, v in body.items() if v is not None}


def names_of(fields: Sequence[str]) -> List[str]:
    return list(dict.fromkeys(NAMES.get(name, name) for name in fields))


SECONDS = ("timeout", "idle_timeout", "lifetime")


def unknown_option(method: str, name: str, known: Sequence[str]) -> TypeError:
    plain = name.replace("_", "").lower()
    near = [n for n in OPTIONS.get(plain, ()) if n in known] or difflib.get_close_matches(name, known, 1, 0.5)
    hint = "it takes " + ", ".join(known)
    if near:
        unit = ", in seconds" if plain.endswith("ms") and near[0] in SECONDS else ""
        hint = f"did you mean {' or '.join(filter(None, (', '.join(map(repr, near[:-1])), repr(near[-1]))))}{unit}?"
    return TypeError(f"{method}(): unknown option {name!r}; {hint}")


# what a value by its place was meant for, where that is likely
_MEANT = {"create": "create(name={0!r}), or create(template={0!r})", "run": "run([{0}]) for a program with arguments"}


def too_many(method: str, values: Sequence[object], most: int) -> TypeError:
    said = ", ".join(map(repr, values[:4])) if method == "run" else values[0]
    meant = _MEANT.get(method, "").format(said)
    takes = f"at most {most} value{'s'[:most != 1]} without a name" if most else "its options by name"
    return TypeError(f"{method}() takes {takes}" + (f"; use {meant}" if meant else ""))


def _checked(function: Callable[..., Any], owner: Optional[type] = None) -> Callable[..., Any]:
    """owner: of a method of objects."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    known = [p.name for p in parameters]
    most = sum(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        if owner and not (args and isinstance(args[0], owner)):
            shown = owner.__name__[:-len("Api")]
            how = f"; use {shown}.get(name).{function.__name__}()" if shown == "Sandbox" else ""
            raise TypeError(f"{function.__name__}() is a method of a {shown} object, not of the class{how}")
        for name in options:
            if name not in known:
                raise unknown_option(function.__name__, name, known)
        if len(args) - 1 > most:
            raise too_many(function.__name__, args[1:], most)
        return function(*args, **options)
    return call


def _is_open(function: Callable[..., Any]) -> bool:
    """It takes any option."""
    return any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values())


def named_options(cls: Type[T]) -> Type[T]:
    """Public methods of the class name the nearest option when they do not know one."""
    members: Mapping[str, Any] = dict(vars(cls))
    for name, member in members.items():
        method = member.__func__ if isinstance(member, classmethod) else member
        if name.startswith("_") or not inspect.isfunction(method) or _is_open(method):
            continue
        setattr(cls, name, classmethod(_checked(method)) if isinstance(member, classmethod) else _checked(method, cls))
    return cls

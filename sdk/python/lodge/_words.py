# SPDX-License-Identifier: Apache-2.0
"""Words that users of other services type first, and what lodge calls the same; spec/sdk.json has them for both SDKs."""
from typing import Any, Callable, Dict, List, Optional, Type, TypeVar

T = TypeVar("T")
# "=name" works as that name; everything else is what an error recommends
WORDS: Dict[str, Dict[str, str]] = {
    "Sandbox class": {
        "connect": "=get", "kill": "get(id), then delete()",
    },
    "Sandbox": {
        "kill": "=delete", "sandbox_id": "=id", "set_timeout": "extend(), which postpones expires_at",
        "keep_alive": "extend(), which postpones expires_at",
        "get_host": "run() with a client inside the sandbox: its ports cannot be reached from outside",
        "run_code": 'run(["python3", "-c", code])', "get_info": "refresh(), then state, name and expires_at",
        "get_metrics": "stats()",
        "beta_pause": "pause(), which keeps the processes, or hibernate(), which keeps the files",
        "create_snapshot": "snapshot()", "download_url": "files.download()", "upload_url": "files.upload()",
        "process": "run()", "exec": "run()", "filesystem": "files", "fs": "files", "terminate": "delete()",
        "destroy": "delete()", "restore": "rollback(snapshot)", "stream": "run() with on_stdout", "upload": "files.upload()",
        "download": "files.download()",
    },
    "Sandbox.commands": {
        "run": "run() of the sandbox itself: a command that fails is a result there, unless check is set",
        "list": "commands()", "connect": "command(id)", "kill": "command(id).kill()",
        "send_stdin": "command(id).write()",
    },
    "Sandbox.pty": {
        "create": "pty(cmd)", "connect": "command(id)", "kill": "kill() of what pty() returned",
        "resize": "resize() of what pty() returned", "send_stdin": "write() of what pty() returned",
    },
    "Files": {
        "make_dir": "mkdir()", "get_info": "stat()", "watch_dir": "watch()", "delete": "remove()",
        "read_bytes": "read()", "write_text": "write()",
    },
    "Command": {
        "pid": "id", "send_stdin": "write()", "send_input": "write()",
    },
}
# options, and what else they are called, in letters only
_OPTIONS = {
    "url": "apiurl serverurl baseurl domain",
    "name": "key sessionid sandboxid",
    "cpus": "cpu cpucount vcpu vcpus",
    "env": "envs envvars environment",
    "memory": "mem memorymb memorybytes memorylimit",
    "disk": "diskbytes disksize disksizemb storage",
    "processes": "pids maxprocesses",
    "memory cpus disk processes": "limits resources",
    "template": "templateid image",
    "timeout lifetime": "timeout timeoutms",
    "idle_timeout": "idletimeoutms",
    "lifetime": "lifetimems ttl maxlifetime",
    "cwd": "workdir workingdir workingdirectory",
    "input": "stdin",
    "cmd": "command",
    "check": "throwonerror",
}
OPTIONS: Dict[str, List[str]] = {word: names.split() for names, words in _OPTIONS.items() for word in words.split()}


def find(owner: object, where: str, shown: str, name: str) -> Any:
    """For __getattr__(): what has another name here; else an AttributeError."""
    use = WORDS[where].get(name)
    if use is None:
        raise AttributeError(f"{shown} has no attribute {name!r}")
    if use.startswith("="):
        return getattr(owner, use[1:])
    raise AttributeError(f"{shown} has no attribute {name!r}; use {use}")


class OtherWords(type):
    """Of a class whose class methods have other names elsewhere."""

    def __getattr__(cls, name: str) -> Any:
        return find(cls, "Sandbox class", cls.__name__, name)


class _Bound:
    """A method of an object, which elsewhere is an object with methods."""

    def __init__(self, function: Callable[..., Any], owner: object, where: str) -> None:
        self._function, self._owner, self._where = function, owner, where
        self.__doc__, self.__name__ = function.__doc__, function.__name__
        self.__wrapped__ = function.__get__(owner)  # its signature

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._function(self._owner, *args, **options)

    def __getattr__(self, name: str) -> Any:
        return find(self, self._where, f"{type(self._owner).__name__}.{self.__name__}()", name)


class _Method:
    def __init__(self, function: Callable[..., Any], where: str) -> None:
        self._function, self._where = function, where

    def __get__(self, owner: Optional[object], _: Optional[Type[Any]] = None) -> Any:
        return self._function if owner is None else _Bound(self._function, owner, self._where)


def other_words(cls: Type[T]) -> Type[T]:
    """Methods of the class that are objects elsewhere say so."""
    for where in WORDS:
        owner, _, method = where.partition(".")
        if method and owner + "Api" == cls.__name__:
            setattr(cls, method, _Method(vars(cls)[method], where))
    return cls

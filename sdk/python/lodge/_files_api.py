# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="no-any-return"
"""Files of a session, once for both clients, as _api.py."""
import os
import tempfile
from typing import IO, TYPE_CHECKING, Any, Generator, Iterator, Mapping, Optional, Union

from . import _calls as c
from . import _tree
from ._http import Call, Name, Request, query, quote_path
from ._options import named_options
from ._part import Part
from ._streams import ServerEvents
from ._words import find
from .errors import InvalidError, NotFoundError
from .types import Record

if TYPE_CHECKING:
    from . import records

Source = Union[bytes, str, "os.PathLike[str]", IO[bytes]]
Content = Union[bytes, str, IO[bytes]]


def bytes_of(data: Any) -> bytes:
    """Not by bytes(), which makes zeros of a number."""
    if isinstance(data, str):
        return data.encode()
    try:
        return bytes(memoryview(data))
    except TypeError:
        hint = "; json.dumps() makes text of it" if isinstance(data, (dict, list)) else ""
        raise InvalidError(f"data: must be text, bytes or an open file, not {type(data).__name__}{hint}") from None


def check_path(path: object) -> None:
    if isinstance(path, (list, tuple, dict)):
        raise InvalidError(f"path: must be text, not {type(path).__name__}; write_files() writes several files")


def mode_of(source: Any) -> Optional[int]:
    """The permissions of a local file by its path; of an open one none."""
    if isinstance(source, (str, os.PathLike)):
        try:
            return os.stat(source).st_mode & 0o777
        except OSError:
            return None  # opening it fails in the same way
    if isinstance(source, (bytes, bytearray)) or hasattr(source, "read"):
        return None
    raise InvalidError(f"source: must be a local path, bytes or an open file, not {type(source).__name__}")


@named_options
class FilesApi(Part):
    """The files of a sandbox or session.

    Relative paths start where commands start. Names are any bytes: str with surrogates (os.fsdecode) where they are not
    UTF-8, or bytes.

    >>> entry = box.files.write("notes/a.txt", "hello")
    >>> box.files.read_text("notes/a.txt")
    'hello'
    >>> [e["path"] for e in box.files.list("notes")]
    ['notes/a.txt']
    """

    def __init__(self, driver: Any, session: str) -> None:
        super().__init__(driver)
        self._base = c.session_base(session)

    def __getattr__(self, name: str) -> Any:
        return find(self, "Files", type(self).__name__, name)

    def _at(self, path: Name, **pairs: Any) -> str:
        return f"{self._base}/files/{quote_path(path)}{query(pairs)}"

    def read(self, path: Name) -> bytes:
        """Read a whole file as bytes."""
        return self._do(Call(Request("GET", self._at(path)), lambda r: r.body))

    def read_text(self, path: Name) -> str:
        """Read a whole file as text; bytes that are not UTF-8 become U+FFFD."""
        return self._do(Call(Request("GET", self._at(path)), c.text))

    def write(self, path: Name, data: Content, *, mode: Optional[int] = None, mkdir: bool = True,
              append: bool = False, if_match: Optional[str] = None, if_none_match: Optional[str] = None) -> "records.Entry":
        """Write text, bytes or an open file to a path, and make its parent directories.

        Readers see the old or the new content, never a mixture, except with append. mkdir=False: the directory must
        exist."""
        check_path(path)

        def put(**how: Any) -> Request:
            return self._put(path, mode, mkdir, append, if_match, if_none_match, **how)
        if hasattr(data, "read"):
            return self._send_from(data, put, c.one_entry)
        return self._do(Call(put(body=bytes_of(data)), c.one_entry))

    def write_files(self, files: Mapping[str, Content]) -> None:
        """Write several files, from a mapping of paths to their contents."""
        if not isinstance(files, Mapping):
            raise InvalidError(f"files: must be a mapping of paths to their contents, not {type(files).__name__}")

        def op() -> Generator[Any, Any, None]:
            for path, data in files.items():
                yield self.write(path, data)
        return self._do(op())

    def exists(self, path: Name) -> bool:
        """Tell whether there is something at a path; a symbolic link counts, wherever it leads."""
        def op() -> Generator[Any, Any, bool]:
            try:
                yield Call(Request("POST", self._at(path, stat=1)), c.one_entry)
            except NotFoundError:
                yield c.get(self._base)  # an error if it is the session that does not exist
                return False
            except InvalidError as e:
                if not e.message.endswith(": Not a directory"):
                    raise
                return False
            return True
        return self._do(op())

    def _put(self, path: Name, mode: Optional[int], mkdir: bool, append: bool, if_match: Optional[str],
             if_none_match: Optional[str], **how: Any) -> Request:
        headers = {k: v for k, v in (("If-Match", if_match), ("If-None-Match", if_none_match)) if v}
        at = self._at(path, mode=None if mode is None else f"{mode:o}", mkdir=mkdir or None, append=append or None)
        return Request("PUT", at, kind="application/octet-stream", headers=headers, **how)

    def stat(self, path: Name, follow: bool = False) -> "records.Entry":
        """Return the entry of a path: type, size, mode, owner; follow=True: of what a symbolic link leads to."""
        return self._do(Call(Request("POST", self._at(path, stat=1, follow=follow or None)), c.one_entry))

    def list(self, path: Name = "", *, depth: Optional[int] = None, glob: Optional[str] = None) -> Iterator["records.Entry"]:
        """Iterate over the entries of a directory, sorted by path.

        glob: only entries whose name matches, or whose path if the pattern has a slash or `**`, which is any number of
        directories: "**/*.py". depth: levels of directories, 64 at most; by default 1, or as many as the pattern names."""
        def make(after: Any) -> Call[Any]:
            return c.get(self._at(path, list=1, depth=depth, glob=glob, after=after), c.entries)
        return self._pages(make, "entries")

    def mkdir(self, path: Name, *, parents: bool = False, mode: Optional[int] = None) -> "records.Entry":
        """Make a directory; parents=True also makes those above it."""
        at = self._at(path, mkdir=1, parents=parents or None, mode=None if mode is None else f"{mode:o}")
        return self._do(Call(Request("POST", at), c.one_entry))

    def rename(self, path: Name, to: Name, *, replace: bool = True) -> "records.Entry":
        """Rename or move a file or directory; replace=False fails if the new name exists."""
        at = self._at(path, rename=to, replace=None if replace else 0)
        return self._do(Call(Request("POST", at), c.one_entry))

    def remove(self, path: Name, *, recursive: bool = False) -> None:
        """Remove a file or an empty directory; recursive=True also removes what is in it."""
        return self._do(Call(Request("DELETE", self._at(path, recursive=recursive or None), timeout=c.LONG),
                             c.nothing))

    def open(self, path: Name, mode: str = "rb", *, mkdir: bool = False) -> Any:
        """Open a file to stream from it ("rb") or to it ("wb").

        What is written is there once the file is closed, and nothing of it after an exception inside `with`."""
        if mode == "rb":
            return self._driver._reader(self._at(path))
        if mode == "wb":
            return self._driver._writer(self._put(path, None, mkdir, False, None, None, source=()))
        raise ValueError('mode: "rb" or "wb"')

    def upload(self, source: Source, path: Name, *, mode: Optional[int] = None,
               mkdir: bool = True) -> "records.Entry":
        """Copy a local file or directory, or an open file or bytes, to a path.

        mode: the permissions, by default those of the local file. Of a directory, the contents are copied into the directory at that path, which is made if it is missing;
        special files are left out. Returns the entry of the file or directory."""
        if isinstance(source, (str, os.PathLike)) and os.path.isdir(source):
            return self._do(self._upload_tree(os.fspath(source), path))
        mode = mode_of(source) if mode is None else mode
        return self._send_from(source, lambda **how: self._put(path, mode, mkdir, False, None, None, **how),
                               c.one_entry)

    def _upload_tree(self, local: str, path: Name) -> Generator[Any, Any, Record]:
        with tempfile.TemporaryFile() as f:
            yield self._driver._beside(_tree.pack, local, f)
            done: Any = self.put_archive
            yield done(f, path)
        return (yield self.stat(path, follow=True))

    def download(self, path: Name, to: Source) -> int:
        """Copy a file or directory to a local path, or a file into an open one; returns the number of bytes.

        Of a directory, the contents are copied into the local directory, which is made if it is missing. Nothing is
        written outside it: symbolic links that lead out of it are left out, with a lodge.IgnoredWarning."""
        return self._do(self._download(path, to))

    def _download(self, path: Name, to: Any) -> Generator[Any, Any, int]:
        file = Request("GET", self._at(path))
        if hasattr(to, "write"):
            return (yield self._save_to(file, to))
        entry = yield self.stat(path, follow=True)
        if entry["type"] != "directory":
            return (yield self._save_to(file, to))
        with tempfile.TemporaryFile() as f:
            size = yield self.get_archive(path, f)
            f.seek(0)
            outside = yield self._driver._beside(_tree.unpack, f, os.fspath(to))
        c.warn_ignored(f"download of {path!r}", outside, "left out: symbolic links that lead out of the directory")
        return size

    def get_archive(self, path: Name, to: Source, *, format: str = "tar") -> int:
        """Save a directory to a local file as "tar" or "tar.zst", and return its size."""
        return self._save_to(Request("GET", self._base + "/archive" + query({"path": path, "format": format})), to)

    def put_archive(self, source: Source, path: Name = "", *, format: str = "tar") -> None:
        """Unpack a local "tar" or "tar.zst" into a directory, which is made if it is missing."""
        at = self._base + "/archive" + query({"path": path, "format": format})
        return self._send_from(source, lambda **how: Request("PUT", at, kind="application/x-tar", **how), c.nothing)

    def watch(self, path: Name = "", *, recursive: bool = False) -> Iterator["records.Change"]:
        """Iterate over changes in a directory; the first event is "ready", and nothing after it is missed."""
        return self._events(ServerEvents(self._base + "/watch" + query({"path": path, "recursive": recursive}),
                                         self._driver.reconnect))

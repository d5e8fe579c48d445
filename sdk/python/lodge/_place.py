# SPDX-License-Identifier: Apache-2.0
"""Where the service is, and by which key: what was said, else the environment, else the local socket."""
import os
import re
import urllib.parse
from typing import List, NamedTuple, Optional

from .errors import InvalidError, UnavailableError


class Place(NamedTuple):
    scheme: str  # "unix", "http", "https"
    host: str  # of unix: the path of the socket
    port: int
    prefix: str  # before every path; usually ""

    @property
    def authority(self) -> str:
        if self.scheme == "unix":
            return "localhost"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"unix:{self.host}" if self.scheme == "unix" else f"{self.scheme}://{self.authority}{self.prefix}"


def data_directories() -> List[str]:
    """Those of lodged, the likeliest first."""
    said = os.environ.get("LODGE_DATA") or os.environ.get("LODGE_HOME")
    if said:
        return [said]
    own = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return ["/var/lib/lodge", os.path.join(own, "lodge")]


def _shown(url: str) -> str:
    """The URL for messages, without a password."""
    _, at, rest = url.rpartition("@")
    return repr(("..." + at if at else "") + re.split("[?#]", rest)[0])


def parse(url: str) -> Place:
    if url.startswith("unix:"):
        path = url[len("unix:"):]
        if path.startswith("//"):
            path = path[2:]
        if not path.startswith("/"):
            raise InvalidError(f"server_url: {_shown(url)} needs an absolute path, as in unix:/var/lib/lodge/lodge.sock")
        return Place("unix", path, 0, "")
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:  # its own words have all of it
        raise InvalidError(f"server_url: {_shown(url)} is no address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidError(f"server_url: {_shown(url)} is neither http://HOST[:PORT], https://HOST[:PORT] nor unix:PATH")
    if "@" in parts.netloc:
        raise InvalidError(f"server_url: {_shown(url)} has a user or a password: a key is given as api_key")
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        raise InvalidError(f"server_url: {_shown(url)} has no such port") from None
    return Place(parts.scheme, parts.hostname, port, parts.path.rstrip("/"))


def find(url: Optional[str]) -> Place:
    said = url or os.environ.get("LODGE_URL")
    if said:
        return parse(said)
    for directory in data_directories():
        path = os.path.join(directory, "lodge.sock")
        if os.path.exists(path):
            return Place("unix", path, 0, "")
    raise UnavailableError("no lodged found: start one, or give server_url or LODGE_URL")


def find_key(place: Place, key: Optional[str]) -> Optional[str]:
    """The key in a data directory is for its own socket and goes nowhere else."""
    said = check_key(key) or check_key(os.environ.get("LODGE_API_KEY"))
    if said or place.scheme != "unix":
        return said
    try:
        path = os.path.join(os.path.dirname(place.host), "admin.key")
        # owned by the owner of the socket or by us, and not a link to another user's file
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), encoding="ascii") as f:
            owner = os.fstat(f.fileno()).st_uid
            if owner != os.geteuid() and owner != os.stat(place.host).st_uid:
                return None
            return f.read().strip() or None
    except (OSError, ValueError):
        return None


def check_key(key: Optional[str]) -> Optional[str]:
    """Without the line break of the file it was read from; None: there is none."""
    if not key:
        return None
    if not isinstance(key, str) or not re.fullmatch("[!-~]*", key.strip()):
        raise InvalidError("api_key (or LODGE_API_KEY): a key is one word of printable ASCII, as a str")
    return key.strip() or None

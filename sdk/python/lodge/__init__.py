# SPDX-License-Identifier: Apache-2.0
"""lodge: a Linux machine of its own for every user, conversation or agent."""
from ._hooks import RetryPolicy
from ._version import VERSION
from .aio import (AsyncClient, AsyncCommand, AsyncExec, AsyncFiles, AsyncPty, AsyncSandbox, AsyncSession, AsyncSnapshot)
from .client import Client, Command, Exec, Files, Pty, Sandbox, Session, Snapshot
from .errors import (CommandError, ConflictError, DeniedError, Error, GoneError, IgnoredWarning, InternalError, InvalidError,
                     LimitError, LodgeError, NotFoundError, OutputGoneError, PolicyError, PreconditionError, SandboxError, SessionExpiredError,
                     StateLostWarning, TimeoutError, TransportError, UnauthenticatedError, UnavailableError)
from .manager import SessionManager
from .projects import ProjectClient
from .sandbox import BatchSandboxClient, FileList, SandboxClient
from .types import Event, ExecResult, Output, Result, Versions

__version__ = VERSION
__all__ = [
    "AsyncClient", "AsyncCommand", "AsyncExec", "AsyncFiles", "AsyncPty", "AsyncSandbox", "AsyncSession", "AsyncSnapshot",
    "BatchSandboxClient", "Client", "Command", "CommandError", "ConflictError", "DeniedError", "Error", "Event", "Exec",
    "ExecResult", "FileList", "Files", "GoneError", "IgnoredWarning", "InternalError", "InvalidError", "LimitError", "LodgeError",
    "NotFoundError", "Output", "OutputGoneError", "PolicyError", "PreconditionError", "ProjectClient", "Pty", "Result", "RetryPolicy", "Sandbox",
    "SandboxClient", "SandboxError", "Session", "SessionExpiredError", "SessionManager", "Snapshot", "StateLostWarning", "TimeoutError",
    "TransportError", "UnauthenticatedError", "UnavailableError", "Versions",
]

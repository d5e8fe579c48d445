# SPDX-License-Identifier: Apache-2.0
"""lodge: a Linux machine of its own for every user, conversation or agent."""
from .aio import AsyncClient, AsyncExec, AsyncFiles, AsyncSession
from .client import Client, Exec, Files, Session
from .errors import (ConflictError, DeniedError, Error, GoneError, InternalError, InvalidError, LimitError, NotFoundError,
                     OutputGoneError, PolicyError, PreconditionError, SandboxError, SessionExpiredError, TimeoutError,
                     TransportError, UnauthenticatedError, UnavailableError)
from .manager import SessionManager
from .sandbox import BatchSandboxClient, FileList, SandboxClient
from .types import Event, ExecResult, Output

__version__ = "0.1.0"
__all__ = [
    "AsyncClient", "AsyncExec", "AsyncFiles", "AsyncSession", "BatchSandboxClient", "Client", "ConflictError",
    "DeniedError", "Error", "Event", "Exec", "ExecResult", "FileList", "Files", "GoneError", "InternalError",
    "InvalidError", "LimitError", "NotFoundError", "Output", "OutputGoneError", "PolicyError", "PreconditionError",
    "SandboxClient", "SandboxError", "Session", "SessionExpiredError", "SessionManager", "TimeoutError",
    "TransportError", "UnauthenticatedError", "UnavailableError",
]

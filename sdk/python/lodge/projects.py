# SPDX-License-Identifier: Apache-2.0
"""Projects, with the engine in this process or with a service."""
from typing import Any, Optional

from .client import Client
from .sandbox import mode_of


class ProjectClient:
    """Has `projects` and `teams` of lodge.Client, also with the engine in this process.

    mode: "local", which has no files of fragments, or "remote", as for lodge.SandboxClient. A script moves to a service by changing one argument.

    >>> with lodge.ProjectClient("remote") as here:
    ...     [p["name"] for p in here.projects.list(user="nobody")]
    []
    """

    def __init__(self, mode: Optional[str] = None, server_url: Optional[str] = None, api_key: Optional[str] = None) -> None:
        self.mode: str = mode_of(mode, server_url)
        self._client: Optional[Client] = None
        self.projects: Any
        self.teams: Any
        if self.mode == "remote":
            self._client = Client(server_url, api_key)
            self.projects, self.teams = self._client.projects, self._client.teams
        else:
            from ._local_projects import LocalProjects, LocalTeams
            self.projects, self.teams = LocalProjects(), LocalTeams()

    def close(self) -> None:
        """Close the connections; sandboxes stay."""
        if self._client:
            self._client.close()

    def __enter__(self) -> "ProjectClient":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

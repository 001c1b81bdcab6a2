"""What an application's ranks get besides the environment of every launch: its `env` and what its
`modules` set."""

from __future__ import annotations

import os

from mpigraft.core import env
from mpigraft.core.errors import CheckFailed
from mpigraft.core.model import Configuration, EnvRow, Scope
from mpigraft.discovery import rows_of_modules
from mpigraft.request import ANOTHER_PLACE, STEERING, App

SEARCH = "LD_LIBRARY_PATH"


class AppEnvironments:
    """Rows by application and configuration; a set of modules is loaded once for each MPI."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[tuple[str, ...], str], tuple[EnvRow, ...]] = {}

    def rows(self, app: App, configuration: Configuration) -> tuple[EnvRow, ...]:
        """Make the environment of the application. Raises CheckFailed for what cannot reach a
        container, and as the module command does."""
        pairs = (word.partition("=") for word in app.env)
        own = tuple(EnvRow(name, value, Scope.RANK, "app") for name, _, value in pairs)
        if configuration.graft is None:
            return (*self._module_rows(app, configuration), *own)
        if app.modules:
            raise CheckFailed.of("app-modules-in-guest", name=app.name)
        if any(row.name == SEARCH for row in own):
            raise CheckFailed.of("app-search-in-guest", name=app.name, variable=SEARCH)
        return own

    def _module_rows(self, app: App, configuration: Configuration) -> tuple[EnvRow, ...]:
        """Return what modules set, less what would make another MPI or transport of the one that
        was proven: an application's module often loads an MPI of its own."""
        if not app.modules or configuration.mpi is None:
            return ()
        key = (app.modules, configuration.mpi.id)
        if key not in self._loaded:
            environ = env.apply(os.environ, configuration.mpi.environment, Scope.LAUNCHER)
            self._loaded[key] = tuple(
                row
                for row in rows_of_modules(app.modules, environ)
                if not STEERING.match(row.name) and not ANOTHER_PLACE.match(row.name)
            )
        return self._loaded[key]


def search_path(rows: tuple[EnvRow, ...]) -> tuple[str, ...]:
    """Return the folders of PATH as these rows leave it; none where they do not set it."""
    path = {row.name: row.value for row in rows}.get("PATH") or ""
    return tuple(folder for folder in path.split(os.pathsep) if folder.startswith("/"))

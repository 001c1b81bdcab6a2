"""The rows of engines.toml as values: what engines do by themselves, and what a job sees there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from mpigraft.knowledge.reader import RowError, load_rows


@dataclass(frozen=True, slots=True)
class DefaultBind:
    """A folder that an engine puts over the guest's own."""

    engine: str
    path: str
    observed: str
    source: str
    host: str = ""  # empty: the engine's own
    variable: str = ""
    setting: str = ""

    def __post_init__(self) -> None:
        for key, path in (("path", self.path), ("host", self.host or "/")):
            if not path.startswith("/") or ".." in path.split("/"):
                raise RowError(key, f"{path!r} is not an absolute path without '..'")

    def host_folder(self, environment: Mapping[str, str]) -> str:
        """Give the folder of this machine, for an engine with this environment; empty: none."""
        return environment.get(self.variable) or self.host


@dataclass(frozen=True, slots=True)
class Aspect:
    """What a job sees of one thing, under each engine."""

    id: str
    what: str
    usual: str
    observed: str
    source: str
    differs: tuple[tuple[str, str], ...] = ()
    users: tuple[tuple[str, str], ...] = ()

    @property
    def exceptions(self) -> tuple[tuple[str, str], ...]:
        """List (engine, what a job has there) where that is not usual, for root or for users."""
        return (*self.differs, *self.users)

    def is_usual(self, engine: str, *, root: bool) -> bool:
        """Return whether a job of root, or of a user, has what is usual under an engine."""
        return engine not in dict(self.differs if root else self.exceptions)


@dataclass(frozen=True, slots=True)
class BreakingVariables:
    """Variables of a user's with which an engine would break a run."""

    engine: str
    names: tuple[str, ...]
    effect: str
    observed: str
    source: str
    prefixes: tuple[str, ...] = ("",)


def default_binds(engine: str) -> tuple[DefaultBind, ...]:
    """List the folders that an engine puts over a guest's own by itself."""
    rows = load_rows(DefaultBind, "bind", "engines.toml")
    return tuple(row for row in rows if row.engine == engine)


@cache
def breaking_variables(engine: str) -> Mapping[str, str]:
    """Map variables without which an engine is started to what ranks would have with them."""
    rows = load_rows(BreakingVariables, "variable", "engines.toml")
    return {
        f"{prefix}{name}": row.effect
        for row in rows
        if row.engine == engine
        for prefix in row.prefixes
        for name in row.names
    }


def job_aspects() -> tuple[Aspect, ...]:
    """List what the reference page compares, in its order."""
    return load_rows(Aspect, "aspect", "engines.toml")

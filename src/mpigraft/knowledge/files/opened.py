"""What libraries open by name while they run: the rows of opened.toml as values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mpigraft.core.model import Family
from mpigraft.knowledge.reader import RowError, load_rows, toml

FOLDERS = ("dir", "prefix", "system", "etc", "bin", "copies")  # what folders may name
SAMPLE = dict.fromkeys((*FOLDERS, "graft", "name", "stem"), "x")
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFiles:
    """Files of the first of `folders` that has some. `place`: the folder that they go to."""

    folders: tuple[str, ...]  # templates over FOLDERS
    names: re.Pattern[str]
    place: str = ""
    env: Pairs = ()  # templates over {graft}; set only where there are such files

    def __post_init__(self) -> None:
        for folder in self.folders:
            _refuse_unknown("folders", folder, FOLDERS)
        if self.place.startswith("/") or ".." in self.place.split("/"):
            raise RowError("place", f"{self.place!r} leads out of the graft folder")
        for name, value in self.env:
            _refuse_unknown(f"env.{name}", value, ("graft",))


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened(OpenedFiles):
    """What one library opens, and what tells it where; `env` is set in any case."""

    id: str
    by: re.Pattern[str]
    families: tuple[Family, ...] = field(default=(), metadata=toml("family"))  # empty: all
    data: tuple[OpenedFiles, ...] = ()
    listed: Pairs = ()  # templates over {graft}, {name} and {stem}; joined by ":"
    sources: tuple[str, ...]

    def __post_init__(self) -> None:
        OpenedFiles.__post_init__(self)
        for name, value in self.listed:
            _refuse_unknown(f"listed.{name}", value, ("graft", "name", "stem"))

    @property
    def plugins(self) -> OpenedFiles:
        return OpenedFiles(folders=self.folders, names=self.names, place=self.place)

    def concerns(self, soname: str, family: Family | None) -> bool:
        """Return whether a library of this name, in an MPI of this family, opens these files."""
        fits = not self.families or family in self.families
        return fits and self.by.fullmatch(soname) is not None

    def list_of(self, names: Sequence[str]) -> dict[str, str]:
        """Return `listed`, filled in for the plugins that are there; nothing where there are
        none."""
        return {
            variable: ":".join(
                template.replace("{stem}", name.rpartition("-")[0]).replace("{name}", name)
                for name in names
            )
            for variable, template in self.listed
            if names
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A program that one library starts, and what tells it where."""

    id: str
    by: re.Pattern[str]
    families: tuple[Family, ...] = field(default=(), metadata=toml("family"))
    folders: tuple[str, ...]  # templates over FOLDERS
    name: str
    place: str  # below the graft folder
    lacks: str  # what fails without it
    env: Pairs = ()  # templates over {graft}
    sources: tuple[str, ...]


def _refuse_unknown(key: str, template: str, facts: tuple[str, ...]) -> None:
    try:
        template.format_map({name: SAMPLE[name] for name in facts})
    except (KeyError, ValueError, IndexError) as error:
        raise RowError(key, f"{template!r} may name only {', '.join(facts)}: {error}") from None


def rows() -> tuple[Opened, ...]:
    """Return this package's table."""
    return load_rows(Opened, "opened", "opened.toml")


def opened_by(soname: str, family: Family | None) -> Iterator[Opened]:
    """Return the rows of what a library of this name opens."""
    return (row for row in rows() if row.concerns(soname, family))


def started_by(soname: str, family: Family | None) -> Iterator[Started]:
    """Return the programs that a library of this name starts, in an MPI of this family."""
    table = load_rows(Started, "started", "opened.toml")
    return (r for r in table if family in r.families and r.by.fullmatch(soname))


def expand_folder(folder: str, facts: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield a folder's template with each value of the one fact that it names."""
    for name in FOLDERS:
        if f"{{{name}}}" in folder:
            yield from (folder.replace(f"{{{name}}}", value) for value in facts.get(name, ()))
            return
    yield folder

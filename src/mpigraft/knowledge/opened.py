"""What libraries open by name while they run: the rows of opened.toml as values."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from mpigraft.knowledge.table import Document, Table, document
from mpigraft.model import Family

FOLDERS = ("dir", "prefix", "system", "etc")  # what folders may name
SAMPLE = dict.fromkeys((*FOLDERS, "graft", "name", "stem"), "x")


@dataclass(frozen=True, slots=True)
class Files:
    """Files of the first of `folders` that has some. `place`: the folder that they go to."""

    folders: tuple[str, ...]  # templates over FOLDERS
    names: re.Pattern[str]
    place: str
    env: tuple[tuple[str, str], ...] = ()  # set only where there are such files


@dataclass(frozen=True, slots=True)
class Opened:
    """What one library opens, and what tells it where."""

    id: str
    by: re.Pattern[str]
    families: tuple[Family, ...]  # empty: all
    plugins: Files
    data: tuple[Files, ...]
    env: tuple[tuple[str, str], ...]  # templates over {graft}
    listed: tuple[tuple[str, str], ...]  # over {graft}, {name} and {stem}; joined by ":"
    sources: tuple[str, ...]

    def concerns(self, soname: str, family: Family | None) -> bool:
        """Whether a library of this name, in an MPI of this family, opens these files."""
        fits = not self.families or family in self.families
        return fits and self.by.fullmatch(soname) is not None

    def list_of(self, names: Sequence[str]) -> dict[str, str]:
        """`listed`, filled in for the plugins that are there; nothing where there are none."""
        return {
            variable: ":".join(
                template.replace("{stem}", name.rpartition("-")[0]).replace("{name}", name)
                for name in names
            )
            for variable, template in self.listed
            if names
        }


def read(data: Document, file: str = "opened.toml") -> tuple[Opened, ...]:
    """The rows of a document. Raises UsageError for a wrong one."""
    whole = Table(file, dict(data))
    found: dict[str, Opened] = {}
    for table in whole.tables("opened"):
        table.where = f"{file}, row {table.text('id')}"
        row = _row(table)
        if row.id in found:
            raise table.wrong("id", "another row has it")
        found[row.id] = row
    whole.done()
    return tuple(found.values())


def _row(table: Table) -> Opened:
    families = tuple(_family(table, word) for word in table.texts("family", []))
    row = Opened(
        id=table.text("id"),
        by=re.compile(table.pattern("by")),
        families=families,
        plugins=_files(table),
        data=tuple(_data(part) for part in table.tables("data")),
        env=_templates(table, "env", ("graft",)),
        listed=_templates(table, "listed", ("graft", "name", "stem")),
        sources=table.texts("sources"),
    )
    table.done()
    return row


def _family(table: Table, word: str) -> Family:
    if word not in set(Family):
        raise table.wrong("family", f"{word} is no family")
    return Family(word)


def _files(table: Table) -> Files:
    folders = table.texts("folders")
    for folder in folders:
        _try(table, "folders", folder, FOLDERS)
    place = table.text("place", "")
    if place.startswith("/") or ".." in place.split("/"):
        raise table.wrong("place", f"{place!r} leads out of the graft folder")
    return Files(folders, re.compile(table.pattern("names")), place)


def _data(table: Table) -> Files:
    files = replace(_files(table), env=_templates(table, "env", ("graft",)))
    table.done()
    return files


def _templates(table: Table, key: str, facts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    pairs = table.words(key)
    for name, value in pairs:
        _try(table, f"{key}.{name}", value, facts)
    return pairs


def _try(table: Table, key: str, template: str, facts: tuple[str, ...]) -> None:
    try:
        template.format_map({name: SAMPLE[name] for name in facts})
    except (KeyError, ValueError, IndexError) as error:
        raise table.wrong(key, f"{template!r} may name only {', '.join(facts)}: {error}") from None


@cache
def rows() -> tuple[Opened, ...]:
    """This package's table, read and checked once."""
    return read(document("opened.toml"))


def concerning(soname: str, family: Family | None) -> Iterator[Opened]:
    """The rows of what a library of this name opens."""
    return (row for row in rows() if row.concerns(soname, family))


def expanded(folder: str, facts: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """A folder's template with each value of the one fact that it names."""
    for name in FOLDERS:
        if f"{{{name}}}" in folder:
            yield from (folder.replace(f"{{{name}}}", value) for value in facts[name])
            return
    yield folder

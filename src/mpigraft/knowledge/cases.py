"""Case files: campaign files that say in a table [case] what they measure and where from."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from mpigraft.core.errors import UsageError
from mpigraft.knowledge.reader import load_document, read_table, toml

FOLDER = "cases"
ENDING = ".toml"


@dataclass(frozen=True, slots=True)
class ApplicationCase:
    """What an application is, and what is known of its runs. `bench` needs none of it."""

    what: str
    bring: str  # what the user has to supply: a program, an input
    routines: tuple[str, ...] = field(metadata=toml(nonempty=True))  # that take its time in MPI
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))
    sample: str = ""  # lines that a run printed, as the figure of merit reads them
    value: float = 0.0  # the figure in them


def case_names() -> tuple[str, ...]:
    """Return the names of all cases, sorted."""
    folder = files("mpigraft.knowledge").joinpath(FOLDER)
    names = (file.name for file in folder.iterdir() if not file.name.startswith("."))
    return tuple(sorted(name.removesuffix(ENDING) for name in names if name.endswith(ENDING)))


def case_text(name: str) -> str:
    """Return the campaign file of a case, unchanged. Raises UsageError for an unknown name."""
    return str(_file(name).read_text(encoding="utf-8"))


def load_case(name: str) -> ApplicationCase:
    """Return the row of a case. Raises UsageError for a name of none."""
    _file(name)
    file = f"{FOLDER}/{name}{ENDING}"
    return read_table(ApplicationCase, load_document(file)["case"], f"{file}, case")


def _file(name: str) -> Any:
    if name not in case_names():
        raise UsageError.unknown("case-unknown", name, case_names())
    return files("mpigraft.knowledge").joinpath(FOLDER, f"{name}{ENDING}")

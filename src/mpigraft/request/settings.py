"""Settings: named sets of variables, files and launcher options, each measured as its own arm.

[setting.eager64]
env = { UCX_RNDV_THRESH = "65536" }
for = ["openmpi"]

[setting.ring]
env = { OMPI_MCA_coll_tuned_use_dynamic_rules = "1" }
files = { OMPI_MCA_coll_tuned_dynamic_rules_filename = "ring.rules" }
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Family
from mpigraft.knowledge import find_launcher, transport_names
from mpigraft.request.environment import ANOTHER_LAUNCH, ANOTHER_PLACE
from mpigraft.request.named_tables import NAME, NamedTables, table_word
from mpigraft.request.options import (
    line_of,
    option,
    parse_toml_file,
    read_settings,
    settings_of,
)

# Labels of arms have these words for other things: the arm without a setting, and launchers.
RESERVED = ("plain", "own", "srun", "flux", "pals", "aprun", "prrte", "orte", "hydra")
LOADER = ("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "PATH")


@dataclass(frozen=True, slots=True)
class RequestedSetting:
    """A setting as a person gives it; what it applies to here, `selection` finds."""

    env: tuple[str, ...] = option((), '{ UCX_RNDV_THRESH = "65536" }', read=read_settings)
    unset: tuple[str, ...] = option((), '["UCX_TLS"]')  # variables that ranks must not have
    files: tuple[str, ...] = option(  # VARIABLE=PATH of a file that each launch has a copy of
        (), '{ OMPI_MCA_coll_tuned_dynamic_rules_filename = "ring.rules" }', read=read_settings
    )
    launcher: tuple[str, ...] = option((), '["--mca", "plm_rsh_num_concurrent", "64"]')
    within: tuple[str, ...] = option(  # families and transports; empty: as its variables say
        (), '["openmpi", "ucx"]', key="for"
    )
    name: str = option("", '"eager64"')
    origin: Path | None = None  # the file that has it, where that is no campaign file

    def __str__(self) -> str:
        """Return what follows `--setting`."""
        return table_word(self)

    @property
    def is_name(self) -> bool:
        """Whether it is the name of a setting that is elsewhere."""
        return self == RequestedSetting(name=self.name)

    @property
    def variables(self) -> tuple[tuple[str, str | None], ...]:
        """Give sorted (name, value) pairs; None: not set."""
        unset = ((name, None) for name in self.unset)
        return tuple(sorted((*settings_of(self.env), *unset), key=itemgetter(0)))

    @property
    def paths(self) -> tuple[tuple[str, str], ...]:
        """Give sorted (variable, path) pairs of its files."""
        return settings_of(self.files)

    def merged(self, other: RequestedSetting) -> RequestedSetting | None:
        """Return both as one; None: both have a value for one variable."""
        own, more = ({*(name for name, _ in (*one.variables, *one.paths))} for one in (self, other))
        if own & more:
            return None
        return RequestedSetting(
            (*self.env, *other.env),
            (*self.unset, *other.unset),
            (*self.files, *other.files),
            (*self.launcher, *other.launcher),
            (*self.within, *other.within),
            f"{self.name}+{other.name}",
        )

    def relative_to(self, folder: Path) -> RequestedSetting:
        """Return the same with the paths of its files made whole."""
        whole = (f"{v}={(folder / Path(p).expanduser()).absolute()}" for v, p in self.paths)
        return replace(self, files=tuple(whole))


def _short(word: str, place: str) -> RequestedSetting | None:
    """Read `NAME:A=1 B=2 -C`, which sets two variables and unsets one; FILE.toml:NAME of a file
    with [setting.NAME]; and NAME alone, which `named_setting` looks up in the site's profile."""
    if NAME.fullmatch(word):
        return RequestedSetting(name=word)
    file, _, name = word.rpartition(":")
    if file.endswith(".toml"):
        return _of_file(Path(file), name)
    name, colon, text = word.partition(":")
    if not colon or not NAME.fullmatch(name):
        return None
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError.of("value-invalid", place=f"{place} {name}", error=error) from None
    table = {
        "env": [word for word in words if not word.startswith("-")],
        "unset": [word[1:] for word in words if word.startswith("-")],
    }
    return SETTINGS.row(name, table, f"{place} {name}")


def _of_file(path: Path, name: str) -> RequestedSetting:
    """Read one setting of a TOML file. Raises UsageError with file and line."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError.of("file-unusable", path=path, reason=error.strerror) from error
    table, text = parse_toml_file(data, path)
    settings = settings_of_table(table, text, path)
    found = named_setting(RequestedSetting(name=name), settings, str(path))
    return replace(found, origin=path.absolute())


def settings_of_table(
    table: Mapping[str, Any], text: str, path: Path
) -> tuple[RequestedSetting, ...]:
    """Read [setting.NAME] of a file; paths are relative to its folder. Raises UsageError with file
    and line."""
    own = table.get("setting", {})
    line = line_of("setting", text)
    if not isinstance(own, dict):
        raise UsageError.of("named-table-form", place=f"{path}:{line}", key="setting")
    SETTINGS.refuse_lines(own, text, path, line)
    folder = path.absolute().parent
    rows = (SETTINGS.row(name, row, f"{path}:{line}") for name, row in own.items())
    return tuple(row.relative_to(folder) for row in rows)


def named_setting(
    one: RequestedSetting, known: Sequence[RequestedSetting], source: str
) -> RequestedSetting:
    """Return the setting itself, or where it is a name alone, the one of that name. Raises
    UsageError for a name that `source` does not have."""
    if not one.is_name:
        return one
    found = {each.name: each for each in known}
    if one.name not in found:
        names = ", ".join(found) or "none"
        raise UsageError.unknown("setting-missing", one.name, found, source=source, known=names)
    return found[one.name]


def _refuse(one: RequestedSetting, place: str) -> None:
    """Raise UsageError, which names `place`, for a setting that cannot be measured anywhere."""
    if one.name in RESERVED:
        raise UsageError.of("setting-name-reserved", place=place, name=one.name)
    try:
        variables, paths = one.variables, one.paths
    except UsageError as error:
        raise error.amended(message=f"{place}: {error.message}") from error
    if not (variables or paths or one.launcher):
        raise UsageError.of("setting-empty", place=place)
    names = [*(name for name, _ in variables), *(name for name, _ in paths)]
    for name in names:
        if not name.isidentifier():
            raise UsageError.of("setting-variable-name", place=place, name=name)
        if names.count(name) > 1:
            raise UsageError.of("setting-variable-twice", place=place, name=name)
        if name in LOADER or ANOTHER_LAUNCH.match(name) or ANOTHER_PLACE.match(name):
            raise UsageError.of("setting-other-mpi", place=place, name=name)
    _refuse_launcher_words(one.launcher, place)
    known = (*Family, *sorted({name for family in Family for name in transport_names(family)}))
    for word in one.within:
        if word.partition("@")[0] not in known:
            raise UsageError.unknown("setting-for-unknown", word, known, place=place)


def _refuse_launcher_words(words: tuple[str, ...], place: str) -> None:
    """Refuse what decides where and how many ranks run, and with which variables: layouts do."""
    if words and not words[0].startswith("-"):
        raise UsageError.of("setting-launcher-words", place=place, word=words[0])
    found = find_launcher("mpirun")
    for word in words:
        name = word.lstrip("-").partition("=")[0]
        if word.startswith("-") and found and found[1].meaning(name):
            raise UsageError.of("setting-launcher-words", place=place, word=word)


SETTINGS: NamedTables[RequestedSetting] = NamedTables("setting", RequestedSetting, _refuse, _short)

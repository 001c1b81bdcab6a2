"""Arms of settings: for each configuration that a setting applies to, the same with it.

An arm's key is made of its plain arm's key and the contents of the setting. Its name is a label.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Configuration, EnvRow, Family, Scope, Setting, SettingFile
from mpigraft.core.serialize import digest
from mpigraft.request import RequestedSetting
from mpigraft.selection.guest_variants import Skipped
from mpigraft.selection.rules_files import refuse_rules

MOST_BYTES = 1 << 20  # of a file that every launch gets a copy of
MPICH_LIKE = frozenset(Family) - {Family.OPENMPI}
# Who reads variables whose names begin so: families, or the library of a transport. Sources: the
# manuals of Open MPI 5 (MCA parameters), MPICH 5 and Intel MPI 2021, UCX 1.19, libfabric 2.
READERS: tuple[tuple[re.Pattern[str], frozenset[str]], ...] = tuple(
    (re.compile(names), frozenset(readers))
    for names, readers in (
        (r"(OMPI|OPAL|PMIX|PRTE)_MCA_", {Family.OPENMPI}),
        (r"I_MPI_", {Family.INTEL}),
        (r"(MPIR|MPICH)_", MPICH_LIKE),
        (r"MV2_|MVP_", {Family.MVAPICH}),
        (r"UCX_", {"ucx"}),
        (r"FI_", {"ofi"}),
    )
)


def combinations(requested: Sequence[RequestedSetting]) -> Iterator[RequestedSetting]:
    """Yield settings, then those of two and more that have no variable in common."""
    made: list[RequestedSetting] = []
    for one in requested:
        made += [one, *filter(None, (other.merged(one) for other in [*made]))]
    yield from sorted(made, key=lambda one: one.name.count("+"))


def with_settings(
    requested: Sequence[RequestedSetting],
    configurations: Iterable[Configuration],
    *,
    combine: bool = False,
) -> tuple[tuple[Configuration, ...], tuple[Skipped, ...]]:
    """Return each configuration followed by its arms of settings, where wanted of `combinations`
    too, and the arms that cannot be, with why. Raises UsageError for a setting that no
    configuration takes, and for a file that cannot be read."""
    arms: dict[str, Configuration] = {}
    skipped: list[Skipped] = []
    applied: set[str] = set()
    contents = cache(_contents)
    for plain in configurations:
        arms[plain.key] = plain
        reasons = {one: _why_not(one, plain) for one in requested}
        skipped += [(f"{plain.id}+{one.name}", why) for one, why in reasons.items() if why]
        taken = [one for one, why in reasons.items() if not why]
        applied |= {one.name for one in taken}
        for file in (file for one in taken for file in contents(one)[1]):
            if plain.mpi is not None:
                refuse_rules(file, plain.mpi)
        for one in combinations(taken) if combine else taken:
            label = f"{plain.id}+{one.name}"
            arm = _arm(plain, Setting(one.name, *contents(one), one.launcher, plain.key), label)
            if (same := arms.setdefault(arm.key, arm)) is not arm:
                skipped.append((label, f"its content is that of {same.id}"))
    for one in requested:
        if one.name not in applied:
            whys = dict.fromkeys(why for label, why in skipped if label.endswith(f"+{one.name}"))
            raise UsageError.of("setting-unmatched", name=one.name, reasons="; ".join(whys))
    return tuple(arms.values()), tuple(skipped)


def with_setting(
    requested: Sequence[RequestedSetting], configuration: Configuration
) -> Configuration:
    """Return the configuration of a job with the setting that was requested, if any. Raises
    UsageError for several, and as `with_settings`."""
    if len(requested) > 1:
        raise UsageError.of("setting-one", names=", ".join(one.name for one in requested))
    arms, _ = with_settings(requested, (configuration,))
    return arms[-1]


def _arm(plain: Configuration, setting: Setting, label: str) -> Configuration:
    key = digest(
        {
            "plain": plain.key,
            "variables": [[row.name, row.value] for row in setting.rows],
            "files": [[one.variable, one.text] for one in setting.files],
            "launcher": setting.launcher,
        }
    )
    return replace(plain, key=key, id=label, setting=setting, named=True)


def _contents(one: RequestedSetting) -> tuple[tuple[EnvRow, ...], tuple[SettingFile, ...]]:
    source = f"setting {one.name}"
    rows = tuple(EnvRow(name, value, Scope.RANK, source) for name, value in one.variables)
    return rows, tuple(_read(one.name, variable, path) for variable, path in one.paths)


def _read(setting: str, variable: str, path: str) -> SettingFile:
    try:
        with Path(path).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        problem = f"is larger than {MOST_BYTES >> 20} MiB" if len(data) > MOST_BYTES else ""
        text = data.decode("utf-8")
    except OSError as error:
        problem = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        problem = problem or "is not text"
    if problem:
        raise UsageError.of(
            "setting-file-unreadable", name=setting, path=path, variable=variable, problem=problem
        )
    return SettingFile(variable, path, text)


def _why_not(one: RequestedSetting, plain: Configuration) -> str:
    """Return why a setting is not measured in a configuration; empty: it is."""
    mpi, transport = plain.mpi, plain.transport
    if mpi is None:
        return "it was imported"
    over = f" over {transport.name}" if transport else ""
    libraries = {"ucx", "ofi"} & (set(transport.name.split("-")) if transport else {"ucx", "ofi"})
    if one.within:
        families = [word for word in one.within if word.partition("@")[0] in tuple(Family)]
        transports = [word for word in one.within if word not in families]
        if families and not any(_names(word, mpi.family, mpi.id) for word in families):
            return f"it is for {', '.join(families)}"
        if transports and transport and transport.name not in transports:
            return f"it is for {', '.join(transports)}"
    elif not one.launcher:
        names = [name for name, _ in (*one.variables, *one.paths)]
        if not any(_reads(name, {mpi.family, *libraries}) for name in names):
            return f"{mpi.family}{over} reads none of its variables"
    forced = {row.name: row.value for row in (transport.env if transport else ())}
    for name, value in (*one.variables, *one.paths):
        if name in forced and value != forced[name]:
            return f"it changes {name}, which forces its transport{over}"
    rows = {row.name: row.value for row in plain.rows}
    if not (one.paths or one.launcher) and all(
        name in rows and rows[name] == value for name, value in one.variables
    ):
        return f"{plain.id} has these values already"
    return ""


def _names(word: str, family: Family, mpi: str) -> bool:
    """Return whether `openmpi` or `openmpi@5` names an MPI."""
    return mpi.startswith(word) if "@" in word else word == family


def _reads(name: str, readers: set[str]) -> bool:
    """Return whether one of the readers reads a variable; a name of nobody's may be anyone's."""
    known = next((own for names, own in READERS if names.match(name)), None)
    return known is None or bool(known & readers)

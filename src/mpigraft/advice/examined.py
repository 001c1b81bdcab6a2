"""What a diagnosis rests on: curves, outputs and machines, of files or of a stored campaign."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from mpigraft.analysis import MeasuredCurve, curve_of, is_link, labels_of, values_by_size
from mpigraft.bench import ImportOptions, collect_sources, read_results
from mpigraft.core.errors import UsageError
from mpigraft.core.model import LaunchState, Machine, SeriesKey, Value
from mpigraft.core.text import printable
from mpigraft.graft import read_machine
from mpigraft.store import Store
from mpigraft.trace import Profile, is_profile, read_profile

PART = 4 << 20  # bytes that are read of an output at its beginning, and at its end
FIRST = 1 << 16  # bytes that show what a file is
PACKED = (b"\x1f\x8b", b"\xff\xfe", b"\xfe\xff")  # gzip and UTF-16, which have NULs
MACHINE = b'"single_copy"'  # a key of what `discover --json` writes


@dataclass(frozen=True, slots=True)
class Examined:
    """What was read. Outputs are pairs of a name and a text."""

    curves: tuple[MeasuredCurve, ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()
    machines: tuple[Machine, ...] = ()
    profiles: tuple[tuple[str, Profile], ...] = ()  # by their files
    baseline: str = (
        ""  # label of the curves, or file of the profile, that others are held against; empty: none
    )

    def __bool__(self) -> bool:
        return bool(self.curves or self.outputs or self.machines or self.profiles)

    def __add__(self, other: Examined) -> Examined:
        return replace(
            self,
            curves=self.curves + other.curves,
            outputs=self.outputs + other.outputs,
            machines=self.machines + other.machines,
            profiles=self.profiles + other.profiles,
        )


def examine_files(paths: Iterable[Path], baseline: Path | None = None) -> Examined:
    """Read results, outputs of jobs and descriptions of machines, and those below folders. Raises
    UsageError for a file that is empty, binary or cannot be read."""
    sources, refused = collect_sources([*paths, *([baseline] if baseline else [])], None)
    for file in refused:
        if file.error:
            raise file.error
    parts = [_examine(source.path, source.name) for source in sources]
    if not any(parts):
        raise UsageError.of("diagnose-nothing", paths=", ".join(str(path) for path in paths))
    whole = sum(parts, Examined())
    labels = {*(curve.label for curve in whole.curves), *dict(whole.profiles)}
    if baseline and baseline.name not in labels:
        raise UsageError.of("diagnose-baseline-empty", path=printable(str(baseline)))
    return replace(whole, baseline=baseline.name if baseline else "")


def _examine(path: Path, name: str) -> Examined:
    """Read one file as what it is. Results that cannot be read as such are an output too."""
    data = _ends_of(path)
    if not data.strip():
        raise UsageError.of("diagnose-empty", path=printable(str(path)))
    if b"\0" in data[:FIRST] and not data.startswith(PACKED):
        raise UsageError.of("diagnose-binary", path=printable(str(path)))
    if data.lstrip()[:1] == b"{" and MACHINE in data:
        return Examined(machines=(read_machine(path),))
    if is_profile(path):
        return Examined(profiles=((name, read_profile(path)),))
    curves: tuple[MeasuredCurve, ...] = ()
    try:
        curves = _curves(path, name)
    except UsageError as error:
        if data.startswith(PACKED):
            raise
        if not error.code.startswith(("import-", "output-")):
            raise
    return Examined(curves=curves, outputs=((name, data.decode("utf-8", "replace")),))


def _ends_of(path: Path) -> bytes:
    """Read the beginning and the end of a file of any size. Raises UsageError."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            data = file.read(PART)
            rest = os.fstat(file.fileno()).st_size - len(data)
            if rest > 0:
                file.seek(max(-rest, -PART), os.SEEK_END)
                data += b"\n" * (rest > PART) + file.read(PART)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError.of(
            "import-unreadable", path=printable(str(path)), reason=reason
        ) from error
    return data


def _curves(path: Path, name: str) -> tuple[MeasuredCurve, ...]:
    source = collect_sources([path], None)[0][0]
    tables = read_results(source, ImportOptions(configuration=name))
    if not isinstance(tables, tuple):
        raise UsageError.of("diagnose-export", path=printable(str(path)))
    values: dict[SeriesKey, dict[int, list[float]]] = {}
    for table in tables:
        for m in table.parsed.measurements:
            key = SeriesKey(m.benchmark.key, m.metric, table.layout, table.buffers)
            values.setdefault(key, {}).setdefault(m.size, []).append(m.value)
    return tuple(
        curve_of(
            key,
            name,
            {size: Value(median(every), tuple(every), ()) for size, every in sizes.items()},
        )
        for key, sizes in values.items()
    )


def examine_campaign(store: Store, name: str | None) -> Examined:
    """Read a stored campaign: the curves of its configurations, and how failed launches ended.
    Raises UsageError for a name that fits none or several, MissingError for an empty store."""
    campaign = store.campaign(name)
    configurations = store.configurations(campaign.id)
    rows = [row for row in store.values(campaign.id) if not is_link(row)]
    labels = labels_of(configurations, rows)
    allocations = store.allocations(campaign.id)
    curves = tuple(
        curve_of(key, labels[configuration], values)
        for key, configuration, values in values_by_size(rows, allocations, labels)
    )
    outputs = {
        "\n".join(finding.why for finding in launch.findings): labels.get(
            launch.configuration, campaign.name
        )
        for launch in store.launches(campaign.id)
        if launch.state is not LaunchState.OK and launch.findings
    }
    return Examined(
        curves=curves,
        outputs=tuple((label, text) for text, label in outputs.items()),
        baseline=labels.get(campaign.baseline, ""),
    )

"""What a person asks to have measured: from flags, from a TOML file, or from a stored plan.

All three have the same keys and go through `spec_from`. So a campaign file can request all that
flags can, and a stored plan can be read again.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpigraft.core.errors import UsageError
from mpigraft.core.model import BIND_TO, MAP_BY, MAX_COUNT
from mpigraft.core.parsers import MAX_TOML
from mpigraft.discovery import is_place
from mpigraft.knowledge import Given
from mpigraft.request.apps import App, read_app_lines, read_apps
from mpigraft.request.engine_options import read_engine_options
from mpigraft.request.limits import MOST_LIMIT_S, limits_by_name, narrowest_limit, read_limits
from mpigraft.request.options import (
    COMMAND_LINE,
    line_of,
    option,
    options_of,
    parse_toml_file,
    read_option,
    read_settings,
    settings_of,
)

LARGEST = 1 << 42  # bytes of a message that mpigraft-bench takes; memory is the limit before
# The largest numbers that a person can mean: beyond them a plan takes all memory, or the store
# has no place for it.
MOST_ROUNDS, MOST_SEED, MOST_BUDGET_MS = 10_000, 2**63 - 1, 1_000_000
# On this machine, in the guest with this machine's MPI, on the guest's own MPI.
WHERE = ("native", "grafted", "container")


def _mpis(given: Given) -> tuple[str, ...]:
    """Ids and families as they are; paths whole, since a campaign may go on in another folder."""
    words = given.several(str)
    if given.default is not None:  # of a stored plan, which has been read before
        return words
    return tuple(str(Path(word).absolute()) if is_place(word) else word for word in words)


@dataclass(frozen=True, slots=True)
class CampaignSpec:
    """Empty means every one that can run here, or the default of the kind of campaign."""

    name: str = option("", '"night"')
    mpi: tuple[str, ...] = option((), '["openmpi", "mpich@5.0.2"]', read=_mpis)
    transport: tuple[str, ...] = option((), '["ofi-lnx", "ob1-sm"]')
    benchmark: tuple[str, ...] = option((), '["latency", "bibw"]')
    layout: tuple[str, ...] = option((), '["1x2"]')
    # These six instead of `layout`: each value with each of the others.
    nodes: tuple[int, ...] = option((), "2", most=MAX_COUNT, axis=True)
    ranks_per_node: tuple[int, ...] = option((), "[8, 56]", most=MAX_COUNT, axis=True)
    threads: tuple[int, ...] = option((), "[1, 7]", most=MAX_COUNT, axis=True)
    map_by: tuple[str, ...] = option((), '"l3cache"', words=MAP_BY, axis=True)
    bind_to: tuple[str, ...] = option((), '"numa"', words=BIND_TO, axis=True)
    gpus: bool = option(default=False, example="true", axis=True)
    launcher: tuple[str, ...] = option((), '["own", "srun"]')  # own, srun, flux, pals, aprun
    # Sets: A,B loads two, -C,D unloads one before.
    modules: tuple[str, ...] = option((), '["craype-network-ofi,cray-mpich"]')
    # NAME=VALUE, for every rank.
    env: tuple[str, ...] = option((), '["FI_TCP_IFACE=lo"]', read=read_settings)
    buffers: str = option("host", '"host"', words=("host", "cuda", "rocm"))
    baseline: str = option("", '"mpich@5.0.2/ucx"')
    rounds: int = option(0, "10", most=MOST_ROUNDS)
    # Rounds after which the campaign ends if every curve is called.
    looks: tuple[int, ...] = option((), "[9, 14, 20]", most=MAX_COUNT)
    seed: int = option(0, "7", zero=True, most=MOST_SEED)  # 0: drawn when the campaign is planned
    min_size: int = option(1, "1", flag="--min", most=LARGEST, size=True)
    max_size: int = option(4 * 1024 * 1024, '"4MiB"', flag="--max", most=LARGEST, size=True)
    # Measured time per benchmark and size.
    budget_ms: float = option(0.0, "20", flag="--budget", most=MOST_BUDGET_MS)
    limit_s: float = option(0.0, "60", flag="--limit", most=MOST_LIMIT_S)  # of one launch
    # Of launches of a suite or a benchmark, before limit_s.
    limits: tuple[str, ...] = option(
        (), '{ osu = 300, "osu:alltoall" = 900 }', flag="--limit-of", read=read_limits
    )
    quick: bool = option(default=False, example="true")
    validate: bool = option(default=True, example="false")
    native_build: str = option("prebuilt", '"prebuilt"', words=("prebuilt", "mpicc"))
    # How the benchmarks are timed and averaged.
    like: str = option("itself", '"osu"', words=("itself", "osu"))
    # Builds or installations of the OSU and Intel benchmarks.
    osu: tuple[str, ...] = option((), '["/opt/osu-7.4"]')
    imb: tuple[str, ...] = option((), '["/opt/imb"]')
    matrix: str = option("", '"lattice.mtx"')  # of mini:dirac: a Matrix Market file
    # Applications as benchmarks.
    app: tuple[App, ...] = option((), "{ NAME = { command = ..., figure = ... } }", read=read_apps)
    image: str = option("", '"app.sif"')  # a guest in which the benchmarks run too
    stack: str = option("", '"/opt/stack"')  # a software stack with an override for MPI
    engine: str = option("", '"apptainer"')
    engine_options: tuple[str, ...] = option(
        (), '{ apptainer = ["--nv"] }', flag="--engine-option", read=read_engine_options
    )
    # Folders that ranks in the image see besides.
    bind: tuple[str, ...] = option((), '["/scratch", "/data:/data:ro"]')
    guest: tuple[str, ...] = option((), '["native", "grafted"]', words=WHERE)

    @property
    def axes(self) -> bool:
        """Whether layouts are given by their axes."""
        return any(getattr(self, key) for key in AXES)

    @property
    def variants(self) -> tuple[str, ...]:
        """Of `WHERE`, those in which the benchmarks run."""
        return self.guest or (WHERE if self.image or self.stack else WHERE[:1])

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """Give `env` as `settings_of` does."""
        return settings_of(self.env)

    def limit_of(self, key: str, own_s: float = 0.0) -> float:
        """Return seconds after which a launch of a benchmark, or of `native` together, is killed;
        `own_s` is the limit of an application."""
        return narrowest_limit(self.limits, key, own_s, self.limit_s)

    @property
    def limited(self) -> tuple[str, ...]:
        """Suites and benchmarks that have a limit of their own."""
        return tuple(limits_by_name(self.limits))

    def words(self, without: Collection[str] = ()) -> Iterator[str]:
        """Yield the flags of `mpigraft bench` for every field that differs from its default, less
        the fields `without`. A table has no words on a command line, and is left out."""
        usual = CampaignSpec()
        for key, one in options_of(CampaignSpec).items():
            value = getattr(self, key)
            if key in without or value == getattr(usual, key) or isinstance(value, dict):
                continue
            flag = one.flag
            if isinstance(value, bool):
                yield flag if value else f"--no-{flag.removeprefix('--')}"
                continue
            for word in value if isinstance(value, tuple) else (value,):
                yield from (flag, f"{word:g}" if isinstance(word, float) else str(word))

    def refuse_empty_range(self) -> None:
        """Raise UsageError where no message size is between the smallest and the largest."""
        if not 1 <= self.min_size <= self.max_size <= LARGEST:
            raise UsageError.of("sizes-invalid", min_size=self.min_size, max_size=self.max_size)


AXES = tuple(key for key, one in options_of(CampaignSpec).items() if one.rules.axis)


def spec_from(table: Mapping[str, Any], source: str, *, stored: bool = False) -> CampaignSpec:
    """Read a table whose keys are the fields of CampaignSpec. Raises UsageError, which names
    `source`. In a `stored` plan, 0 is a default."""
    options = options_of(CampaignSpec)
    values = {
        key: read_option(options, key, value, source, stored=stored) for key, value in table.items()
    }
    if axis := _axis_beside_layout(table):
        raise UsageError.of(
            "layout-and-options",
            option=options[axis].place(source),
            other=options["layout"].place(source).rpartition(" ")[2],
        )
    return CampaignSpec(**values)


def stored_spec(table: Mapping[str, Any], source: str) -> CampaignSpec:
    """Read the spec that a store keeps, by the names of an older version too; see `spec_from`."""
    values = {"env" if key == "set" else key: value for key, value in table.items()}
    if "guest" in values:
        values["guest"] = ["container" if one == "own" else one for one in values["guest"]]
    return spec_from(values, source, stored=True)


def _axis_beside_layout(table: Mapping[str, Any]) -> str:
    """Return an axis that is given though whole layouts are; empty where there is none."""
    return next((key for key in AXES if table.get(key)), "") if table.get("layout") else ""


def read_spec(path: Path) -> CampaignSpec:
    """Read a TOML campaign file. Raises UsageError with file and line."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_TOML + 1)
    except OSError as error:
        raise UsageError.of("file-unusable", path=path, reason=error.strerror) from error
    table, text = parse_toml_file(data, path)
    table.pop("case", None)  # what the file is about, which changes nothing
    for key, value in table.items():
        line = line_of(key, text)
        if key == "env" and isinstance(value, dict):
            for name, setting in value.items():
                below = line_of(name, text, "env", line)
                spec_from({"env": {name: setting}}, f"{path}:{below}")
        if key == "app" and isinstance(value, dict):
            read_app_lines(value, text, path, line)
        spec_from({key: value}, f"{path}:{line}")
    axis = _axis_beside_layout(table)
    spec = spec_from(table, f"{path}:{line_of(axis, text)}" if axis else str(path))
    folder = path.absolute().parent
    return dataclasses.replace(
        spec,
        osu=_paths(spec.osu, folder),
        imb=_paths(spec.imb, folder),
        stack=_path(spec.stack, folder) if spec.stack else "",
        matrix=_path(spec.matrix, folder) if spec.matrix else "",
        app=tuple(app.within(folder) for app in spec.app),
    )


def _paths(texts: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return paths as the store keeps them: a campaign may go on from another folder."""
    return tuple(_path(text, folder) for text in texts)


def _path(text: str, folder: Path) -> str:
    return str(folder / Path(text).expanduser())


def given_fields(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that a person gave: neither None nor an empty list."""
    return {name: value for name, value in flags.items() if value not in (None, [], ())}


def merge_specs(file: CampaignSpec, flags: Mapping[str, Any]) -> CampaignSpec:
    """Lay the flags that were given over a campaign file's spec. Whole layouts of flags replace
    axes of the file, and axes of flags its layouts."""
    given = given_fields(flags)
    spec = spec_from(given, COMMAND_LINE)
    if any(given.get(key) for key in AXES):
        file = dataclasses.replace(file, layout=())
    elif spec.layout:
        none = CampaignSpec()
        file = dataclasses.replace(file, **{key: getattr(none, key) for key in AXES})
    own = {name: getattr(spec, name) for name in given}
    if spec.app:  # beside those of the file, and before one of the same name
        here = tuple(app.within(Path.cwd()) for app in spec.app)
        names = {app.name for app in here}
        own["app"] = (*(app for app in file.app if app.name not in names), *here)
    own |= {key: _paths(own[key], Path.cwd()) for key in ("osu", "imb") if key in own}
    if spec.stack:
        own["stack"] = _path(spec.stack, Path.cwd())
    if spec.matrix:
        own["matrix"] = _path(spec.matrix, Path.cwd())
    return dataclasses.replace(file, **own)

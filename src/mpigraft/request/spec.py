"""What a person asks to have measured: from flags, from a TOML file, or from a stored plan.

All three have the same keys and go through `spec_from`. So a campaign file can request all that
flags can, and a stored plan can be read again.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpigraft.core.errors import UsageError
from mpigraft.core.model import MAX_COUNT
from mpigraft.core.parsers import MAX_TOML
from mpigraft.knowledge import Given
from mpigraft.request.apps import APPS, App
from mpigraft.request.job.spec import RunSpec, as_job
from mpigraft.request.limits import MOST_LIMIT_S, limits_by_name, narrowest_limit, read_limits
from mpigraft.request.named_tables import NamedTables, beside
from mpigraft.request.options import (
    COMMAND_LINE,
    Asked,
    by_key,
    given_values,
    line_of,
    option,
    options_of,
    parse_toml_file,
    read_option,
    read_settings,
    settings_of,
    with_options,
)
from mpigraft.request.settings import SETTINGS, RequestedSetting

USUAL_MAX_SIZE = 4 << 20  # bytes of a message: mpigraft-bench's own
LARGEST = 1 << 42  # bytes of a message that mpigraft-bench takes; memory is the limit before
# The largest numbers that a person can mean: beyond them a plan takes all memory, or the store
# has no place for it.
MOST_ROUNDS, MOST_SEED, MOST_BUDGET_MS = 10_000, 2**63 - 1, 1_000_000
# On this machine, in the guest with this machine's MPI, on the guest's own MPI.
WHERE = ("native", "grafted", "own")
JOB = options_of(RunSpec)
NAMED: Mapping[str, NamedTables[Any]] = {"app": APPS, "setting": SETTINGS}


def _mpis(given: Given) -> tuple[str, ...]:
    """Ids and families as they are; paths whole, since a campaign may go on in another folder."""
    from mpigraft.discovery import is_place

    words = given.several(str)
    if given.default is not None:  # of a stored plan, which has been read before
        return words
    return tuple(str(Path(word).absolute()) if is_place(word) else word for word in words)


def _where(given: Given) -> tuple[str, ...]:
    """Read words of WHERE; 0.1.0 wrote `container` for the guest's own MPI."""
    words = given.value if isinstance(given.value, list | tuple) else [given.value]
    named = [re.sub(r"\bcontainer\b", "own", w) if isinstance(w, str) else w for w in words]
    return dataclasses.replace(given, value=named).several(str)


def _of_job(key: str, example: str, **rules: Any) -> Any:
    """Make a field with the help of an option of a job. Each of its values is measured with each of
    the others."""
    text = f"{JOB[key].rules.help.removesuffix('.')}; several with commas."
    shown = {"example": example, "help": text}
    return as_job(key, (), **shown, axis=True, commas=True, rare=True, **rules)


@dataclass(frozen=True, slots=True)
class CampaignSpec:
    """Empty means every one that can run here, or the default of the kind of campaign."""

    mpi: tuple[str, ...] = option(
        (), '["openmpi", "mpich@5.0.2"]', read=_mpis, metavar="NAME", usual="all",
        help="MPIs to measure: openmpi,mpich@5 or a path.", commas=True,
        panel="What to measure",
    )  # fmt: skip
    transport: tuple[str, ...] = option(
        (), '["ofi-lnx", "ob1-sm"]', metavar="NAME", usual="all that run here",
        help="Transports to use: ofi-lnx,ob1-sm.", commas=True, panel="What to measure",
    )  # fmt: skip
    benchmark: tuple[str, ...] = option(
        (), '["latency", "bibw"]', metavar="NAME",
        usual="latency, bibw, allreduce, bw, bcast, alltoall",
        help="Benchmarks to run: latency,bw. Options follow a comma: alltoallv,counts=sparse. "
        "--list prints all; of other suites: osu:NAME, imb:NAME, mini:NAME, app:NAME.",
        panel="What to measure",
    )  # fmt: skip
    osu: tuple[str, ...] = option(
        (), '["/opt/osu-7.4"]', metavar="PATH", usual="those in PATH or of a module",
        help="Build or installation of the OSU benchmarks, for osu:NAME; repeatable.",
        panel="What to measure", rare=True,
    )  # fmt: skip
    imb: tuple[str, ...] = option(
        (), '["/opt/imb"]', metavar="PATH", usual="Intel MPI's",
        help="Folder with the Intel MPI Benchmarks, for imb:NAME; repeatable.",
        panel="What to measure", rare=True,
    )  # fmt: skip
    matrix: str = option(
        "", '"lattice.mtx"', metavar="FILE", usual="a lattice",
        help="Matrix Market file for mini:dirac.", panel="What to measure", rare=True,
    )  # fmt: skip
    app: tuple[App, ...] = option(
        (), "{ NAME = { command = ..., figure = ... } }", read=APPS.read, metavar="NAME={...}",
        help="Application as app:NAME: command, figure, unit, better as in [app.NAME]; "
        "repeatable.", panel="What to measure", rare=True,
    )  # fmt: skip
    layout: tuple[str, ...] = option(
        (), '["1x2"]', metavar="NODESxRANKS", usual="a pair of ranks, and every core",
        help="Layouts of ranks: 2x8,2x8x7:l3cache. Or give its parts, as below.",
        commas=True, panel="Where",
    )  # fmt: skip
    # These six instead of `layout`: each value with each of the others.
    nodes: tuple[int, ...] = _of_job("nodes", "2", most=MAX_COUNT)
    ranks_per_node: tuple[int, ...] = _of_job("ranks_per_node", "[8, 56]", most=MAX_COUNT)
    threads: tuple[int, ...] = _of_job("threads", "[1, 7]", most=MAX_COUNT, usual="1")
    map_by: tuple[str, ...] = _of_job("map_by", '"l3cache"')
    bind_to: tuple[str, ...] = _of_job("bind_to", '"numa"')
    gpus: bool = as_job("gpus", default=False, axis=True)
    launcher: tuple[str, ...] = option(
        (), '["own", "srun"]', metavar="NAME",
        help="Launchers to use: own (the MPI's), srun, flux, pals, aprun.",
        commas=True, panel="Where", rare=True,
    )  # fmt: skip
    modules: tuple[str, ...] = option(  # sets: A,B loads two, -C,D unloads one before
        (), '["craype-network-ofi,cray-mpich"]', metavar="A,-B",
        help="Measure the MPIs that these modules provide (-B unloads B); repeatable.",
        panel="What to measure", rare=True,
    )  # fmt: skip
    env: tuple[str, ...] = as_job(
        "env", (), example='["FI_TCP_IFACE=lo"]', read=read_settings,
        panel="What to measure", rare=True,
    )  # fmt: skip
    setting: tuple[RequestedSetting, ...] = option(
        (), '{ eager64 = { env = { UCX_RNDV_THRESH = "65536" } } }', read=SETTINGS.read,
        metavar="NAME:VAR=VALUE",
        help="Measure with these variables too, beside the same without: "
        "eager64:UCX_RNDV_THRESH=65536. 'A=1 B=2 -C' sets two and unsets C; repeatable.",
        panel="What to measure", rare=True,
    )  # fmt: skip
    combine: bool = option(
        default=False, example="true",
        help="Measure settings together too: each that go with each other.",
        panel="What to measure", rare=True,
    )  # fmt: skip
    allow_unknown: bool = option(
        default=False, example="true",
        help="Measure settings with variables that an MPI here does not know.",
        panel="What to measure", rare=True,
    )  # fmt: skip
    image: str = option(  # a guest in which the benchmarks run too
        "", '"app.sif"', metavar="GUEST",
        help="Container to measure in too. It runs with its own MPI, and with the grafted one.",
        panel="Container or stack",
    )  # fmt: skip
    stack: str = option(  # a software stack with an override for MPI
        "", '"/opt/stack"', metavar="STACK",
        help="Software stack, or one program of it: measure in it too, with its own MPI and "
        "the injected one.", panel="Container or stack", rare=True,
    )  # fmt: skip
    guest: tuple[str, ...] = option(
        (), '["native", "grafted"]', words=WHERE, metavar="WHERE",
        usual="all three with --image or --stack", read=_where, commas=True,
        help="Where to measure: native, grafted (in a stack: injected), own (on the guest's own "
        "MPI).", panel="Container or stack", rare=True,
    )  # fmt: skip
    engine: str = as_job("engine", "")
    engine_options: tuple[str, ...] = as_job("engine_option", ())
    bind: tuple[str, ...] = as_job("bind", (), example='["/scratch", "/data:/data:ro"]')
    rounds: int = option(
        0, "10", most=MOST_ROUNDS, metavar="N", usual="10, with --quick 6",
        help="Rounds to measure; fewer than 6 decide nothing.", panel="How long",
    )  # fmt: skip
    spare_rounds: int = option(
        0, "3", most=MOST_ROUNDS, metavar="N", usual="none, with --quick 3",
        help="Add up to N rounds, one for each in which other processes used the CPU.",
        panel="How long", rare=True,
    )  # fmt: skip
    looks: tuple[int, ...] = option(
        (), "[9, 14, 20]", key="stop_early_at", most=MAX_COUNT, commas=True,
        metavar="N,N,N", usual="none",
        help="Test the curves after these rounds, and stop early once all are decided: 9,14,20.",
        panel="How long", rare=True,
    )  # fmt: skip
    baseline: str = option(
        "", '"mpich@5.0.2/ucx"', metavar="NAME", help="Configuration to compare the others with.",
        panel="Output", rare=True,
    )  # fmt: skip
    buffers: str = option(
        "host", '"host"', words=("host", "cuda", "rocm"), metavar="KIND", usual="host",
        help="Memory of messages: host, cuda or rocm.", panel="What to measure", rare=True,
    )  # fmt: skip
    min_size: int = option(
        1, "1", key="min", most=LARGEST, size=True, metavar="SIZE", usual="1",
        help="Smallest message.", panel="What to measure", rare=True,
    )  # fmt: skip
    max_size: int = option(
        0, '"4MiB"', key="max", most=LARGEST, size=True, metavar="SIZE",
        usual="4MiB, with --quick 1MiB", help="Largest message: 65536, 64K, 4GiB.",
        panel="What to measure", rare=True,
    )  # fmt: skip
    budget_ms: float = option(
        0.0, "20", key="ms_per_size", most=MOST_BUDGET_MS, metavar="MS",
        usual="20, with --quick 8", help="Measure each size for this many milliseconds.",
        panel="How long", rare=True,
    )  # fmt: skip
    limit_s: float = option(
        0.0, "60", key="limit", most=MOST_LIMIT_S, metavar="SECONDS",
        usual="from --ms-per-size", help="Kill a launch after this many seconds.",
        panel="How long", rare=True,
    )  # fmt: skip
    limits: tuple[str, ...] = option(  # before limit_s
        (), '{ osu = 300, "osu:alltoall" = 900 }', key="limit_of", read=read_limits,
        metavar="NAME=SECONDS", usual="none",
        help="The same for a suite or a benchmark: osu=300, osu:alltoall=900; repeatable.",
        panel="How long", rare=True,
    )  # fmt: skip
    seed: int = option(  # 0: drawn when the campaign is planned
        0, "7", zero=True, most=MOST_SEED, metavar="N", usual="random",
        help="Seed of the random order.", panel="What to measure", rare=True,
    )  # fmt: skip
    name: str = option(
        "", '"night"', metavar="NAME", usual="bench or quick",
        help="Name of the campaign in the store.", panel="Output",
    )  # fmt: skip
    native_build: str = option(
        "prebuilt", '"prebuilt"', words=("prebuilt", "mpicc"), metavar="HOW", usual="prebuilt",
        help="prebuilt: use the benchmarks of this package; mpicc: build them here.",
        panel="What to measure", rare=True,
    )  # fmt: skip
    like: str = option(
        "itself", '"osu"', key="timing", words=("itself", "osu"), metavar="SUITE", usual="none",
        help="osu: time and average as the OSU benchmarks do, to compare with published figures.",
        panel="What to measure", rare=True,
    )  # fmt: skip
    validate: bool = option(
        default=True, example="false", names=("--validate/--no-validate",), usual="validate",
        help="Check every received buffer.", panel="What to measure", rare=True,
    )  # fmt: skip
    quick: bool = option(
        default=False, example="true",
        help="6 to 9 rounds of latency, bibw, allreduce, to 1 MiB.",
        panel="How long",
    )  # fmt: skip

    @property
    def axes(self) -> bool:
        """Whether layouts are given by their axes."""
        return any(getattr(self, key) for key in AXES)

    @property
    def variants(self) -> tuple[str, ...]:
        """Of `WHERE`, those in which the benchmarks run."""
        return self.guest or (WHERE if self.image or self.stack else WHERE[:1])

    @property
    def variables(self) -> tuple[tuple[str, str], ...]:
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

    def refuse_empty_range(self) -> None:
        """Raise UsageError where no message size is between the smallest and the largest."""
        if not 1 <= self.min_size <= self.max_size <= LARGEST:
            raise UsageError.of("sizes-invalid", min_size=self.min_size, max_size=self.max_size)


AXES = tuple(key for key, one in options_of(CampaignSpec).items() if one.rules.axis)


def spec_from(table: Mapping[str, Any], source: str, *, stored: bool = False) -> CampaignSpec:
    """Read a table whose keys are the options of CampaignSpec. Raises UsageError, which names
    `source`. In a `stored` plan, 0 is a default."""
    options = options_of(CampaignSpec)
    values = {
        options[key].field.name if key in options else key: read_option(
            options, key, value, source, stored=stored
        )
        for key, value in table.items()
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
    values = {"env" if key == "set" else key: value for key, value in by_key(CampaignSpec, table)}
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
        if key in NAMED and isinstance(value, dict):
            NAMED[key].refuse_lines(value, text, path, line)
        spec_from({key: value}, f"{path}:{line}")
    axis = _axis_beside_layout(table)
    spec = spec_from(table, f"{path}:{line_of(axis, text)}" if axis else str(path))
    return _within(spec, path.absolute().parent)


def _within(spec: CampaignSpec, folder: Path) -> CampaignSpec:
    """Make paths that are relative to a folder whole, as the store keeps them: a campaign may go
    on from another folder."""

    def whole(text: str) -> str:
        return str((folder / Path(text).expanduser()).absolute())

    return dataclasses.replace(
        spec,
        osu=tuple(map(whole, spec.osu)),
        imb=tuple(map(whole, spec.imb)),
        stack=whole(spec.stack) if spec.stack else "",
        matrix=whole(spec.matrix) if spec.matrix else "",
        app=tuple(app.within(folder) for app in spec.app),
        setting=tuple(one.relative_to(folder) for one in spec.setting),
    )


def asked_campaign(values: Mapping[str, object]) -> Asked[CampaignSpec]:
    """Read what was typed, by key. None and an empty list were not given. Raises UsageError."""
    given = given_values(values)
    return Asked(_within(spec_from(given, COMMAND_LINE), Path()), frozenset(given))


def override_spec(file: CampaignSpec, asked: Asked[CampaignSpec]) -> CampaignSpec:
    """Lay the flags that were given over a campaign file's spec. Whole layouts of flags replace
    axes of the file, and axes of flags its layouts."""
    spec, none = asked.value, CampaignSpec()
    if spec.axes:
        file = dataclasses.replace(file, layout=())
    elif spec.layout:
        file = dataclasses.replace(file, **{key: getattr(none, key) for key in AXES})
    if spec.benchmark and "mini:dirac" not in ",".join(spec.benchmark):
        file = dataclasses.replace(file, matrix="")  # of a benchmark that the flags replace
    options = options_of(CampaignSpec)
    own = {key: options[key].value(spec) for key in asked.given}
    own |= {key: beside(getattr(spec, key), getattr(file, key)) for key in NAMED if key in own}
    return with_options(file, own)

"""The configuration files that the ranks and the launcher of a configuration read unasked.

They turn a transport into another one as well as the environment can, so evidence is kept under
their contents, and a job's command line only as long as none of them appears, changes or goes.
Which files these are is data (knowledge/config_files.toml), seen with `strace` of real libraries.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from mpigraft import cache, grafts
from mpigraft.knowledge.config_rows import FIELD, ConfigRow, rows
from mpigraft.model import Bind, Configuration, GraftPlan, GuestKind
from mpigraft.used_files import launchers, libraries

MAX_LIBRARY = 1 << 28  # bytes; one that is larger is looked at no further
# Absolute paths in a library's bytes: files *.conf, and folders in which such files lie.
BUILT_IN = re.compile(
    rb"(?<=\0)/[\w.+/-]{1,200}?(?:\.conf|/etc(?:/[\w.+-]{1,60})?|/share|/ucx)(?=\0)"
)
PREFIXES = (
    "OPAL_PREFIX", "PRTE_PREFIX", "PMIX_PREFIX", "PMIX_INSTALL_PREFIX", "I_MPI_ROOT",
)  # fmt: skip
# Variables of these beginnings steer an MPI; some name files (OMPI_MCA_mca_base_param_files).
STEERING = (
    "OMPI_", "OPAL_", "PRTE_", "PMIX_", "UCX_", "FI_", "I_MPI_", "MPIR_", "MPICH_", "MVP_",
    "MPIEXEC_", "HYDRA_", "PSM2_", "PSM3_", "IBV_", "RDMAV_",
)  # fmt: skip
LOADER = ("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT")
NO_CONFIG = re.compile(
    r"OPAL_|I_MPI_ROOT$|PRTE_PREFIX$|PMIX_\w*(DIR|PREFIX)$|\w*(component_path|MODULE_DIR|PROVIDER_PATH)$"
)
OF_FOLDERS = re.compile("file|conf|tuning", re.IGNORECASE)  # /tmp of another one is no such folder
SEPARATORS = re.compile("[:,]")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What ranks find besides their configuration. `cwd` None: an empty folder of ours."""

    cwd: Path | None = None
    environment: tuple[tuple[str, str], ...] | None = None  # None: what a benchmark may have
    binds: tuple[Bind, ...] = ()  # of the user or of the site, in a guest

    @property
    def inherited(self) -> dict[str, str] | None:
        """The environment as a launch starts from it."""
        return None if self.environment is None else dict(self.environment)

    @property
    def steering(self) -> tuple[tuple[str, str], ...]:
        """What of the environment steers an MPI, or leads the loader."""
        names = (*STEERING, *LOADER)
        return tuple(row for row in self.environment or () if row[0].startswith(names))


OURS = Surroundings()


@dataclass(frozen=True, slots=True)
class ConfigFiles:
    """Files that are read where they are there, and folders of which every file is."""

    paths: tuple[str, ...]
    folders: tuple[str, ...]

    @property
    def present(self) -> Iterator[str]:
        """Each regular file that is there, once."""
        inside = (f"{folder}/{name}" for folder in self.folders for name in _names(folder))
        for path in dict.fromkeys((*self.paths, *inside)):
            if os.path.isfile(path):  # noqa: PTH113
                yield path

    def with_settings(self) -> tuple[str, ...]:
        """Those that set something: most MPIs bring files of comments. What a folder has are sets
        to choose from, and tables of tuning."""
        found = []
        for path in self.paths:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                text = Path(path).read_text(encoding="utf-8")
                if any("=" in line.partition("#")[0] for line in text.splitlines()):
                    found.append(path)
        return tuple(found)

    def digests(self) -> tuple[tuple[str, str], ...]:
        """(path, SHA-256) of what is there. What we cannot read, a rank cannot."""
        found = []
        for path in self.present:
            with contextlib.suppress(OSError):
                found.append((path, cache.file_digest(path)))
        return tuple(sorted(found))


def config_files(configuration: Configuration, around: Surroundings = OURS) -> ConfigFiles:
    """Every file that this configuration's libraries and launcher look for, there or not. A guest
    may show a rank this machine's file of a path, its own or a bound one: all of them are named."""
    variables = _variables(configuration, around)
    seen = _seen(configuration)
    facts = _facts(configuration, variables, around)
    family = configuration.mpi.family if configuration.mpi else None
    wanted = [row for row in rows() if not row.families or family in row.families]
    templates = (path for row in wanted for path in _filled(row, facts, variables, seen))
    paths = [*templates, *_named(variables, facts)]
    plan = configuration.graft
    if plan:
        paths = [there for path in paths for there in _in_guest(path, plan, around.binds)]
    plain = dict.fromkeys(os.path.normpath(path) for path in paths if not path.endswith("/*"))
    whole = dict.fromkeys(os.path.normpath(path[:-2]) for path in paths if path.endswith("/*"))
    for path in [path for path in plain if os.path.isdir(path)]:  # noqa: PTH112
        whole[path] = None
        del plain[path]
    return ConfigFiles(tuple(plain), tuple(whole))


def _variables(configuration: Configuration, around: Surroundings) -> dict[str, str]:
    """The environment of ranks and launcher, as far as rows and surroundings say it."""
    transport, mpi, plan = configuration.transport, configuration.mpi, configuration.graft
    given = dict(around.environment) if around.environment is not None else {}
    for row in (
        *(mpi.environment if mpi else ()),
        *(grafts.environment(plan) if plan else ()),
        *(transport.env if transport else ()),
    ):
        if row.value:
            given[row.name] = row.value
    return given


def _seen(configuration: Configuration) -> tuple[Path, ...]:
    """Libraries and programs whose places and bytes say where files are looked for."""
    mpi, plan = configuration.mpi, configuration.graft
    inputs = [Path(one.path) for one in plan.inputs] if plan else []
    own = libraries(mpi) if mpi and mpi.libmpi and mpi.libmpi.exists() else ()
    return tuple(dict.fromkeys((*own, *launchers(configuration), *inputs)))


def _facts(
    configuration: Configuration, variables: Mapping[str, str], around: Surroundings
) -> dict[str, tuple[str, ...]]:
    mpi, plan = configuration.mpi, configuration.graft
    prefixes = [variables[name] for name in PREFIXES if variables.get(name, "").startswith("/")]
    prefixes += [str(mpi.prefix)] if mpi else []
    prefixes += [str(grafts.folder(plan))] if plan else []
    home = variables.get("HOME", "")
    with contextlib.suppress(RuntimeError):  # no HOME, and no such user
        home = home or str(Path("~").expanduser())
    return {
        "prefix": tuple(dict.fromkeys(prefixes)),
        "home": (home,) if home else (),
        "cwd": tuple(map(str, filter(None, (around.cwd,)))),
    }


def _filled(
    row: ConfigRow,
    facts: Mapping[str, tuple[str, ...]],
    variables: Mapping[str, str],
    seen: Iterable[Path],
) -> Iterator[str]:
    """The paths of a row: each template with every value of what it names."""
    own = [path for path in seen if row.by and row.by.fullmatch(path.name)]
    dirs = {str(place) for path in own for place in (path.parent, path.resolve().parent)}
    known = {**facts, "dir": tuple(sorted(dirs))}
    for template in row.files:
        field, _, name = template.partition("}")
        if field == "{built-in":
            for place in sorted({place for path in own for place in built_in(path)}):
                yield from _built(place, name.strip("/"))
            continue
        names = FIELD.findall(template)
        values = [known.get(one) or ((variables[one],) if variables.get(one) else ())
                  for one in names]  # fmt: skip
        for chosen in product(*values):
            path = template
            for one, value in zip(names, chosen, strict=True):
                path = path.replace(f"{{{one}}}", value)
            if path.startswith("/"):
                yield path


def _built(place: str, name: str) -> Iterator[str]:
    if place.endswith(f"/{name}"):
        yield place
    elif not place.endswith(".conf"):
        yield f"{place}/{name}"


def built_in(library: Path) -> tuple[str, ...]:
    """Absolute paths in a library's bytes that can name, or hold, configuration files."""
    try:
        key = cache.file_digest(library)
        known = cache.get("built-in", key)
        if isinstance(known, list):
            return tuple(map(str, known))
        with library.open("rb") as file:
            found = sorted(
                {hit.decode("ascii") for hit in BUILT_IN.findall(file.read(MAX_LIBRARY))}
            )
    except (OSError, UnicodeDecodeError):
        return ()
    cache.put("built-in", key, found)
    return tuple(found)


def _named(variables: Mapping[str, str], facts: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Files that settings name, and all files of folders that they name. A name without a folder
    is looked for in the working folder and among Open MPI's sets of parameters."""
    for variable, value in variables.items():
        if not variable.startswith(STEERING) or NO_CONFIG.match(variable):
            continue
        whole = bool(OF_FOLDERS.search(variable))
        for word in filter(None, SEPARATORS.split(value)):
            if word.startswith("/"):
                if whole or not os.path.isdir(word):  # noqa: PTH112
                    yield word
            elif whole:
                yield from (f"{place}/{word}" for place in facts["cwd"])
                sets = "share/openmpi/amca-param-sets"
                yield from (f"{prefix}/{sets}/{word}" for prefix in facts["prefix"])


def _in_guest(path: str, plan: GraftPlan, binds: Iterable[Bind]) -> Iterator[str]:
    """Where a path of a rank in a guest may lie on this machine."""
    yield path
    for bind in binds:
        if path == bind.target or path.startswith(f"{bind.target.rstrip('/')}/"):
            yield bind.source + path[len(bind.target.rstrip("/")) :]
    place = grafts.place(plan)
    if path.startswith(f"{place}/"):
        yield f"{grafts.folder(plan)}{path[len(place) :]}"
    if plan.guest.kind is GuestKind.FOLDER and not path.startswith(f"{plan.guest.source}/"):
        yield f"{plan.guest.source}{path}"


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return []

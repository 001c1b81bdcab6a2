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

from mpigraft.core import cache
from mpigraft.core.fingerprint import own_state
from mpigraft.core.model import Bind, Configuration, GraftPlan, GuestKind
from mpigraft.evidence.files.used import launcher_files, mpi_libraries
from mpigraft.graft import graft_environment, graft_folder, path_in_guest
from mpigraft.knowledge import TEMPLATE_FIELD, ConfigRow, config_rows

MAX_LIBRARY = 1 << 28  # bytes; one that is larger is looked at no further
# Absolute paths in a library's bytes: files *.conf, and folders with such files.
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
    """What ranks find besides their configuration. `cwd` None: our own empty folder."""

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


OWN_SURROUNDINGS = Surroundings()


@dataclass(frozen=True, slots=True)
class ConfigFiles:
    """Files that are read if they exist, and folders whose files are all read."""

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
        """Return those that set something: most MPIs bring files of comments. What a folder has are
        sets to choose from, and tables of tuning."""
        paths = []
        for path in self.paths:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                text = Path(path).read_text(encoding="utf-8")
                if any("=" in line.partition("#")[0] for line in text.splitlines()):
                    paths.append(path)
        return tuple(paths)

    def digests(self) -> tuple[tuple[str, str], ...]:
        """(path, SHA-256) of what is there. What we cannot read, a rank cannot."""
        rows = []
        for path in self.present:
            with contextlib.suppress(OSError):
                rows.append((path, cache.file_digest(path)))
        return tuple(sorted(rows))


def mpi_config_files(
    configuration: Configuration, surroundings: Surroundings = OWN_SURROUNDINGS
) -> ConfigFiles:
    """Return every file that this configuration's libraries and launcher look for, there or not. A
    guest may show a rank this machine's file of a path, its own or a bound one: all of them are
    named."""
    variables = _variables(configuration, surroundings)
    inspected = _inspected_files(configuration)
    facts = _facts(configuration, variables, surroundings)
    family = configuration.mpi.family if configuration.mpi else None
    rows = [row for row in config_rows() if not row.families or family in row.families]
    templates = (path for row in rows for path in _filled(row, facts, variables, inspected))
    paths = [*templates, *_named(variables, facts)]
    plan = configuration.graft
    if plan:
        paths = [
            location for path in paths for location in _in_guest(path, plan, surroundings.binds)
        ]
    plain = dict.fromkeys(os.path.normpath(path) for path in paths if not path.endswith("/*"))
    whole = dict.fromkeys(os.path.normpath(path[:-2]) for path in paths if path.endswith("/*"))
    for path in [path for path in plain if os.path.isdir(path)]:  # noqa: PTH112
        whole[path] = None
        del plain[path]
    return ConfigFiles(tuple(plain), tuple(whole))


def _variables(configuration: Configuration, surroundings: Surroundings) -> dict[str, str]:
    """Return the environment of ranks and launcher, as far as rows and surroundings say it."""
    mpi, plan = configuration.mpi, configuration.graft
    given = dict(surroundings.environment) if surroundings.environment is not None else {}
    for row in (
        *(mpi.environment if mpi else ()),
        *(graft_environment(plan) if plan else ()),
        *configuration.rows,
    ):
        if row.value:
            given[row.name] = row.value
    return given


def _inspected_files(configuration: Configuration) -> tuple[Path, ...]:
    """Return libraries and programs whose places and bytes say where files are looked for."""
    mpi, plan = configuration.mpi, configuration.graft
    inputs = [Path(copy.path) for copy in plan.inputs] if plan else []
    own = mpi_libraries(mpi) if mpi and mpi.libmpi and mpi.libmpi.exists() else ()
    return tuple(dict.fromkeys((*own, *launcher_files(configuration), *inputs)))


def _facts(
    configuration: Configuration, variables: Mapping[str, str], surroundings: Surroundings
) -> dict[str, tuple[str, ...]]:
    mpi, plan = configuration.mpi, configuration.graft
    prefixes = [variables[name] for name in PREFIXES if variables.get(name, "").startswith("/")]
    prefixes += [str(mpi.prefix)] if mpi else []
    prefixes += [str(graft_folder(plan))] if plan else []
    home = variables.get("HOME", "")
    with contextlib.suppress(RuntimeError):  # no HOME, and no such user
        home = home or str(Path("~").expanduser())
    return {
        "prefix": tuple(dict.fromkeys(prefixes)),
        "home": (home,) if home else (),
        "cwd": tuple(map(str, filter(None, (surroundings.cwd,)))),
    }


def _filled(
    row: ConfigRow,
    facts: Mapping[str, tuple[str, ...]],
    variables: Mapping[str, str],
    inspected: Iterable[Path],
) -> Iterator[str]:
    """Yield the paths of a row: each template with every value of what it names."""
    own = [path for path in inspected if row.by and row.by.fullmatch(path.name)]
    dirs = {str(folder) for path in own for folder in (path.parent, path.resolve().parent)}
    settings = {name: (value,) for name, value in variables.items() if value}
    known = {**settings, **facts, "dir": tuple(sorted(dirs))}
    for template in row.files:
        field, _, name = template.partition("}")
        if field == "{built-in":
            for folder in sorted({folder for path in own for folder in built_in(path)}):
                yield from _built(folder, name.strip("/"))
            continue
        names = TEMPLATE_FIELD.findall(template)
        values = [known.get(fact, ()) for fact in names]
        for chosen in product(*values):
            path = template
            for fact, value in zip(names, chosen, strict=True):
                path = path.replace(f"{{{fact}}}", value)
            if path.startswith("/"):
                yield path


def _built(path: str, name: str) -> Iterator[str]:
    if path.endswith(f"/{name}"):
        yield path
    elif not path.endswith(".conf"):
        yield f"{path}/{name}"


def built_in(library: Path) -> tuple[str, ...]:
    """Absolute paths in a library's bytes that can name, or hold, configuration files."""
    try:
        key = f"{own_state()} {cache.file_digest(library)}"
        known = cache.get("built-in", key)
        if isinstance(known, list):
            return tuple(map(str, known))
        with library.open("rb") as file:
            paths = sorted(
                {hit.decode("ascii") for hit in BUILT_IN.findall(file.read(MAX_LIBRARY))}
            )
    except (OSError, UnicodeDecodeError):
        return ()
    cache.put("built-in", key, paths)
    return tuple(paths)


def _named(variables: Mapping[str, str], facts: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield files that settings name, and all files of folders that they name. A name without a
    folder is looked for in the working folder and among Open MPI's sets of parameters."""
    for variable, value in variables.items():
        if not variable.startswith(STEERING) or NO_CONFIG.match(variable):
            continue
        any_file = bool(OF_FOLDERS.search(variable))
        for word in filter(None, SEPARATORS.split(value)):
            if word.startswith("/"):
                if any_file or not os.path.isdir(word):  # noqa: PTH112
                    yield word
            elif any_file:
                yield from (f"{folder}/{word}" for folder in facts["cwd"])
                sets = "share/openmpi/amca-param-sets"
                yield from (f"{prefix}/{sets}/{word}" for prefix in facts["prefix"])


def _in_guest(path: str, plan: GraftPlan, binds: Iterable[Bind]) -> Iterator[str]:
    """Yield where a path of a rank in a guest may be on this machine."""
    yield path
    for bind in binds:
        if path == bind.target or path.startswith(f"{bind.target.rstrip('/')}/"):
            yield bind.source + path[len(bind.target.rstrip("/")) :]
    graft = str(path_in_guest(plan))
    if path.startswith(f"{graft}/"):
        yield f"{graft_folder(plan)}{path[len(graft) :]}"
    if plan.guest.kind is GuestKind.FOLDER and not path.startswith(f"{plan.guest.source}/"):
        yield f"{plan.guest.source}{path}"


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return []

"""MPIs behind environment modules: what `module load` would set, without loading anything here.

Lmod and Environment Modules print the changes of a load in the syntax of a language. Python's is
requested and read as a syntax tree, never run. Without a module command the module file itself
is read for the prefix that it names.
"""

from __future__ import annotations

import ast
import os
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from mpigraft.core import cache, env
from mpigraft.core.model import EnvRow, Family, Scope
from mpigraft.core.parsers import TooMuch, parse_python
from mpigraft.core.process import clean, run_command
from mpigraft.core.serialize import digest
from mpigraft.discovery.sources import files
from mpigraft.discovery.sources.candidate import Candidate, Host, find_libmpi

LIMIT_S = 20.0
MOST = 40  # modules that are queried; the newest of each folder first
KIND = "module"
NAMES = (
    (Family.CRAY_MPICH, re.compile(r"cray-mpich(?!-abi)", re.IGNORECASE)),
    (Family.OPENMPI, re.compile(r"(gnu\d*-)?open-?mpi|hpcx(-mt|-ompi)?", re.IGNORECASE)),
    (Family.INTEL, re.compile(r"impi|intel-?mpi|intel-oneapi-mpi", re.IGNORECASE)),
    (Family.MVAPICH, re.compile(r"(gnu\d*-)?mvapich2?(-plus)?", re.IGNORECASE)),
    (Family.MPICH, re.compile(r"(gnu\d*-)?mpich", re.IGNORECASE)),
)
# What a load changes for the module command itself, for compilers or for manuals.
NOT_FOR_RUNS = re.compile(
    r"LOADEDMODULES|_LMFILES_|_ModuleTable\w*|_{0,2}LMOD_\w*|_{0,2}MODULES?_?\w*|\w*_modshare"
    r"|MANPATH|INFOPATH|PKG_CONFIG_PATH|CMAKE_\w+|ACLOCAL_PATH|CPATH|LIBRARY_PATH|XDG_DATA_DIRS"
    r"|C(PLUS)?_INCLUDE_PATH|EB(DEVEL|ROOT|VERSION)\w*|SHLVL|PWD|_"
)
ROOT_VARIABLES = ("I_MPI_ROOT", "CRAY_MPICH_DIR", "MPICH_DIR", "MPI_HOME", "MPI_ROOT", "MPI_DIR")


@dataclass(frozen=True, slots=True)
class EnvironmentModule:
    """One module file. `name` is what `module load` takes."""

    name: str
    file: Path
    family: Family


def find(host: Host) -> Iterator[Candidate]:
    modules = list(_modules(host))[:MOST]
    with ThreadPoolExecutor(4) as pool:
        for candidate in pool.map(lambda module: _candidate(host, module), modules):
            if candidate is not None:
                yield candidate


def _modules(host: Host) -> Iterator[EnvironmentModule]:
    """Yield module files of MPIs: folder NAME or mpi/NAME of each folder in MODULEPATH."""
    for top in dict.fromkeys(filter(None, host.environ.get("MODULEPATH", "").split(":"))):
        for entry in files.entries(Path(top)):
            inner = files.entries(entry) if entry.name == "mpi" else [entry]
            for place in inner:
                family = family_of(place.name.removesuffix(".lua"))
                if family is None:
                    continue
                versions = reversed(files.entries(place)) if files.is_folder(place) else [place]
                names: dict[str, Path] = {}  # Lmod takes NAME.lua, which comes first, before NAME
                for file in versions:
                    if files.is_file(file) and not file.name.startswith("."):
                        names.setdefault(str(file.relative_to(top)).removesuffix(".lua"), file)
                yield from (EnvironmentModule(name, file, family) for name, file in names.items())


def family_of(name: str) -> Family | None:
    """Give the family that a module is named for: `openmpi`, `gnu12-openmpi`, `openmpi-x86_64`."""
    for family, pattern in NAMES:
        if re.fullmatch(rf"(?:{pattern.pattern})(?:[-_/].*)?", name, re.IGNORECASE):
            return family
    return None


def _candidate(host: Host, module: EnvironmentModule) -> Candidate | None:
    sets, reason = _sets(host, module)
    prefixes = _prefixes(sets) if sets else named_prefixes(files.text(module.file))
    hits = ((p, find_libmpi(p, module.family) or find_libmpi(p)) for p in prefixes)
    prefix, libmpi = next(((p, lib) for p, lib in hits if lib), (module.file, None))
    if libmpi is None and not reason:
        reason = f"module {module.name} leads to no libmpi"
    bins = [Path(p) for p in sets.get("PATH", "").split(":") if p.startswith(str(prefix))]
    return Candidate(
        source="module",
        origin=f"module {module.name}: {module.file}",
        prefix=prefix,
        libmpi=libmpi,
        bins=tuple(dict.fromkeys((*bins, prefix / "bin"))),
        family=module.family,
        version=re.split(r"[-_]", module.name.rpartition("/")[2])[0],
        environment=rows(sets, libmpi) if libmpi else (),
        reason="" if libmpi else reason,
    )


def rows(sets: dict[str, str], libmpi: Path) -> tuple[EnvRow, ...]:
    """Select what a run needs of what a load sets: no secrets, nothing for compilers.

    The folder of libmpi comes first in LD_LIBRARY_PATH: modules that rely on RPATH leave it out,
    and our programs have no RPATH.
    """
    kept = {k: v for k, v in sets.items()
            if not NOT_FOR_RUNS.fullmatch(k) and not env.SECRET_NAME.search(k)}  # fmt: skip
    given = kept.get("LD_LIBRARY_PATH", "").split(":")
    kept["LD_LIBRARY_PATH"] = ":".join(dict.fromkeys(filter(None, [str(libmpi.parent), *given])))
    return tuple(
        EnvRow(name, value, scope, "module")
        for name, value in kept.items()
        for scope in (Scope.LAUNCHER, Scope.RANK)
    )


# ------------------------------------------------------------------ what a load sets


def command(host: Host) -> list[str] | None:
    """Find the module command: Lmod's, else Environment Modules'."""
    for variable in ("LMOD_CMD", "MODULES_CMD"):
        if (tool := host.environ.get(variable, "")) and files.exists(Path(tool)):
            return [tool]
    fallback = shutil.which("modulecmd", path=host.environ.get("PATH", ""))
    return [fallback] if fallback else None


def _sets(host: Host, module: EnvironmentModule) -> tuple[dict[str, str], str]:
    """Give the variables that loading a module into a clean environment sets, or why it fails."""
    tool = command(host)
    if tool is None:
        return {}, ""
    about = ("MODULEPATH", "MODULESHOME", "MODULERCFILE")
    clean_environment = host.query_environment(loader=False) | {
        name: value
        for name, value in host.environ.items()
        if name in about or name.startswith(("LMOD_", "MODULES_"))
    }
    key = digest([module.name, _content(module.file), clean_environment])
    kept = cache.get(KIND, key)
    if isinstance(kept, dict):
        return kept, ""
    done = run_command(
        [*tool, "python", "load", module.name], env=clean_environment, limit_s=LIMIT_S
    )
    try:
        sets = environment_of(clean(done.stdout))
    except TooMuch as error:
        return {}, f"module load {module.name}: it prints {error}"
    changed = {k: v for k, v in sets.items() if clean_environment.get(k) != v}
    if changed:
        cache.put(KIND, key, changed)
        return changed, ""
    errors = clean(done.stderr).strip().splitlines() or ["it sets nothing"]
    how = "did not end in time" if done.timed_out else env.redact(errors[0])
    return {}, f"module load {module.name}: {how}"


def _content(file: Path) -> str:
    try:
        return cache.file_digest(file)
    except OSError:
        return ""


def environment_of(text: str) -> dict[str, str]:
    """Give what a module command's Python output sets, without what it removes."""
    return {name: value for name, value in changes_of(text).items() if value is not None}


def changes_of(text: str) -> dict[str, str | None]:
    """Read `os.environ[NAME] = VALUE` and `del os.environ[NAME]` of a piece of Python, unrun.

    None: removed. The last statement of a name counts: Lmod empties a variable, then removes it.
    Other statements are skipped; text that is not Python changes nothing. Raises TooMuch for text
    that is not parsed.
    """
    try:
        tree = parse_python(text.encode("utf-8", "surrogateescape"))
    except TooMuch:
        raise
    except (SyntaxError, ValueError):
        return {}
    changes: dict[str, str | None] = {}
    for node in tree.body:
        match node:
            case ast.Assign(targets=[target], value=ast.Constant(value=str() as value)):
                if name := _variable(target):
                    changes[name] = value
            case ast.Delete(targets=[target]):
                if name := _variable(target):
                    changes[name] = None
    return changes


def _variable(target: ast.expr) -> str:
    """Give NAME of `os.environ[NAME]`; empty for any other target."""
    match target:
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id="os"), attr="environ"),
            slice=ast.Constant(value=str() as name),
        ):
            return name
    return ""


def _prefixes(sets: dict[str, str]) -> Iterator[Path]:
    for name in ROOT_VARIABLES:
        if (value := sets.get(name, "")).startswith("/"):
            yield Path(value)
    for name in ("PATH", "LD_LIBRARY_PATH"):
        for folder in sets.get(name, "").split(os.pathsep):
            if folder.startswith("/") and folder not in {"/bin", "/usr/bin"}:
                yield Path(folder).parent


def named_prefixes(text: str) -> list[Path]:
    """List prefixes that a module file spells out: absolute paths without `bin` and `lib`. Values
    that the file computes are not followed: that takes the module command."""
    paths = [Path(p) for p in re.findall(r"(?<![\w$}])(/[\w.+@/-]+)", text)]
    cut = [p.parent if p.name in {"bin", "lib", "lib64"} else p for p in paths]
    return list(dict.fromkeys(p for p in cut if len(p.parts) > 2))

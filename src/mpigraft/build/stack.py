"""What a software stack offers to a build: packages, a compiler, a C library of its own.

Of files only the head of one program is read here; what MPI libraries its programs need is read by
a function of the caller's, as `check` reads it. The layout is EasyBuild's,
software/NAME/VERSION-TOOLCHAIN, below the folder or where EESSI has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from mpigraft.binary import ElfError, read_elf
from mpigraft.build.values import BuildHost, BuildStack, Offer
from mpigraft.core.errors import UsageError
from mpigraft.knowledge import Package, version_numbers

SUITABLE = re.compile(r"[\w./+@,~-]+")  # in paths that configure scripts and make get
# Where software/ is, from the folder that somebody names down to a CPU's.
PLACES = (
    "",
    "{arch}/*/*",
    "{arch}/*",
    "software/linux/{arch}/*/*",
    "software/linux/{arch}/*",
    "versions/*/software/linux/{arch}/*/*",
    "versions/*/software/linux/{arch}/*",
)
GENERATION = re.compile(r"GCC(?:core)?-(\d+(?:\.\d+)+)")
MPIS = ("openmpi", "mpich", "mvapich2", "mvapich")
PROGRAMS = 200  # are read at most, to find one that has an interpreter
GLIBC = re.compile(r"GLIBC_(\d+(?:\.\d+)+)")


# Reads programs below a folder, for an architecture: sonames of MPI, and how many need each.
Needed = Callable[[Path, str], Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Installed:
    """One installation of a stack."""

    name: str  # in lower case
    version: str
    generation: str  # of GCC; empty: the machine's compiler, or one that its name does not say
    prefix: Path


def with_stack(
    host: BuildHost,
    folder: Path,
    packages: Mapping[str, Package],
    environ: Mapping[str, str],
    toolchain: str = "",
    needed: Needed = lambda _, __: {},
) -> BuildHost:
    """Add what a stack offers to what a machine does, and what its programs need. `toolchain` is
    the version of its GCC whose packages count; empty: the one of its newest MPI. Raises UsageError
    for a folder that is no stack, or several, and as `needed` does."""
    software = find_software(folder, host.architecture, environ)
    if not SUITABLE.fullmatch(str(software)):
        raise UsageError.of("stack-unsuitable", stack=software)
    installed = list(_installed(software))
    generations = sorted({i.generation for i in installed} - {""}, key=version_numbers)
    if toolchain and toolchain not in generations:
        known = ", ".join(generations) or "none"
        raise UsageError.of("stack-toolchain-unknown", toolchain=toolchain, known=known)
    chosen = toolchain or _generation_of_mpi(installed) or (generations or [""])[-1]
    name = stack_name(software.parent)
    loader = _loader(software)
    compilers = _compilers(installed, chosen)
    gfortran = Path(compilers, "bin/gfortran")
    stack = BuildStack(
        name,
        str(software),
        compilers=compilers,
        fortran=str(gfortran) if compilers and gfortran.exists() else "",
        generation=chosen,
        others=tuple(g for g in generations if g != chosen),
        loader=loader,
        glibc=_glibc(loader),
        needed=needed(software, host.architecture),
    )
    shared = [name for name, package in packages.items() if package.from_stack]
    offers = {}
    for one in sorted(installed, key=lambda i: version_numbers(i.version)):
        usable = one.generation in ("", chosen) and one.name in shared
        if usable and (one.prefix / "include").is_dir():
            offers[one.name] = Offer(str(one.prefix), one.version, name)
    return replace(host, provided={**host.provided, **offers}, stack=stack)


def find_software(folder: Path, architecture: str, environ: Mapping[str, str]) -> Path:
    """Find the folder `software` of a stack, for an architecture; where there are several, the one
    that the stack's own setting names."""
    root = folder.absolute()
    if not root.is_dir():
        raise UsageError.of("stack-not-folder", stack=folder)
    folders = [root] if root.name == "software" and any(_installed(root)) else []
    for place in PLACES:
        pattern = f"{place.format(arch=architecture)}/software".lstrip("/")
        folders += [path for path in sorted(root.glob(pattern)) if any(_installed(path))]
    own = Path(environ.get("EESSI_SOFTWARE_PATH", "/nowhere"), "software")
    chosen = [path for path in folders if path == own] or folders
    if not chosen:
        raise UsageError.of("stack-empty", stack=folder, architecture=architecture)
    if len(chosen) > 1:
        names = ", ".join(str(path.parent) for path in chosen[:4])
        raise UsageError.of("stack-several", stack=folder, architecture=architecture, folders=names)
    return chosen[0]


def stack_name(folder: Path) -> str:
    """Return a short name of a stack that a module's name may contain: 2023.06-zen4."""
    parts = folder.parts
    version = [parts[i + 1] for i, p in enumerate(parts[:-1]) if p == "versions"]
    words = "-".join([*version[-1:], folder.name])
    return re.sub(r"[^A-Za-z0-9.]+", "-", words).strip("-") or "stack"


def _installed(software: Path) -> Iterator[Installed]:
    for prefix in sorted(software.glob("*/*")):
        if not prefix.is_dir() or not prefix.name[:1].isdigit():
            continue
        version, _, toolchain = prefix.name.partition("-")
        match = GENERATION.search(toolchain)
        name = prefix.parent.name.lower()
        own = version if name in ("gcc", "gcccore") else ""
        yield Installed(name, version, match[1] if match else own, prefix)


def _generation_of_mpi(installed: list[Installed]) -> str:
    mpis = [one for one in installed if one.name in MPIS and one.generation]
    newest = max(mpis, key=lambda one: version_numbers(one.generation), default=None)
    return newest.generation if newest else ""


def _compilers(installed: list[Installed], generation: str) -> str:
    for name in ("gcccore", "gcc"):
        for one in installed:
            if (one.name, one.generation) == (name, generation) and (
                one.prefix / "bin/gcc"
            ).exists():
                return str(one.prefix)
    return ""


def _loader(software: Path) -> str:
    """Return the loader that the stack's programs start with, where it is not the machine's."""
    for program in islice(software.glob("*/*/bin/*"), PROGRAMS):
        try:
            interpreter = read_elf(program).interpreter
        except (ElfError, OSError):
            continue
        if interpreter:
            own = not re.fullmatch(r"/lib(?:64)?/[^/]+", interpreter)
            return interpreter if own else ""
    return ""


def _glibc(loader: str) -> str:
    """Return the version of the C library beside a loader."""
    if not loader:
        return ""
    try:
        nodes = read_elf(Path(loader).parent / "libc.so.6").version_defs
    except (ElfError, OSError):
        return ""
    versions = [match[1] for node in nodes if (match := GLIBC.fullmatch(node))]
    return max(versions, key=version_numbers, default="")

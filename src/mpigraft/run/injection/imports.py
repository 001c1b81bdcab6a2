"""Import mpi4py.MPI of a stack by its own Python, as a user of its module does."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpigraft.core import env
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import Finding, Scope
from mpigraft.discovery import rows_of_modules
from mpigraft.graft import Stack

MPI4PY = re.compile(
    r"((.+)/lib(?:64)?/(python3\.\d+)/site-packages(?:/[^/]+\.egg)?)/mpi4py/MPI\.[^/]+\.so"
)
STATEMENT = "import mpi4py.MPI"
MODULES = "modules/all"  # of EasyBuild, beside its `software`
OF_COMMAND = ("LMOD_", "MODULES", "MODULERCFILE")  # and of no module that is loaded
LMOD = "usr/share/Lmod/libexec/lmod"  # of a compatibility layer
PYTHONS = ("[Pp]ython*/bin", "[Pp]ython*/*/bin", "[Pp]ython*/*/*/bin", "bin", "usr/bin")


@dataclass(frozen=True, slots=True)
class PythonImport:
    """How mpi4py.MPI of one installation is imported."""

    module: str  # that was loaded, else the installation's folder
    words: tuple[str, ...]
    environment: Mapping[str, str]


def plan_imports(stack: Stack, modules: Sequence[str]) -> Iterator[PythonImport | Finding]:
    """Plan the import of each mpi4py among `modules` of Python, with the environment of its module,
    where one can be loaded; report one whose Python is not in the stack."""
    hits = (hit.groups() for hit in map(MPI4PY.fullmatch, modules) if hit)
    for site, prefix, name in dict.fromkeys(hits):
        module, environment = _of_module(stack, Path(prefix))
        places = (environment.get("PATH", ""),) if module else ()
        found = (shutil.which(name, path=path) for path in (*places, *_folders(stack, prefix)))
        python = next(filter(None, found), None)
        if python is None:
            yield Finding.of("verify-no-python", name=name, prefix=prefix)
            continue
        if not module:
            environment["PYTHONPATH"] = site
        yield PythonImport(module or prefix, (python, "-s", "-c", STATEMENT), environment)


def _of_module(stack: Stack, prefix: Path) -> tuple[str, dict[str, str]]:
    """Give the module of an installation and the environment with it loaded; an empty name where
    the installation has none, or it cannot be loaded here."""
    given = env.base()
    tops = [top for top in prefix.parents if (top / MODULES).is_dir()]
    for top in tops:
        if not prefix.is_relative_to(top / "software"):
            continue
        name = str(prefix.relative_to(top / "software"))
        environ = {k: v for k, v in os.environ.items() if k.startswith(OF_COMMAND)}
        environ |= {**given, "MODULEPATH": ":".join(f"{t}/{MODULES}" for t in tops)}
        own = Path(stack.loader.root if stack.loader else "/", LMOD)
        environ |= {"LMOD_CMD": str(own)} if own.exists() else {}
        try:
            return name, env.apply(given, rows_of_modules([name], environ), Scope.RANK)
        except (MissingError, UsageError):
            break
    return "", given


def _folders(stack: Stack, prefix: str) -> Iterator[str]:
    """Give the folders in which the Python of an installation may be: its own, those of Pythons
    beside it and above it up to the stack's root, the compatibility layer's."""
    inside = [top for top in Path(prefix).parents if top.is_relative_to(stack.real)]
    roots = [*inside, Path(stack.root), *([Path(stack.loader.root)] if stack.loader else [])]
    yield f"{prefix}/bin"
    for root in roots:
        for pattern in PYTHONS:
            yield from map(str, sorted(root.glob(pattern)))

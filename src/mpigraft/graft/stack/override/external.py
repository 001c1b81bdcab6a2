"""Write an MPI for a stack without overrides, as text to review: a module file, or Spack's
packages.yaml with the splice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from mpigraft.core.model import Family, MpiInstall, Scope

BARE = re.compile(r"[\w.+-]+")
SPACK = {
    Family.OPENMPI: "openmpi",
    Family.MPICH: "mpich",
    Family.INTEL: "intel-oneapi-mpi",
    Family.CRAY_MPICH: "cray-mpich",
    Family.MVAPICH: "mvapich",
}
# Sources: Lmod's docs, "Lua modulefile functions"; modulefile(4) of environment modules; Spack's
# docs, "packages.yaml" and "concretizer.yaml", since 0.23.


def render_external(form: str, mpi: MpiInstall, notes: tuple[str, ...] = ()) -> str:
    """Give a module file in Lua or Tcl, or Spack's packages.yaml. `notes` are comments in it."""
    match form:
        case "module":
            return render_lmod(mpi, notes)
        case "tcl":
            return render_tcl(mpi, notes)
    return render_spack_external(mpi, notes)


def module_settings(mpi: MpiInstall) -> tuple[tuple[tuple[str, str], ...], Mapping[str, str]]:
    """Give the folders that a module puts first, and the variables that it sets."""
    folders = []
    if mpi.launcher:
        folders.append(("PATH", str(mpi.launcher.parent)))
    if mpi.libmpi:
        folders.append(("LD_LIBRARY_PATH", str(mpi.libmpi.parent)))
    paths = {name for name, _ in folders}
    rows = {
        row.name: row.value
        for row in mpi.environment
        if row.value is not None and row.name not in paths and row.scope is not Scope.DAEMON
    }
    return tuple(folders), rows


def render_lmod(mpi: MpiInstall, notes: tuple[str, ...] = ()) -> str:
    """Give a module file in Lua."""
    folders, variables = module_settings(mpi)
    lines = [
        f"-- {mpi.id} before a stack's own MPI, written by mpigraft. Read it before you use it.",
        *(f"-- {note}" for note in notes),
        f"whatis({_lua(f'{mpi.id} of {mpi.prefix}')})",
        *(f"setenv({_lua(name)}, {_lua(value)})" for name, value in sorted(variables.items())),
        *(f"prepend_path({_lua(name)}, {_lua(folder)})" for name, folder in folders),
    ]
    return "\n".join(lines) + "\n"


def _lua(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def render_tcl(mpi: MpiInstall, notes: tuple[str, ...] = ()) -> str:
    """Give a module file in Tcl."""
    folders, variables = module_settings(mpi)
    lines = [
        "#%Module1.0",
        f"# {mpi.id} before a stack's own MPI, written by mpigraft. Read it before you use it.",
        *(f"# {note}" for note in notes),
        f"module-whatis {_tcl(f'{mpi.id} of {mpi.prefix}')}",
        *(f"setenv {name} {_tcl(value)}" for name, value in sorted(variables.items())),
        *(f"prepend-path {name} {_tcl(folder)}" for name, folder in folders),
    ]
    return "\n".join(lines) + "\n"


def _tcl(text: str) -> str:
    return '"' + re.sub(r'([\\"$\[\]])', r"\\\1", text).replace("\n", "\\n") + '"'


def render_spack_external(mpi: MpiInstall, notes: tuple[str, ...] = ()) -> str:
    """Give packages.yaml with the MPI as an external, and the splice that puts it into programs
    that were built with another."""
    name = SPACK.get(mpi.family, str(mpi.family))
    lines = [*(f"# {note}" for note in notes), *_spack(mpi, name)]
    return "\n".join(lines) + "\n"


def _spack(mpi: MpiInstall, name: str) -> Iterator[str]:
    prefix: Path = mpi.prefix
    yield f"# {mpi.id} as an external, written by mpigraft. Read it before you use it."
    yield "# Spack takes a splice as it is declared: it compares no ABI. `mpigraft check` does."
    yield "packages:"
    yield f"  {name}:"
    yield "    externals:"
    yield f'    - spec: "{name}@{mpi.version}"'
    yield f"      prefix: {_yaml(str(prefix))}"
    if mpi.modules:
        yield f"      modules: [{', '.join(_yaml(m) for m in mpi.modules.split())}]"
    yield "    buildable: false"
    yield "concretizer:"
    yield "  splice:"
    yield "    explicit:"
    yield "    - target: mpi"
    yield f'      replacement: "{name}@{mpi.version}"  # add /HASH of `spack find --long {name}`'
    yield "      transitive: false"


def _yaml(text: str) -> str:
    return (
        text if BARE.fullmatch(text) else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
    )

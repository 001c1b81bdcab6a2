"""Write what starts or finds an MPI without an injection of ours, as text to review: module files,
and Spack's packages.yaml.

Sources: Lmod's docs, "Lua modulefile functions"; modulefile(4) of environment modules; of Spack
1.1 lib/spack/spack/schema/packages.py and concretizer.py, and lib/spack/spack/solver/asp.py: a
splice names its replacement by its hash, and an external may have a version that the package's
recipe does not list.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mpigraft.core.model import Family, MpiInstall, Scope
from mpigraft.graft.stack.override.launcher import LAUNCHERS
from mpigraft.graft.stack.values import Slot

SPACK = {
    Family.OPENMPI: "openmpi",
    Family.MPICH: "mpich",
    Family.INTEL: "intel-oneapi-mpi",
    Family.CRAY_MPICH: "cray-mpich",
    Family.MVAPICH: "mvapich",
}
PATHS = ("PATH", "LD_LIBRARY_PATH")


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """What a module does: folders that come first, and variables that it sets."""

    what: str
    folders: tuple[tuple[str, str], ...]
    variables: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def module_of_mpi(mpi: MpiInstall, folders: Sequence[str]) -> ModuleFile:
    """Make the module of an MPI that programs find in these folders."""
    first = [("PATH", str(mpi.launcher.parent))] if mpi.launcher else []
    rows = {
        row.name: row.value
        for row in mpi.environment
        if row.value is not None and row.name not in PATHS and row.scope is not Scope.DAEMON
    }
    return ModuleFile(
        f"{mpi.id} of {mpi.prefix}, before a stack's own MPI",
        (*first, *(("LD_LIBRARY_PATH", folder) for folder in reversed(folders))),
        tuple(sorted(rows.items())),
    )


def module_of_launcher(slot: Slot) -> ModuleFile:
    """Make the module of the launcher of what is injected into an override. It leads through
    the override's link, so it is right after each switch, and leads nowhere while none is on."""
    what = f"The launcher of the MPI that is injected into {slot.path}"
    notes = ("Load it after the stack's own MPI: its launcher has to come first in PATH.",)
    return ModuleFile(what, (("PATH", f"{slot.path}/{LAUNCHERS}"),), notes=notes)


def render_module(form: str, module: ModuleFile) -> str:
    """Give a module file: of form "module" in Lua for Lmod, "tcl" for environment modules."""
    return {"module": _render_lmod, "tcl": _render_tcl}[form](module)


def _render_lmod(module: ModuleFile) -> str:
    """Give a module file in Lua."""
    lines = [
        f"-- {module.what}. Written by mpigraft; read it before you use it.",
        *(f"-- {note}" for note in module.notes),
        f"whatis({_lua(module.what)})",
        *(f"setenv({_lua(name)}, {_lua(value)})" for name, value in module.variables),
        *(f"prepend_path({_lua(name)}, {_lua(folder)})" for name, folder in module.folders),
    ]
    return "\n".join(lines) + "\n"


def _lua(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _render_tcl(module: ModuleFile) -> str:
    """Give a module file in Tcl."""
    lines = [
        "#%Module1.0",
        f"# {module.what}. Written by mpigraft; read it before you use it.",
        *(f"# {note}" for note in module.notes),
        f"module-whatis {_tcl(module.what)}",
        *(f"setenv {name} {_tcl(value)}" for name, value in module.variables),
        *(f"prepend-path {name} {_tcl(folder)}" for name, folder in module.folders),
    ]
    return "\n".join(lines) + "\n"


def _tcl(text: str) -> str:
    return '"' + re.sub(r'([\\"$\[\]])', r"\\\1", text).replace("\n", "\\n") + '"'


def render_spack(mpi: MpiInstall) -> str:
    """Give packages.yaml with the MPI as an external; comments show how to splice it."""
    return "\n".join(_spack(mpi, SPACK.get(mpi.family, str(mpi.family)))) + "\n"


def _spack(mpi: MpiInstall, name: str) -> Iterator[str]:
    yield f"# packages.yaml: {mpi.id} as an external. Written by mpigraft; read before you use it."
    yield "packages:"
    yield f"  {name}:"
    yield "    externals:"
    yield f"    - spec: {json.dumps(f'{name}@{mpi.version}')}"
    yield f"      prefix: {json.dumps(str(mpi.prefix), ensure_ascii=False)}"
    if mpi.modules:
        yield f"      modules: {json.dumps(mpi.modules.split())}"
    yield "    buildable: false"
    yield "# To put it into programs that were built with another MPI, register it:"
    yield f"#     spack install {name}@{mpi.version}"
    yield f"#     spack find --long {name}@{mpi.version}"
    yield "# Then write this into concretizer.yaml, with the hash that `spack find` shows:"
    yield "#     concretizer:"
    yield "#       splice:"
    yield "#         explicit:"
    yield "#         - target: mpi"
    yield f"#           replacement: {name}/HASH"
    yield "#           transitive: false"
    yield "# Spack itself compares no ABI. mpigraft checked the programs that the stack has now."

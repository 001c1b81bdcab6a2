"""Write the launcher of an injected MPI: scripts in a folder of the generation, and nothing else.

They are scripts, not links: a launcher finds its daemons and data from its own path. A folder of
the MPI itself in PATH was rejected: with the launcher come compilers and tools, and in /usr/bin all
of the host's. LD_LIBRARY_PATH is not set, nor is where libfabric finds providers: every program
that is started would search there, and the copies find their own.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from mpigraft.core.cache import file_digest
from mpigraft.core.model import MpiInstall, Scope

LAUNCHERS = "bin"  # folder of a generation
NAMES = ("mpirun", "mpiexec")
STARTED = {"prrte": ("prte",)}  # from PATH, by a program without a launcher that spawns
OF_PROGRAMS = ("LD_LIBRARY_PATH", "FI_PROVIDER_PATH")  # a launcher does not need them
# Open MPI's launcher puts its own folders into LD_LIBRARY_PATH of ranks, version 4 into PATH too:
# with Debian's these are /usr/lib and /usr/bin. What these variables name starts each rank, and
# gives it back what the user had. Seen with 4.1.4, 4.1.8 and 5.0.11.
AGENTS = {
    "orte": ("OMPI_MCA_orte_fork_agent", ' "PATH=$PATH"'),
    "prrte": ("PRTE_MCA_odls_base_exec_agent", ""),
}
# Of another Open MPI whose module is loaded, they send the launcher to that one's files.
LEADS_AWAY = ("OPAL_PREFIX", "PRTE_PREFIX", "PMIX_PREFIX", "I_MPI_ROOT")


def launcher_scripts(mpi: MpiInstall) -> tuple[tuple[str, str], ...]:
    """Give (name below the generation, text) of the scripts; none for an MPI without a launcher."""
    if mpi.launcher is None:
        return ()
    text = "\n".join(_script(mpi, str(mpi.launcher))) + "\n"
    names = dict.fromkeys((*NAMES, mpi.launcher.name))
    texts = dict.fromkeys(names, text)
    for name in STARTED.get(mpi.launcher_kind, ()):
        texts[name] = "\n".join(_script(mpi, str(mpi.launcher.with_name(name)))) + "\n"
    return tuple((f"{LAUNCHERS}/{name}", text) for name, text in texts.items())


def _comparison(mpi: MpiInstall, launcher: str) -> Iterator[str]:
    """Yield the lines that report an update of the host, which starts ranks of another release
    each in a world of its own. It is no error: a rebuilt launcher starts them as before."""
    try:
        digest = file_digest(launcher)
    except OSError:  # of another machine
        return
    changed = f"mpigraft: {launcher} changed since {mpi.id} was injected: ranks may start apart"
    yield f"listed={shlex.quote(f'{digest}  {launcher}')}"
    yield 'if command -v sha256sum >/dev/null && ! echo "$listed" | sha256sum -c --status; then'
    yield f"    echo {shlex.quote(changed)} >&2"
    yield "    echo 'what to do: mpigraft inject STACK --mpi SPEC makes a new generation' >&2"
    yield "fi"


def _script(mpi: MpiInstall, launcher: str) -> Iterator[str]:
    rows = {row.name: row.value for row in mpi.environment if row.scope is Scope.LAUNCHER}
    rows = {**dict.fromkeys(LEADS_AWAY), **rows}
    place = shlex.quote(launcher)
    gone = shlex.quote(f"mpigraft: {launcher}, the launcher of {mpi.id}, is not on this host")
    yield "#!/bin/sh"
    yield f"# Starts programs of the stack by the launcher of {mpi.id}. Written by mpigraft."
    yield f"if [ ! -x {place} ]; then"
    yield f"    echo {gone} >&2"
    yield "    echo 'what to do: mpigraft inject STACK --mpi SPEC, with an MPI that is here' >&2"
    yield "    exit 127"
    yield "fi"
    for name, value in sorted(rows.items()):
        if name not in OF_PROGRAMS:
            yield f"unset {name}" if value is None else f"export {name}={shlex.quote(value)}"
    # After `env -i`: mpirun searches ssh, and Open MPI ends without a home.
    yield 'export PATH="${PATH:-/usr/local/bin:/usr/bin:/bin}"'
    yield 'export HOME="${HOME:-$(eval echo "~$(id -un)")}"'
    yield from _comparison(mpi, launcher)
    if mpi.launcher_kind in AGENTS:
        agent, path = AGENTS[mpi.launcher_kind]
        yield f'agent() {{ export {agent}="$*"; }}'
        yield 'case "${LD_LIBRARY_PATH:-}$PATH" in'
        yield "    *[[:space:]]*) ;;  # the launcher would take its words apart"
        yield "    *)"
        yield "        own=${LD_LIBRARY_PATH:+LD_LIBRARY_PATH=$LD_LIBRARY_PATH}"
        yield f"        agent /usr/bin/env ${{own:--u LD_LIBRARY_PATH}}{path} ;;"
        yield "esac"
    yield f'exec {place} "$@"'

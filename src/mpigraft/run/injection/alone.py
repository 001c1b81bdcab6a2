"""Start programs on an injected MPI as users do without mpigraft: alone, and by its launcher."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from mpigraft.binary import read_elf
from mpigraft.core import env
from mpigraft.core.cache import file_digest
from mpigraft.core.model import Abi, Copy, Finding, Level, MappedLibrary, MpiInstall
from mpigraft.core.process import Completed, run_command
from mpigraft.evidence import read_witness
from mpigraft.graft import LAUNCHERS, InstalledOverride, StackGuest, make_copy, mapped_generations
from mpigraft.knowledge import Spawn, binding_of, spawn_facts
from mpigraft.native import choose_tool

LIMIT_S = 60.0
SPAWN = "mpigraft-spawn"  # of native/
LAUNCHER = "mpiexec"  # every generation with a launcher has it by this name
ALLOW_ROOT = [
    f"{tool}_ALLOW_RUN_AS_ROOT{end}" for tool in ("OMPI", "PRTE") for end in ("", "_CONFIRM")
]


def is_current(libraries: Sequence[MappedLibrary], override: InstalledOverride) -> bool:
    """Return whether a process has mapped the generation of an override that is on, and no other of
    it. Another override may have a library of the same process."""
    return mapped_generations(libraries).get(_store(override)) == (override.current,)


def _store(override: InstalledOverride) -> str:
    return os.path.realpath(override.store)


def start_alone(
    words: Sequence[str],
    given: Mapping[str, str],
    witness: Path,
    override: InstalledOverride,
    own: Sequence[str] | None = None,
) -> Finding | None:
    """Start a program without a launcher, as scripts and `python -c` do. Report one that does not
    come through MPI_Init on the generation that is on; how it ends is its own matter.

    `own`: the stack's own libfabric and UCX, where these alone were injected. Their MPI may close
    what it does not use, and where it does not start on its own ones either, that is a warning.
    """
    done, libraries = _start(words, given, witness)
    if libraries is not None:
        closed = own is not None and not mapped_generations(libraries).get(_store(override))
        if closed or is_current(libraries, override):
            return None
    code, last = done.code, _last_line(done)
    if own is not None and _start(words, given, witness, own)[1] is None:
        return Finding.of("verify-alone-own", program=words[0], code=code, last=last)
    return Finding.of("verify-alone", program=words[0], code=code, last=last)


def _start(
    words: Sequence[str], given: Mapping[str, str], witness: Path, preloads: Sequence[str] = ()
) -> tuple[Completed, Sequence[MappedLibrary] | None]:
    """Start a program; give what it mapped when it was through MPI_Init, None if it was not."""
    with tempfile.TemporaryDirectory(prefix="mpigraft-alone-") as folder:
        row = {"LD_PRELOAD": ":".join([*preloads, str(witness)]), "MPIGRAFT_WITNESS": folder}
        done = run_command(words, env={**given, **row}, limit_s=LIMIT_S, stdin=b"")
        ranks = [rank for rank in read_witness(Path(folder), 1) if rank.rank >= 0]
    return done, ranks[0].libraries if ranks else None


def _last_line(done: Completed) -> str:
    lines = (line.strip() for line in reversed(done.text().splitlines()))
    return next(filter(None, lines), f"no answer in {LIMIT_S:.0f} s" if done.timed_out else "")


# ------------------------------------------------------------------ MPI_Comm_spawn


def start_spawning(
    mpi: MpiInstall, guest: StackGuest, override: InstalledOverride
) -> dict[str, Finding | None]:
    """Start a program that spawns itself, without a launcher and by that of the generation. Give
    each way with what went wrong: a warning where it is known that this MPI cannot do it."""
    launcher = Path(override.slot.path, LAUNCHERS, LAUNCHER)
    ways: dict[str, tuple[str, list[str]]] = {"without a launcher": ("alone", [])}
    if launcher.exists():
        ways[f"by {LAUNCHER}"] = mpi.launcher_kind, [str(launcher), "-n", "1"]
    with tempfile.TemporaryDirectory(prefix="mpigraft-spawn-") as folder:
        program = str(spawning_program(mpi, guest, Path(folder)))

        def start(way: str) -> Finding | None:
            kind, words = ways[way]
            known = spawn_facts(kind, mpi.family, mpi.version)
            given = _environment(launcher.parent, known)
            done = run_command([*words, program], env=given, limit_s=LIMIT_S, stdin=b"")
            return judge_spawning(done, way, mpi, known, override)

        with ThreadPoolExecutor(len(ways)) as pool:
            return dict(zip(ways, pool.map(start, ways), strict=True))


def spawning_program(mpi: MpiInstall, guest: StackGuest, folder: Path) -> Path:
    """Make our program that spawns itself, which finds its libmpi as a program of the stack does,
    by the same loader. Raises MissingError, or LaunchFailed where it cannot be edited."""
    program = guest.program
    wanted = [(n, b) for n in program.mpi if (b := binding_of(n)) and b.language == "c"]
    one = replace(mpi, abi=Abi(wanted[0][1].abi)) if wanted else mpi
    source = choose_tool(SPAWN, one, program.machine)
    own = [name for name in read_elf(source).needed if binding_of(name)]
    copy = Copy(
        source=str(source),
        name=SPAWN,
        digest=file_digest(source),
        edit=True,
        rpath=guest.search_path(own=False),
        renamed=tuple((name, wanted[0][0]) for name in own if wanted),
        interpreter=program.interpreter,
    )
    make_copy(copy, folder / SPAWN)
    return folder / SPAWN


def _environment(launchers: Path, known: Spawn | None) -> dict[str, str]:
    """Return the environment of a user who has the launcher first in PATH, on this host and in no
    job."""
    own = {k: v for k, v in env.base().items() if not k.startswith(env.BASE_PREFIXES)}
    own["PATH"] = f"{launchers}:{own.get('PATH', os.defpath)}"
    own |= dict.fromkeys(ALLOW_ROOT, "1") if os.geteuid() == 0 else {}
    return own | (dict(word.split("=", 1) for word in known.environment) if known else {})


def judge_spawning(
    done: Completed, way: str, mpi: MpiInstall, known: Spawn | None, override: InstalledOverride
) -> Finding | None:
    """Judge what our program that spawns itself printed: the libmpi of its child."""
    libmpi = ""
    for line in done.text().splitlines():
        with contextlib.suppress(ValueError, LookupError, TypeError):
            libmpi = str(json.loads(line)["libmpi"])
    if libmpi and done.ok and is_current([MappedLibrary(libmpi, 0, 0)], override):
        return None
    finding = Finding.of(
        "verify-spawn",
        way=way,
        mpi=mpi.id,
        code=done.code,
        last=f"its child mapped {libmpi}" if libmpi else _last_line(done),
        advice=f"{known.fix}; " if known and known.fix else "",
    )
    return finding if known is None or known.works else replace(finding, level=Level.WARNING)

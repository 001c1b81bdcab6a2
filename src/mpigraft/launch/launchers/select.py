"""What can start an MPI here: its own launcher, or a scheduler's with a PMI that both support.

What is known is a row of fit.toml; `wireup` tries it.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpigraft.binary import ElfError, read_elf
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Family, LaunchedBy, LauncherInfo, Machine, MpiInstall
from mpigraft.knowledge import PMI, known_world, wireups

OWN = ("own", "mpirun", "mpiexec")
OTHERS = ("srun", "flux", "pals", "aprun")  # keys of launchers.LAUNCHERS
SCHEDULERS = {"srun": "slurm", "flux": "flux", "pals": "pbs", "aprun": "pbs"}
FIX = "use the MPI's own mpirun inside of the job (--launcher mpirun)"
NODES_FIRST = "allocate nodes first (`mpigraft submit`), or use the MPI's own launcher"

Starts = tuple[LaunchedBy | None, ...]
LeftOut = tuple[tuple[str, str], ...]


def launchers_for(
    mpi: MpiInstall, machine: Machine, wanted: Sequence[str] = ()
) -> tuple[Starts, LeftOut]:
    """Find what can start this MPI here, None for its own, and (name, reason) of what cannot.

    `wanted` are names of OWN and OTHERS; without any it is the MPI's own, and the scheduler's
    where it has none. Raises UsageError for another name.
    """
    for name in wanted:
        if name not in (*OWN, *OTHERS):
            raise UsageError.unknown("word-unknown", name, (*OWN, *OTHERS), what="launcher")
    names = [launcher_name(name) for name in wanted] or (["own"] if mpi.launcher else [*OTHERS])
    usable: list[LaunchedBy | None] = []
    left_out: list[tuple[str, str]] = []
    for name in dict.fromkeys(names):
        launcher = _own(mpi) if name == "own" else _other(name, mpi, machine)
        if isinstance(launcher, str):
            left_out.append((name, launcher))
        else:
            usable.append(launcher)
    if usable and not wanted:  # nobody asked for the others
        return tuple(usable[:1]), ()
    return tuple(usable), tuple(left_out)


def split_reason(reason: str) -> tuple[str, str]:
    """Split a reason into why a launcher is left out, and what to do."""
    fix = next((fix for fix in (FIX, NODES_FIRST) if reason.endswith(f"; {fix}")), "")
    return reason.removesuffix(f"; {fix}"), fix or "choose another launcher with --launcher"


def launcher_name(name: str) -> str:
    """Normalize a launcher's name: `mpirun` is the MPI's own."""
    return "own" if name in OWN else name


def _own(mpi: MpiInstall) -> str | None:
    return None if mpi.launcher else f"{mpi.id} has no launcher of its own"


def _other(kind: str, mpi: MpiInstall, machine: Machine) -> LaunchedBy | str:
    """Return a scheduler's launcher with the best PMI of both, or why there is none."""
    info = next((info for info in machine.launchers if _is_kind(kind, info)), None)
    if info is None:
        return f"no {kind} in PATH"
    scheduler = machine.scheduler
    if scheduler is None or not scheduler.in_allocation or scheduler.name != SCHEDULERS[kind]:
        return f"{kind} starts steps of a job of its scheduler, and this is not one; {NODES_FIRST}"
    supported = supported_pmi(mpi)
    rows = wireups(kind, str(mpi.family), mpi.version, supported)
    for row in rows:
        offered = row.pmi in info.pmi_offered and row.unless not in info.pmi_offered
        if not row.pmi or kind != "srun" or offered:
            return LaunchedBy(kind, info.path, info.version, row.pmi)
    needs = [row.pmi for row in rows if row.unless not in info.pmi_offered]
    return _refused(info, mpi, supported, needs)


def _is_kind(kind: str, info: LauncherInfo) -> bool:
    """PALS has launchers named as those of MPIs, in a folder of its own."""
    if kind == "pals":
        return info.name == "palsrun" or (info.name == "mpiexec" and "pals" in info.path.parts)
    return info.name == kind and "pals" not in info.path.parts


def _refused(
    info: LauncherInfo, mpi: MpiInstall, supported: Sequence[str], needs: Sequence[str]
) -> str:
    supports = f"{mpi.id} supports {', '.join(supported) or 'no PMI that is known'}"
    offers = f"{info.name} offers {', '.join(info.pmi_offered) or 'none that is known'}"
    both = [pmi for pmi in supported if pmi in info.pmi_offered]
    known = known_world(_kind(info), str(mpi.family), mpi.version, both)
    ends = "each rank would be 0 of 1" if known and known.alone else "ranks would not start"
    reason = f" ({info.reason})" if info.reason else ""
    wants = f"; --mpi={' or '.join(needs)} would do" if needs else ""
    return f"{supports}, {offers}{reason}: {ends}{wants}; {FIX}"


def _kind(info: LauncherInfo) -> str:
    return next((kind for kind in OTHERS if _is_kind(kind, info)), info.name)


# ------------------------------------------------------------------ supported PMIs


def supported_pmi(mpi: MpiInstall) -> tuple[str, ...]:
    """Return the PMIs that ranks of this MPI support, best first.

    Open MPI 5 has PMIx only; before, its components say it. Intel's chooses by what it meets
    (I_MPI_PMI, auto). MPICH and its kin: the words of the protocols in the library itself
    (`initack` of PMI-1, `fullinit` of PMI-2), or functions that it imports.
    """
    match mpi.family:
        case Family.OPENMPI:
            names = mpi.components_of("pmix")
            kinds = {kind for name in names for sign, kind in COMPONENTS if name.startswith(sign)}
            return tuple(k for k in PMI if k in kinds) if names else ("pmix",)
        case Family.INTEL:
            return ("pmix", "pmi2", "pmi1")
        case Family.CRAY_MPICH:
            return ("cray_shasta", "cray-pals")
        case _:
            return tuple(_words(mpi.libmpi)) if mpi.libmpi else ()


COMPONENTS = (  # of Open MPI's framework pmix, before 5
    ("pmix", "pmix"), ("ext", "pmix"), ("s2", "pmi2"), ("cray", "pmi2"), ("s1", "pmi1"),
    ("flux", "simple"),
)  # fmt: skip
WORDS = (
    ("pmix", "PMIx_Init", b""),
    ("pmi2", "PMI2_Init", b"fullinit"),
    ("pmi1", "PMI_Init", b"initack"),
)


def _words(libmpi: Path) -> Iterator[str]:
    with contextlib.suppress(OSError, ValueError, ElfError), libmpi.open("rb") as file:
        imported = {symbol.name for symbol in read_elf(libmpi).imported}
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for pmi, function, word in WORDS:
                if function in imported or (word and data.find(word) >= 0):
                    yield pmi

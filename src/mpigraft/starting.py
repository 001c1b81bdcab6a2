"""What can start an MPI here: its own launcher, or a scheduler's with a PMI that both speak.

What is known is a row of fit.toml. It is believed only after two ranks found each other: a wrong
pair gives every rank a world of its own, often with exit code 0.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from mpigraft import cache, elf, prove
from mpigraft.config_files import OURS, Surroundings
from mpigraft.errors import UsageError
from mpigraft.jsonout import digest
from mpigraft.kept_evidence import evidence_key
from mpigraft.knowledge import fit
from mpigraft.launched import Launched
from mpigraft.model import (
    Configuration,
    Family,
    Finding,
    LaunchedBy,
    LauncherInfo,
    Layout,
    Level,
    Machine,
    MpiInstall,
)
from mpigraft.natives import Natives
from mpigraft.run import Completed, clean
from mpigraft.witness import check_witness

OWN = ("own", "mpirun", "mpiexec")
OTHERS = ("srun", "flux", "pals", "aprun")  # keys of launchers.LAUNCHERS
SCHEDULERS = {"srun": "slurm", "flux": "flux", "pals": "pbs", "aprun": "pbs"}
PROBE_LIMIT_S = 60.0
MEND = "use the MPI's own mpirun inside of the job (--launcher mpirun)"
NODES_FIRST = (
    "get nodes first (`mpigraft submit`, or the scheduler's own way), or use the MPI's own launcher"
)

Start = Callable[[Configuration, Layout, tuple[str, ...], float, bool], Launched]
Starts = tuple[LaunchedBy | None, ...]
LeftOut = tuple[tuple[str, str], ...]


def launchers_for(
    mpi: MpiInstall, machine: Machine, wanted: Sequence[str] = ()
) -> tuple[Starts, LeftOut]:
    """What can start this MPI here, None for its own, and (name, reason) of what cannot.

    `wanted` are names of OWN and OTHERS; without any it is the MPI's own, and the scheduler's
    where it has none. Raises UsageError for another name.
    """
    for name in wanted:
        if name not in (*OWN, *OTHERS):
            known = ", ".join((*OWN, *OTHERS))
            raise UsageError(f"there is no launcher {name!r}", mend=f"one of {known}")
    names = [plain_name(name) for name in wanted] or (["own"] if mpi.launcher else [*OTHERS])
    found: list[LaunchedBy | None] = []
    left: list[tuple[str, str]] = []
    for name in dict.fromkeys(names):
        one = _own(mpi) if name == "own" else _other(name, mpi, machine)
        if isinstance(one, str):
            left.append((name, one))
        else:
            found.append(one)
    if found and not wanted:  # nobody asked for the others
        return tuple(found[:1]), ()
    return tuple(found), tuple(left)


def parted(reason: str) -> tuple[str, str]:
    """Why a launcher is left out, and what to do."""
    mend = next((one for one in (MEND, NODES_FIRST) if reason.endswith(f"; {one}")), "")
    return reason.removesuffix(f"; {mend}"), mend or "use another launcher: --launcher names it"


def plain_name(name: str) -> str:
    """Of a launcher as a person may call it: `mpirun` is the MPI's own."""
    return "own" if name in OWN else name


def _own(mpi: MpiInstall) -> str | None:
    return None if mpi.launcher else f"{mpi.id} has no launcher of its own"


def _other(kind: str, mpi: MpiInstall, machine: Machine) -> LaunchedBy | str:
    """A scheduler's launcher with the best PMI that both speak, or why it cannot be."""
    info = next((one for one in machine.launchers if _is(kind, one)), None)
    if info is None:
        return f"no {kind} in PATH"
    scheduler = machine.scheduler
    if scheduler is None or not scheduler.in_allocation or scheduler.name != SCHEDULERS[kind]:
        return f"{kind} starts steps of a job of its scheduler, and this is none; {NODES_FIRST}"
    can = spoken(mpi)
    rows = fit.starts(kind, str(mpi.family), mpi.version, can)
    for row in rows:
        if not row.pmi or kind != "srun" or row.pmi in info.pmi_offered:
            return LaunchedBy(kind, info.path, info.version, row.pmi)
    return _refused(info, mpi, can, [row.pmi for row in rows])


def _is(kind: str, info: LauncherInfo) -> bool:
    """PALS has launchers named as those of MPIs, in a place of its own."""
    if kind == "pals":
        return info.name == "palsrun" or (info.name == "mpiexec" and "pals" in info.path.parts)
    return info.name == kind and "pals" not in info.path.parts


def _refused(info: LauncherInfo, mpi: MpiInstall, can: Sequence[str], needs: Sequence[str]) -> str:
    speaks = f"{mpi.id} speaks {', '.join(can) or 'no PMI that is known'}"
    offers = f"{info.name} offers {', '.join(info.pmi_offered) or 'none that is known'}"
    both = [pmi for pmi in can if pmi in info.pmi_offered]
    known = fit.world(_kind(info), str(mpi.family), mpi.version, both)
    ends = "each rank would be 0 of 1" if known and known.alone else "ranks would not start"
    reason = f" ({info.reason})" if info.reason else ""
    wants = f"; --mpi={' or '.join(needs)} would do" if needs else ""
    return f"{speaks}, {offers}{reason}: {ends}{wants}; {MEND}"


def _kind(info: LauncherInfo) -> str:
    return next((kind for kind in OTHERS if _is(kind, info)), info.name)


# ------------------------------------------------------------------ what a library speaks


def spoken(mpi: MpiInstall) -> tuple[str, ...]:
    """The PMIs that ranks of this MPI can speak, best first.

    Open MPI 5 has PMIx only; before, its components say it. Intel's chooses by what it meets
    (I_MPI_PMI, auto). MPICH and its kin: the words of the protocols in the library itself
    (`initack` of PMI-1, `fullinit` of PMI-2), or functions that it asks of another.
    """
    match mpi.family:
        case Family.OPENMPI:
            names = mpi.components_of("pmix")
            own = {kind for name in names for sign, kind in COMPONENTS if name.startswith(sign)}
            return tuple(k for k in fit.PMI if k in own) if names else ("pmix",)
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
    with contextlib.suppress(OSError, ValueError, elf.ElfError), libmpi.open("rb") as file:
        asked = {symbol.name for symbol in elf.read(libmpi).imported}
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            for pmi, function, word in WORDS:
                if function in asked or (word and data.find(word) >= 0):
                    yield pmi


# ------------------------------------------------------------------ what is believed

WORLDS = ("LCH-01", "world-size", "world-ranks", "hosts")  # findings of worlds that ran
WORLD = (*WORLDS, "no-witness", "witness-unreadable")
JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "FLUX_JOB_ID", "FLUX_ENCLOSING_ID")  # each other nodes


def believed(
    configuration: Configuration,
    programs: Natives,
    start: Start,
    layout: Layout | None = None,
    *,
    keep: bool = True,
    around: Surroundings = OURS,
) -> tuple[Finding, ...]:
    """What is wrong with a launcher for this configuration: two ranks are started, on two nodes
    where `layout` says so, and have to be one world. Nothing, where they were on this boot and of
    nodes that last (`keep`), and no configuration file or library has changed since."""
    asked = layout or Layout(1, 2, bind="none")
    key = _pair(configuration, programs, asked, around)
    if keep and cache.get("starting", key) is True:
        return ()
    words = prove.probe_program(programs, configuration.buffers)
    ran = start(configuration, asked, words, PROBE_LIMIT_S, False)
    ended, ranks, placement, hosts, nodes = ran
    seen = check_witness(configuration, asked, ranks, placement, hosts, ended=ended.ok)
    found = tuple(f for f in seen if f.code in WORLD)
    if not ended.ok and not any(f.code in WORLDS for f in found):
        found = (*nodes, _silent(configuration, ended))
    if keep and not found:
        cache.put("starting", key, True)
    return found


def _pair(
    configuration: Configuration, programs: Natives, layout: Layout, around: Surroundings
) -> str:
    """Names launcher, PMI, libraries and nodes: another boot may bring another Slurm."""
    by, mpi = configuration.launcher, configuration.mpi
    return digest(
        {
            "launcher": [by.kind, by.path, by.version, by.pmi] if by else mpi and mpi.launcher,
            "libmpi": mpi and mpi.libmpi,
            "kept": evidence_key(configuration, layout, programs, around=around),
            "host": os.uname().nodename,
            "job": [os.environ.get(name, "") for name in JOBS],
        }
    )


def _silent(configuration: Configuration, ended: Completed) -> Finding:
    name = configuration.launcher.kind if configuration.launcher else "its own launcher"
    said = [*_last(clean(ended.stderr)), *_last(clean(ended.stdout))]
    how = "did not end in time" if ended.timed_out else f"exit code {ended.code}"
    told = f": {said[0]}" if said else ""
    return Finding(
        Level.ERROR, "launcher-fails", f"{configuration.id} under {name}, {how}{told}",
        "two ranks could not be started, so nothing else can be", MEND,
    )  # fmt: skip


def _last(text: str) -> Iterable[str]:
    """The last line that is not of the launcher's own clearing up."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if not line.startswith(("srun:", "slurmstepd"))]
    return (telling or lines)[-1:]

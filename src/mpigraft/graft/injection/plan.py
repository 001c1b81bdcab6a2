"""Make the plan of a graft folder, as plain data, from what the loader's simulation gave.

It decides everything that a launch needs: copies, binds, devices, environment. Engines only
translate it into their options.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mpigraft.binary import read_elf
from mpigraft.core.cache import file_digest
from mpigraft.core.fingerprint import file_fingerprint
from mpigraft.core.model import (
    Bind,
    CheckResult,
    Copy,
    EnvRow,
    GraftPlan,
    GuestLabel,
    MpiAbi,
    Replace,
    Scope,
    Stamp,
)
from mpigraft.core.serialize import digest, plain
from mpigraft.knowledge import binding_of
from mpigraft.native import Natives

if TYPE_CHECKING:
    from pathlib import Path

    from mpigraft.graft.injection.contents import GraftContents

PLACE_ON_HOST = "/{graft}"  # the graft folder's own path: no engine moves it
BENCH, PROBE = "bin/mpigraft-bench", "bin/mpigraft-probe"
GPU_SELECT = "bin/mpigraft-gpu-select"
RELAY = "bin/mpigraft-relay"
TRACE, WITNESS = "lib/libmpigraft-trace.so", "lib/libmpigraft-witness.so"
# Of the launcher's environment, what ranks need to find each other and what users set for them.
PASSED = (
    "PMIX_*", "PMI_*", "PMI2_*", "OMPI_*", "PRTE_*", "ORTE_*", "HYDRA_*", "HYDI_*", "MPIR_*",
    "MPICH_*", "MPIEXEC_*", "MPI_LOCAL*", "I_MPI_*", "MV2_*", "SLURM_*", "PALS_*", "ALPS_*",
    "PBS_*", "FLUX_*", "FI_*", "UCX_*", "OMP_*", "MPIGRAFT_*", "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HOME", "USER", "LOGNAME",
    "TMPDIR", "LANG", "LC_ALL", "TZ", "TERM",
)  # fmt: skip
NETWORK = ("FI_", "UCX_", "IBV_", "RDMAV_")  # rows that are about libfabric, UCX and verbs
LOADER = ("LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT")
# These point to the host's files, and a launcher or a module may have set them for itself.
DROPPED = (
    *LOADER, "OPAL_PREFIX", "OPAL_LIBDIR", "OPAL_PKGLIBDIR",
    "OPAL_DATADIR", "OPAL_PKGDATADIR", "OPAL_SYSCONFDIR", "PMIX_PREFIX", "PMIX_INSTALL_PREFIX",
    "PMIX_PKGLIBDIR", "PRTE_PREFIX", "I_MPI_ROOT", "FI_PROVIDER_PATH", "UCX_MODULE_DIR",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """What the plan of a graft folder is made of."""

    guest: GuestLabel
    mpi: str  # id of the MPI that ranks run on
    abi: MpiAbi | None = None  # None: the MPI that is there stays, and only our programs go in
    contents: GraftContents
    parts: tuple[CheckResult, ...] = ()
    engine: str
    natives: Natives
    devices: tuple[Bind, ...] = ()
    soname: str = ""  # of the guest's own libmpi, where it stays
    rpath: str = ""  # of the stack's programs, which our programs search like them
    interpreter: str = ""  # the loader of the stack's programs

    @property
    def whole(self) -> bool:
        """Whether a whole MPI of the host goes in."""
        return self.abi is not None and self.contents.replace is Replace.MPI


def plan_folder(given: PlanInput) -> GraftPlan:
    """Plan the folder of a graft, which its ranks see at the place of its contents."""
    guest, contents = given.guest, given.contents
    of_mpi = (
        _of_mpi(given, given.natives.bench, BENCH),
        _of_mpi(given, given.natives.probe, PROBE),
    )
    copies = (*contents.copies, *_data(given), *of_mpi, *_other_programs(given.natives))
    environment = _environment(given)
    over = tuple(sorted(contents.binds, key=lambda bind: bind.target))
    graft_own = contents.libmpi.startswith(f"{contents.place}/")
    libmpi_copy = next(
        (b.source.removeprefix("{graft}/") for b in over if b.target == contents.libmpi),
        contents.libmpi.removeprefix(f"{contents.place}/") if graft_own else "",
    )
    content = {
        "guest": [guest.digest, guest.programs],  # in any place
        "replace": contents.replace if given.abi else Replace.NOTHING,  # what is there stays
        "engine": given.engine,
        "place": contents.place,
        "copies": [
            [c.name, c.digest, c.edit, c.rpath, c.soname, c.renamed, c.symbols] for c in copies
        ],
        "binds": over,
        "devices": given.devices,
        "environment": environment,
        "libmpi": [contents.libmpi, libmpi_copy],
    }
    key = digest(plain(content))
    if given.interpreter:
        key = digest([key, given.rpath, given.interpreter])
        copies = tuple(
            replace(c, edit=True, rpath=given.rpath, interpreter=given.interpreter)
            if c in of_mpi
            else c
            for c in copies
        )
    return GraftPlan(
        key=key,
        guest=guest,
        mpi=given.mpi,
        replace=contents.replace,
        engine=given.engine,
        place=contents.place,
        copies=copies,
        binds=over,
        devices=given.devices,
        environment=environment,
        passed=PASSED,
        libmpi=contents.libmpi,
        libmpi_copy=libmpi_copy,
        libmpi_elsewhere=contents.libmpi_elsewhere,
        glibc=contents.glibc,
        parts=given.parts,
        inputs=path_stamps([guest.source, *contents.inputs]),
    )


def _data(given: PlanInput) -> tuple[Copy, ...]:
    files = given.abi.data if given.abi and given.whole else ()
    return tuple(Copy(file.path, file.place, file.digest) for file in files)


def _of_mpi(given: PlanInput, path: Path, name: str) -> Copy:
    """Plan the copy of one of our programs that searches for MPI in the graft, else under the name
    that the guest's own has (Debian's libmpich.so.12)."""
    copy = Copy(str(path), name, file_digest(path), edit=True)
    if given.whole:
        return replace(copy, rpath=f"{given.contents.place}/lib")
    libmpi = given.soname
    needed = [n for n in read_elf(path).needed if binding_of(n)]
    renamed = tuple((name, libmpi) for name in needed if libmpi and name != libmpi)
    return replace(copy, renamed=renamed, edit=bool(renamed))


def _other_programs(natives: Natives) -> tuple[Copy, ...]:
    """Return our programs and libraries that need no MPI."""
    others = [(natives.witness, WITNESS), (natives.gpu_select, GPU_SELECT), (natives.relay, RELAY)]
    others += [(natives.trace, TRACE)] if natives.trace else []
    return tuple(Copy(str(path), name, file_digest(path)) for path, name in others)


def _environment(given: PlanInput) -> tuple[EnvRow, ...]:
    """Drop variables that point to the host's files, or keep the image's values of them; then add
    the graft's own rows."""
    contents, whole = given.contents, given.whole
    of_mpi = given.abi.environment if given.abi else ()
    if not whole:  # the guest's own MPI keeps its own prefix
        of_mpi = tuple(r for r in of_mpi if r.name.startswith(NETWORK) and contents.copies)
    rows = [
        replace(row, value=row.value and row.value.replace("{graft}", contents.place))
        for row in (*of_mpi, *contents.environment)
    ]
    named = {row.name for row in rows}
    # What is about the guest's MPI is void under a whole one.
    own = {n: v for n, v in given.guest.environment if n in LOADER or not whole}
    drops = [
        EnvRow(name, own.get(name), Scope.RANK, "guest" if name in own else "plan")
        for name in DROPPED
        if name not in named
    ]
    return (*drops, *rows)


def path_stamps(paths: Iterable[str]) -> tuple[Stamp, ...]:
    """Stamp files: a stamp tells cheaply that one of them changed, appeared or vanished."""
    absolute = sorted({path for path in paths if path.startswith("/")})
    return tuple(Stamp(path, *file_fingerprint(path)) for path in absolute)


def changed_paths(stamps: Iterable[Stamp]) -> tuple[str, ...]:
    """List the paths whose files are not what they were when they were stamped."""
    return tuple(s.path for s in stamps if path_stamps([s.path]) != (s,))

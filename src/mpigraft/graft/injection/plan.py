"""Make the plan of a graft folder, as plain data, from what the loader's simulation gave.

It decides everything that a launch needs: copies, binds, devices, environment. Engines only
translate it into their options.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
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
    from mpigraft.graft.injection.contents import GraftContents

PLACE_ON_HOST = "/{graft}"  # the graft folder's own path: no engine moves it
BENCH, WITNESS = "bin/mpigraft-bench", "lib/libmpigraft-witness.so"
GPU_SELECT = "bin/mpigraft-gpu-select"
RELAY = "bin/mpigraft-relay"
TRACE = "lib/libmpigraft-trace.so"
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


def plan_folder(
    guest: GuestLabel,
    abi: MpiAbi | None,
    contents: GraftContents,
    parts: Sequence[CheckResult],
    *,
    engine: str,
    natives: Natives,
    devices: Sequence[Bind] = (),
    soname: str = "",
) -> GraftPlan:
    """Plan for `engine`, whose ranks see the graft folder at `injection.place`.

    `abi` None is a guest with its own MPI: only our programs go in. `soname` is that of the
    guest's own libmpi where it stays.
    """
    copies = (*contents.copies, *_data(abi, contents), *_programs(natives, contents, soname))
    environment = _environment(contents, abi, guest)
    over = tuple(sorted(contents.binds, key=lambda bind: bind.target))
    graft_own = contents.libmpi.startswith(f"{contents.place}/")
    libmpi_copy = next(
        (b.source.removeprefix("{graft}/") for b in over if b.target == contents.libmpi),
        contents.libmpi.removeprefix(f"{contents.place}/") if graft_own else "",
    )
    content = {
        "guest": [guest.digest, guest.programs],  # wherever it lies
        "replace": contents.replace,
        "engine": engine,
        "place": contents.place,
        "copies": [
            [c.name, c.digest, c.edit, c.rpath, c.soname, c.renamed, c.symbols] for c in copies
        ],
        "binds": over,
        "devices": devices,
        "environment": environment,
        "libmpi": [contents.libmpi, libmpi_copy],
    }
    return GraftPlan(
        key=digest(plain(content)),
        guest=guest,
        mpi=abi.mpi.id if abi else "",
        replace=contents.replace,
        engine=engine,
        place=contents.place,
        copies=copies,
        binds=over,
        devices=tuple(devices),
        environment=environment,
        passed=PASSED,
        libmpi=contents.libmpi,
        libmpi_copy=libmpi_copy,
        libmpi_elsewhere=contents.libmpi_elsewhere,
        glibc=contents.glibc,
        parts=tuple(parts),
        inputs=path_stamps([guest.source, *contents.inputs]),
    )


def _data(abi: MpiAbi | None, contents: GraftContents) -> tuple[Copy, ...]:
    files = abi.data if abi and contents.replace is Replace.MPI else ()
    return tuple(Copy(file.path, file.place, file.digest) for file in files)


def _programs(natives: Natives, contents: GraftContents, libmpi: str) -> tuple[Copy, ...]:
    """The benchmarks look for MPI in the graft, else under the name that the guest's own has
    (Debian's libmpich.so.12); the witness, the library that profiles and mpigraft-gpu-select need
    no MPI."""
    bench = Copy(str(natives.bench), BENCH, file_digest(natives.bench), edit=True)
    if contents.replace is Replace.MPI:
        bench = replace(bench, rpath=f"{contents.place}/lib")
    else:
        needed = [n for n in read_elf(natives.bench).needed if binding_of(n)]
        renamed = tuple((name, libmpi) for name in needed if libmpi and name != libmpi)
        bench = replace(bench, renamed=renamed, edit=bool(renamed))
    others = [(natives.witness, WITNESS), (natives.gpu_select, GPU_SELECT), (natives.relay, RELAY)]
    others += [(natives.trace, TRACE)] if natives.trace else []
    return bench, *(Copy(str(path), name, file_digest(path)) for path, name in others)


def _environment(
    contents: GraftContents, abi: MpiAbi | None, guest: GuestLabel
) -> tuple[EnvRow, ...]:
    """Drop variables that point to the host's files, or keep the image's values of them; then add
    the graft's own rows."""
    given = abi.environment if abi else ()
    if contents.replace is not Replace.MPI:  # the guest's own MPI keeps its own prefix
        given = tuple(r for r in given if r.name.startswith(NETWORK) and contents.copies)
    rows = [
        replace(row, value=row.value and row.value.replace("{graft}", contents.place))
        for row in (*given, *contents.environment)
    ]
    named = {row.name for row in rows}
    whole = contents.replace is Replace.MPI  # then what is about the guest's MPI is void
    own = {n: v for n, v in guest.environment if n in LOADER or not whole}
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

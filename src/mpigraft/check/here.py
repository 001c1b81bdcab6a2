"""What is outside of the files: launcher, network devices, GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from mpigraft.check.case import Case, base, mapped, part, some, unseen
from mpigraft.knowledge import fit
from mpigraft.model import Finding, GuestKind, Level, NetLibrary, Part

UCX_NETWORK = ("rc", "dc", "ud", "mlx5", "verbs", "gga", "srd")  # transports that are a network's


# ------------------------------------------------------------------ launcher


def pmi(case: Case) -> Part:
    """The launcher that starts ranks, and whether these find each other under it."""
    mpi, label = case.abi.mpi, case.guest.label
    launcher = mpi.launcher_kind
    if label.kind is not GuestKind.PROGRAM and not label.env_program:
        return part("pmi", "", [_no_env(case)])
    if mpi.launcher is None:
        return part("pmi", "the scheduler's launcher starts the ranks", [_no_launcher(case)])
    if case.whole:  # an MPI and its own launcher
        return part("pmi", f"{mpi.id}'s own {launcher} starts its ranks", ())
    if case.own is None:
        return unseen("pmi", "the guest has no MPI of its own")
    known = fit.world(launcher, str(case.own.family), case.own.version, case.own.pmi)
    if known is None:
        return part("pmi", "", [_untried(case, case.own.pmi)])
    if known.alone:
        return part("pmi", "", [_alone(case)])
    return part("pmi", f"{mpi.id}'s {launcher} starts the guest's {case.own_name}", ())


def _no_env(case: Case) -> Finding:
    return Finding(
        Level.ERROR,
        "env-absent",
        f"{case.guest.label.name} has no /usr/bin/env",
        "what a rank needs in its environment is set by it, innermost, where neither a launcher "
        "nor an engine changes it",
        "put it into the image: coreutils, or busybox, has it",
    )


def _alone(case: Case) -> Finding:
    mpi, ranks = case.abi.mpi, f"the guest's {case.own_name}"
    own = case.own.launcher if case.own else ""
    there = f" (its own is {own})" if own else ""
    return Finding(
        Level.ERROR,
        "world-of-one",
        f"under {mpi.id}'s {mpi.launcher_kind} each rank of {ranks} would be 0 of 1",
        "the two speak different PMI: every rank runs the whole job alone, with exit code 0 and "
        "no message",
        f"--replace mpi puts {mpi.id} under the program; or name a host MPI whose launcher starts "
        f"{ranks}{there}; under Slurm: srun --mpi=pmix for Open MPI, --mpi=pmi2 for MPICH",
    )


def _untried(case: Case, spoken: tuple[str, ...]) -> Finding:
    mpi = case.abi.mpi
    speaks = f" It speaks {', '.join(spoken)}." if spoken else ""
    return Finding(
        Level.WARNING,
        "pmi-unknown",
        f"whether {mpi.id}'s {mpi.launcher_kind} starts ranks of {case.own_name} is not known",
        f"ranks that do not find each other are each 0 of 1, with exit code 0.{speaks}",
        "`mpigraft run` counts the ranks, and ends with exit 5 when they are not one world",
    )


def _no_launcher(case: Case) -> Finding:
    offers = _schedulers(case)
    return Finding(
        Level.INFO,
        "launcher-none",
        f"{case.mpi} has no launcher of its own",
        "its ranks are started by the scheduler's" + (f": {offers}" if offers else ""),
    )


def _schedulers(case: Case) -> str:
    launchers = case.machine.launchers if case.machine else ()
    return ", ".join(f"{x.name} ({', '.join(x.pmi_offered)})" for x in launchers if x.pmi_offered)


# ------------------------------------------------------------------ network


def devices(case: Case) -> Part:
    """Networks that this machine has, against what the host MPI's libraries can reach."""
    if case.machine is None:
        return unseen("devices", "nothing is known of the machine's")
    there = [d for d in case.machine.fabrics if d.state.lower() != "down"]
    names = some((d.name for d in there if d.kind in ("cxi", "infiniband")), 6)
    fine = f"{case.mpi} reaches {names}" if names else "no network devices besides Ethernet"
    return part("devices", fine, _unreached(case))


def _unreached(case: Case) -> Iterator[Finding]:
    for fabric in fit.facts().fabrics:
        found = [
            d for d in (case.machine.fabrics if case.machine else ())
            if d.kind == fabric.kind and d.state.lower() != "down"
        ]  # fmt: skip
        if not found or _reaches(case, fabric):
            continue
        yield Finding(
            Level.WARNING,
            "network-unreached",
            f"{case.mpi} has no provider for {some(d.name for d in found)} ({fabric.kind})",
            "messages between nodes would take TCP, ten times slower and more",
            "take a host MPI whose libfabric offers " + " or ".join(fabric.providers)
            + (", or one with UCX" if fabric.ucx else "")
            + "; or put such a libfabric under this one: FI_PROVIDER_PATH",
            tuple(_offers(library) for library in (case.abi.mpi.libfabric, case.abi.mpi.ucx)
                  if library is not None),
        )  # fmt: skip


def _reaches(case: Case, fabric: fit.Fabric) -> bool:
    libfabric, ucx = case.abi.mpi.libfabric, case.abi.mpi.ucx
    offered = libfabric.offers if libfabric else ()
    by_ucx = fabric.ucx and ucx is not None and any(_network(t) for t in ucx.offers)
    return by_ucx or any(o.split(";")[0] in fabric.providers for o in offered)


def _network(transport: str) -> bool:
    return transport.partition("_")[0] in UCX_NETWORK


def _offers(library: NetLibrary) -> str:
    return f"{library.name} {library.version or ''} offers {' '.join(library.offers) or 'nothing'}"


# ------------------------------------------------------------------ GPUs


def gpu(case: Case) -> Part:
    """CUDA and ROCm: what programs need of them, and what the host MPI and machine have."""
    findings: list[Finding] = []
    vendors = [g for g in fit.facts().gpus if _needs(case, g)]
    for libraries in vendors:
        findings.extend(_gpu(case, libraries))
    fine = f"for {some(g.vendor for g in vendors)} GPUs" if vendors else "no GPU libraries are used"
    return part("gpu", fine, findings)


def _needs(case: Case, libraries: fit.GpuLibraries) -> list[str]:
    """Names of a vendor's libraries that the guest's programs need."""
    names = dict.fromkeys(
        r.name for one in case.injection.programs for r in mapped(one.before)
        if libraries.driver.fullmatch(r.name) or libraries.runtime.fullmatch(r.name)
    )  # fmt: skip
    return list(names)


def _gpu(case: Case, libraries: fit.GpuLibraries) -> Iterator[Finding]:
    needed = _needs(case, libraries)
    machine = case.machine
    if machine is not None and not any(g.vendor == libraries.vendor for g in machine.gpus):
        yield Finding(
            Level.WARNING,
            "gpu-none",
            f"the program needs {some(needed)}, and no GPU of {libraries.vendor} was seen here",
            "on a node without one it may end, or run on the CPU",
            "on a login node this says nothing of compute nodes: check there, or with a "
            "description made there (mpigraft discover --abi --json)",
        )
    lost = dict.fromkeys(
        r.name for one in case.injection.programs for r in mapped(one.after)
        if r.path is None and libraries.driver.fullmatch(r.name)
    )  # fmt: skip
    if lost:
        yield Finding(
            Level.WARNING,
            "gpu-driver",
            f"{some(lost)} of the driver is not in the guest, as it should be",
            "it has to be the one of the host's kernel module",
            f"let the engine put it in: {libraries.option}",
        )
    if case.whole and not _aware(case, libraries.vendor):
        yield Finding(
            Level.WARNING,
            "gpu-unaware",
            f"nothing in {case.mpi} knows memory of {libraries.vendor} GPUs",
            "a program that passes device pointers to MPI ends by a signal",
            "take a host MPI built for it (on a Cray: its GTL library), or pass host buffers",
        )


def _aware(case: Case, vendor: str) -> bool:
    """Whether a library of the MPI, or a plugin, is for this vendor's memory."""
    words = {"nvidia": ("cuda",), "amd": ("rocm", "hip", "hsa")}[vendor]
    names = [base(name).lower() for o in case.abi.objects for name in (o.path, *o.needed)]
    components = [name for _, found in case.abi.mpi.components for name in found]
    return any(word in name for word in words for name in (*names, *components))

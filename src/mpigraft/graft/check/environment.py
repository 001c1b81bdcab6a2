"""Check what is outside the files: launcher, network devices, GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from mpigraft.core.model import CheckResult, Finding, GuestKind, NetLibrary
from mpigraft.graft.check.case import Case, base, mapped, not_checked, part, some
from mpigraft.knowledge import GpuLibraries, Reach, fabric_reach, fit_facts, known_world

UCX_NETWORK = ("rc", "dc", "ud", "mlx5", "verbs", "gga", "srd")  # transports that are a network's


# ------------------------------------------------------------------ launcher


def pmi(case: Case) -> CheckResult:
    """Check the launcher that starts the ranks, and whether they find each other under it."""
    mpi, label = case.abi.mpi, case.guest.label
    launcher = mpi.launcher_kind
    if label.kind is not GuestKind.PROGRAM and not label.env_program:
        return part("pmi", "", [_no_env(case)])
    if mpi.launcher is None:
        return part("pmi", "the scheduler's launcher starts the ranks", [_no_launcher(case)])
    if case.whole:  # an MPI and its own launcher
        return part("pmi", f"{mpi.id}'s own {launcher} starts its ranks", ())
    if case.own is None:
        return not_checked("pmi", "the guest has no MPI of its own")
    known = known_world(launcher, str(case.own.family), case.own.version, case.own.pmi)
    if known is None:
        return part("pmi", "", [_untried(case, case.own.pmi)])
    if known.alone:
        return part("pmi", "", [_alone(case)])
    return part("pmi", f"{mpi.id}'s {launcher} starts the guest's {case.own_name}", ())


def _no_env(case: Case) -> Finding:
    return Finding.of("env-absent", name=case.guest.label.name)


def _alone(case: Case) -> Finding:
    mpi, ranks = case.abi.mpi, f"the guest's {case.own_name}"
    own = case.own.launcher if case.own else ""
    note = f" (its own is {own})" if own else ""
    return Finding.of(
        "world-of-one", id=mpi.id, launcher_kind=mpi.launcher_kind, ranks=ranks, note=note
    )


def _untried(case: Case, spoken: tuple[str, ...]) -> Finding:
    mpi = case.abi.mpi
    speaks = f" It supports {', '.join(spoken)}." if spoken else ""
    return Finding.of(
        "pmi-unknown",
        id=mpi.id,
        launcher_kind=mpi.launcher_kind,
        own_name=case.own_name,
        speaks=speaks,
    )


def _no_launcher(case: Case) -> Finding:
    offers = _schedulers(case)
    return Finding.of("launcher-none", mpi=case.mpi, offers=f": {offers}" if offers else "")


def _schedulers(case: Case) -> str:
    launchers = case.machine.launchers if case.machine else ()
    return ", ".join(f"{x.name} ({', '.join(x.pmi_offered)})" for x in launchers if x.pmi_offered)


# ------------------------------------------------------------------ network


def devices(case: Case) -> CheckResult:
    """Check this machine's networks against what the host MPI's libraries can reach."""
    if case.machine is None:
        return not_checked("devices", "the machine's devices are unknown")
    present = [d for d in case.machine.fabrics if d.state.lower() != "down"]
    names = some((d.name for d in present if d.kind in ("cxi", "infiniband")), 6)
    fine = f"{case.mpi} reaches {names}" if names else "no network devices besides Ethernet"
    return part("devices", fine, _unreached(case))


def _unreached(case: Case) -> Iterator[Finding]:
    for fabric in fabric_reach():
        devices = [
            d for d in (case.machine.fabrics if case.machine else ())
            if d.kind == fabric.kind and d.state.lower() != "down"
        ]  # fmt: skip
        if not devices or _reaches(case, fabric):
            continue
        yield Finding.of(
            "network-unreached",
            mpi=case.mpi,
            devices=some(d.name for d in devices),
            kind=fabric.kind,
            providers=" or ".join(fabric.providers),
            or_ucx=", or one with UCX" if fabric.ucx else "",
            evidence=tuple(
                _offers(library)
                for library in (case.abi.mpi.libfabric, case.abi.mpi.ucx)
                if library is not None
            ),
        )


def _reaches(case: Case, fabric: Reach) -> bool:
    libfabric, ucx = case.abi.mpi.libfabric, case.abi.mpi.ucx
    offered = libfabric.offers if libfabric else ()
    by_ucx = fabric.ucx and ucx is not None and any(_network(t) for t in ucx.offers)
    return by_ucx or any(o.split(";")[0] in fabric.providers for o in offered)


def _network(transport: str) -> bool:
    return transport.partition("_")[0] in UCX_NETWORK


def _offers(library: NetLibrary) -> str:
    return f"{library.name} {library.version or ''} offers {' '.join(library.offers) or 'nothing'}"


# ------------------------------------------------------------------ GPUs


def gpu(case: Case) -> CheckResult:
    """Check CUDA and ROCm: what programs need of them, and what host MPI and machine have."""
    findings: list[Finding] = []
    vendors = [g for g in fit_facts().gpus if _needs(case, g)]
    for libraries in vendors:
        findings.extend(_gpu(case, libraries))
    fine = f"for {some(g.vendor for g in vendors)} GPUs" if vendors else "no GPU libraries are used"
    return part("gpu", fine, findings)


def _needs(case: Case, libraries: GpuLibraries) -> list[str]:
    """List a vendor's libraries that the guest's programs need."""
    names = dict.fromkeys(
        r.name for simulated in case.injection.programs for r in mapped(simulated.before)
        if libraries.driver.fullmatch(r.name) or libraries.runtime.fullmatch(r.name)
    )  # fmt: skip
    return list(names)


def _gpu(case: Case, libraries: GpuLibraries) -> Iterator[Finding]:
    needed = _needs(case, libraries)
    machine = case.machine
    if machine is not None and not any(g.vendor == libraries.vendor for g in machine.gpus):
        yield Finding.of("gpu-none", libraries=some(needed), vendor=libraries.vendor)
    missing = dict.fromkeys(
        r.name for simulated in case.injection.programs for r in mapped(simulated.after)
        if r.path is None and libraries.driver.fullmatch(r.name)
    )  # fmt: skip
    if missing:
        yield Finding.of("gpu-driver", libraries=some(missing), option=libraries.option)
    if case.whole and not _aware(case, libraries.vendor):
        yield Finding.of("gpu-unaware", mpi=case.mpi, vendor=libraries.vendor)


def _aware(case: Case, vendor: str) -> bool:
    """Whether a library or plugin of the MPI supports this vendor's memory."""
    words = {"nvidia": ("cuda",), "amd": ("rocm", "hip", "hsa")}[vendor]
    names = [base(name).lower() for o in case.abi.objects for name in (o.path, *o.needed)]
    components = [name for _, group in case.abi.mpi.components for name in group]
    return any(word in name for word in words for name in (*names, *components))


def folders(case: Case) -> CheckResult:
    """Report what this machine covers of the image."""
    covers = case.guest.covers
    findings: list[Finding] = []
    if paths := covers.programs:
        count = len(paths)
        findings.append(
            Finding.of("guest-programs-hidden", count=count, paths=some(paths), evidence=paths)
        )
    if covers.folder:
        findings.append(
            Finding.of("guest-folder-covered", folder=covers.folder, count=covers.names)
        )
    return part("folders", "ranks see the image's own folders", findings)

"""Check what is outside the files: launcher, network devices, GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mpigraft.core.model import CheckResult, Finding, Level, NetLibrary
from mpigraft.graft.check.check_input import CheckInput, base, mapped, not_checked, part, some
from mpigraft.graft.guest.os_release import debian_packages, os_release
from mpigraft.knowledge import GpuLibraries, fabrics_by_kind, fit_facts, known_world

UCX_NETWORK = ("rc", "dc", "ud", "mlx5", "verbs", "gga", "srd")  # transports that are a network's


# ------------------------------------------------------------------ launcher


def pmi(pair: CheckInput) -> CheckResult:
    """Check the launcher that starts the ranks, and whether they find each other under it."""
    mpi, label = pair.abi.mpi, pair.guest.label
    launcher = mpi.launcher_kind
    if not label.kind.on_host and not label.env_program:
        return part("pmi", "", [Finding.of("env-absent", name=pair.guest.label.name)])
    broken = list(_broken_packages(pair))
    note = f"; in its place: {broken[0].message}" if broken and pair.whole else ""
    if mpi.launcher is None:
        fine = f"the scheduler's launcher starts the ranks{note}"
        return part("pmi", fine, [_no_launcher(pair), *broken])
    if pair.whole:  # an MPI and its own launcher
        return part("pmi", f"{mpi.id}'s own {launcher} starts its ranks{note}", broken)
    if pair.own is None:
        return not_checked("pmi", "the guest has no MPI of its own")
    known = known_world(launcher, str(pair.own.family), pair.own.version, pair.own.pmi)
    if known is None:
        return part("pmi", "", [_untried(pair, pair.own.pmi), *broken])
    if known.alone:
        return part("pmi", "", [_alone(pair), *broken])
    return part("pmi", f"{mpi.id}'s {launcher} starts the guest's {pair.own_name}", broken)


def _broken_packages(pair: CheckInput) -> Iterator[Finding]:
    """Name packages of the image's distribution whose MPI does not work; where the host's replaces
    it, for information."""
    root = pair.guest.root
    if pair.guest.label.kind.on_host or not (rows := fit_facts().packages):
        return
    release = os_release(root)
    of_release = [row for row in rows if row.os == release]
    packages = debian_packages(root) if of_release else {}
    level = Level.INFO if pair.whole else Level.WARNING
    for row in of_release:
        if package := row.installed(release, packages):
            yield Finding.of(
                "package-broken",
                level=level,
                name=pair.guest.label.name,
                package=package,
                os=release,
                problem=row.message,
                advice=row.fix,
                evidence=row.sources,
            )


def _alone(pair: CheckInput) -> Finding:
    mpi, ranks = pair.abi.mpi, f"the guest's {pair.own_name}"
    own = pair.own.launcher if pair.own else ""
    note = f" (its own is {own})" if own else ""
    return Finding.of(
        "world-of-one", id=mpi.id, launcher_kind=mpi.launcher_kind, ranks=ranks, note=note
    )


def _untried(pair: CheckInput, protocols: tuple[str, ...]) -> Finding:
    mpi = pair.abi.mpi
    supports = f" It supports {', '.join(protocols)}." if protocols else ""
    return Finding.of(
        "pmi-unknown",
        id=mpi.id,
        launcher_kind=mpi.launcher_kind,
        own_name=pair.own_name,
        supports=supports,
    )


def _no_launcher(pair: CheckInput) -> Finding:
    offers = _schedulers(pair)
    return Finding.of("launcher-none", mpi=pair.mpi, offers=f": {offers}" if offers else "")


def _schedulers(pair: CheckInput) -> str:
    launchers = pair.machine.launchers if pair.machine else ()
    return ", ".join(f"{x.name} ({', '.join(x.pmi_offered)})" for x in launchers if x.pmi_offered)


# ------------------------------------------------------------------ network


def devices(pair: CheckInput) -> CheckResult:
    """Check this machine's networks against what the host MPI's libraries can reach."""
    if pair.machine is None:
        return not_checked("devices", "the machine's devices are unknown")
    present = [d for d in pair.machine.fabrics if d.state.lower() != "down"]
    names = some((d.name for d in present if d.kind in ("cxi", "infiniband")), 6)
    fine = f"{pair.mpi} reaches {names}" if names else "no network devices besides Ethernet"
    return part("devices", fine, _unreached(pair))


def _unreached(pair: CheckInput) -> Iterator[Finding]:
    for kind, fabrics in fabrics_by_kind().items():
        devices = [
            d for d in (pair.machine.fabrics if pair.machine else ())
            if d.kind == kind and d.state.lower() != "down"
        ]  # fmt: skip
        providers, ucx = [p for row in fabrics for p in row.providers], any(f.ucx for f in fabrics)
        if not devices or _reaches(pair, providers, by_ucx=ucx):
            continue
        yield Finding.of(
            "network-unreached",
            mpi=pair.mpi,
            devices=some(d.name for d in devices),
            kind=kind,
            providers=" or ".join(providers),
            or_ucx=", or one with UCX" if ucx else "",
            evidence=tuple(
                _offers(library)
                for library in (pair.abi.mpi.libfabric, pair.abi.mpi.ucx)
                if library is not None
            ),
        )


def _reaches(pair: CheckInput, providers: Sequence[str], *, by_ucx: bool) -> bool:
    libfabric, ucx = pair.abi.mpi.libfabric, pair.abi.mpi.ucx
    offered = libfabric.offers if libfabric else ()
    by_ucx = by_ucx and ucx is not None and any(_network(t) for t in ucx.offers)
    return by_ucx or any(o.split(";")[0] in providers for o in offered)


def _network(transport: str) -> bool:
    return transport.partition("_")[0] in UCX_NETWORK


def _offers(library: NetLibrary) -> str:
    return f"{library.name} {library.version or ''} offers {' '.join(library.offers) or 'nothing'}"


# ------------------------------------------------------------------ GPUs


def gpu(pair: CheckInput) -> CheckResult:
    """Check CUDA and ROCm: what programs need of them, and what host MPI and machine have."""
    findings: list[Finding] = []
    vendors = [g for g in fit_facts().gpus if _needs(pair, g)]
    for libraries in vendors:
        findings.extend(_gpu(pair, libraries))
    fine = f"for {some(g.vendor for g in vendors)} GPUs" if vendors else "no GPU libraries are used"
    return part("gpu", fine, findings)


def _needs(pair: CheckInput, libraries: GpuLibraries) -> list[str]:
    """List a vendor's libraries that the guest's programs need."""
    names = dict.fromkeys(
        r.name for simulated in pair.contents.programs for r in mapped(simulated.before)
        if libraries.driver.fullmatch(r.name) or libraries.runtime.fullmatch(r.name)
    )  # fmt: skip
    return list(names)


def _gpu(pair: CheckInput, libraries: GpuLibraries) -> Iterator[Finding]:
    needed = _needs(pair, libraries)
    machine = pair.machine
    if machine is not None and not any(g.vendor == libraries.vendor for g in machine.gpus):
        yield Finding.of("gpu-none", libraries=some(needed), vendor=libraries.vendor)
    missing = dict.fromkeys(
        r.name for simulated in pair.contents.programs for r in mapped(simulated.after)
        if r.path is None and libraries.driver.fullmatch(r.name)
    )  # fmt: skip
    if missing:
        yield Finding.of("gpu-driver", libraries=some(missing), option=libraries.option)
    if pair.whole and not _aware(pair, libraries.vendor):
        yield Finding.of("gpu-unaware", mpi=pair.mpi, vendor=libraries.vendor)


def _aware(pair: CheckInput, vendor: str) -> bool:
    """Return whether a library or plugin of the MPI supports this vendor's memory."""
    words = {"nvidia": ("cuda",), "amd": ("rocm", "hip", "hsa")}[vendor]
    names = [base(name).lower() for o in pair.abi.objects for name in (o.path, *o.needed)]
    components = [name for _, group in pair.abi.mpi.components for name in group]
    return any(word in name for word in words for name in (*names, *components))


def folders(pair: CheckInput) -> CheckResult:
    """Report what this machine covers of the image."""
    covers = pair.guest.covers
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

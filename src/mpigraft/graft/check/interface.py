"""Check whether both sides have one interface: architecture, ABI, library names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mpigraft.core.model import Abi, CheckResult, Finding, Replace, Role
from mpigraft.graft.check.case import Case, base, mapped, part, some
from mpigraft.knowledge import binding_of, fit_facts, version_numbers

if TYPE_CHECKING:
    from mpigraft.binary import Resolved
    from mpigraft.graft.loading.values import SimulatedProgram

ABI_NAMES = {  # of an ABI, for a person
    Abi.OMPI.value: "Open MPI 3 to 5",
    Abi.MPICH.value: "MPICH 3.1 and newer (also Intel MPI, Cray MPICH, MVAPICH)",
    Abi.MPI_ABI.value: "the standard ABI of MPI-5",
    "ompi-old": "Open MPI 2 and older",
    "mpich-old": "MPICH 3.0 and older",
}


# ------------------------------------------------------------------ architecture


def architecture(case: Case) -> CheckResult:
    machine = case.abi.objects[0].machine
    fine = f"{machine} on both sides"
    return part("architecture", fine, _architecture(case, machine))


def _architecture(case: Case, machine: str) -> Iterator[Finding]:
    others: dict[str, list[str]] = {}
    for simulated in case.injection.programs:
        facts = case.elf(simulated.program)
        architecture = facts.machine if facts else case.guest.label.architecture
        if architecture != machine:
            others.setdefault(architecture, []).append(simulated.program)
    for architecture, programs in others.items():
        yield Finding.of(
            "architecture",
            programs=some(map(base, programs)),
            architecture=architecture,
            mpi=case.mpi,
            machine=machine,
            oci=_oci(machine),
            evidence=tuple(programs),
        )


def _oci(machine: str) -> str:
    """Give the name that images have for an architecture."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


# ------------------------------------------------------------------ ABI


def abi(case: Case) -> CheckResult:
    """Check the ABI: what programs were built for, and what the host MPI offers."""
    if case.injection.replace is Replace.MPI:
        abis = sorted(
            {
                b.abi
                for simulated in case.injection.programs
                for b in case.bindings(simulated).values()
            }
        )
        fine = f"{', '.join(abis)}: {some(ABI_NAMES.get(name, name) for name in abis)}"
        return part("abi", fine, _abi(case))
    return part("abi", f"the guest keeps {case.own_name}", _kept(case))


def _abi(case: Case) -> Iterator[Finding]:
    if case.guest.unknown:
        yield Finding.of("words-not-known", notes="; ".join(case.guest.unknown))
        yield from _named(case, case.guest.label.name, case.guest.named)
    elif not case.injection.programs:
        yield _no_program(case)
    offered = _offered(case)
    differing: dict[str, list[str]] = {}
    unused: list[str] = []
    twins = {
        _package(simulated.program)
        for simulated in case.injection.programs
        if comparable(case, simulated)
    }
    for simulated in case.injection.programs:
        needed = {b.abi: name for name, b in reversed(case.bindings(simulated).items())}
        if not needed:
            yield from _no_mpi(case, simulated)
        if len(needed) > 1:
            yield _two_abis(simulated, needed)
        if simulated.program in case.guest.libraries and _package(simulated.program) in twins:
            unused += [
                f"{simulated.program} needs {needed[name]}" for name in needed.keys() - offered
            ]
            continue
        for name in needed.keys() - offered:
            differing.setdefault(name, []).append(f"{simulated.program} needs {needed[name]}")
    for name, lines in differing.items():
        yield _differs(case, name, sorted(offered), tuple(lines))
    if unused:
        yield _other_variants(case, tuple(unused))
    yield from _abi_promise(case)


def _package(path: str) -> tuple[str, str]:
    """Give folder and module: mpi4py has MPI.openmpi.cpython-311-....so and MPI.mpich...., and
    takes the one whose libmpi it can open (mpi4py 4.1, _mpiabi.py)."""
    folder, _, name = path.rpartition("/")
    return folder, name.partition(".")[0]


def _other_variants(case: Case, lines: tuple[str, ...]) -> Finding:
    return Finding.of(
        "abi-spare",
        modules=some(base(line.partition(" needs ")[0]) for line in lines),
        mpi=case.mpi,
        evidence=lines,
    )


def _differs(case: Case, name: str, offered: list[str], lines: tuple[str, ...]) -> Finding:
    return Finding.of(
        "abi-differs",
        built_for=ABI_NAMES.get(name, name),
        mpi=case.mpi,
        offered=", ".join(offered),
        name=name,
        alternatives=" or ".join(offered),
        evidence=lines,
    )


def _two_abis(simulated: SimulatedProgram, needed: dict[str, str]) -> Finding:
    return Finding.of(
        "two-abis", program=simulated.program, abis=", ".join(sorted(needed.values()))
    )


def _no_program(case: Case) -> Finding:
    return Finding.of("no-program", name=case.guest.label.name)


def _no_mpi(case: Case, simulated: SimulatedProgram) -> Iterator[Finding]:
    facts = case.elf(simulated.program)
    if case.guest.libraries and facts is not None and facts.dynamic:
        if not case.guest.interprets(simulated.program):
            yield Finding.of("mpi-not-linked", program=simulated.program)
        return  # what it opens later is checked separately
    linked = facts is not None and any(s.name == "MPI_Init" for s in facts.exported)
    if facts is not None and (linked or not facts.dynamic):
        yield Finding.of("mpi-static", program=simulated.program)
    elif case.guest.leads_on(simulated.program):
        yield Finding.of("mpi-not-linked", program=simulated.program)
        named = case.guest.named_in(simulated.program)
        yield from _named(case, simulated.program, named)
    else:
        yield Finding.of("no-mpi", program=simulated.program)


def _named(case: Case, program: str, names: Sequence[str]) -> Iterator[Finding]:
    """Report that all MPI libraries that a program may open are of other ABIs than the host's."""
    abis = {b.abi for name in names if (b := binding_of(name))}
    if abis and not abis & (offered := _offered(case)):
        yield Finding.of(
            "mpi-named",
            program=base(program),
            names=some(names),
            mpi=case.mpi,
            offered=", ".join(sorted(offered)),
            abis=" or ".join(sorted(abis)),
        )


def _abi_promise(case: Case) -> Iterator[Finding]:
    """Check Open MPI's promise: its ABI holds from one major release to the next, upwards.

    Source: Open MPI 5.0, building-apps/abi-compatibility.
    """
    if case.own is None or case.own.family != case.abi.mpi.family or case.own.family != "openmpi":
        return
    built, host = version_numbers(case.own.version)[:1], version_numbers(case.abi.mpi.version)[:1]
    if built and host and not 0 <= host[0] - built[0] <= 1:
        yield Finding.of("abi-unpromised", own_name=case.own_name, mpi=case.mpi)


def _kept(case: Case) -> Iterator[Finding]:
    if case.own is None:
        yield Finding.of("no-own-mpi", name=case.guest.label.name)
    network = {o.soname for o in case.abi.objects if o.role is Role.NET}
    over = {base(bind.source) for bind in case.injection.binds}
    if case.injection.replace is Replace.LIBFABRIC and case.own and not network & over:
        yield Finding.of("nothing-replaced", evidence=tuple(sorted(network)))


def comparable(case: Case, simulated: SimulatedProgram) -> bool:
    """Whether a program has the host's architecture and an ABI that the host MPI offers."""
    facts = case.elf(simulated.program)
    machine = facts.machine if facts else case.guest.label.architecture
    if machine != case.abi.objects[0].machine:
        return False
    needed = {binding.abi for binding in case.bindings(simulated).values()}
    return not case.whole or (len(needed) == 1 and needed <= _offered(case))


def _offered(case: Case) -> set[str]:
    return {b.abi for o in case.abi.objects if (b := binding_of(o.soname))}


# ------------------------------------------------------------------ library names


def sonames(case: Case) -> CheckResult:
    return part("sonames", "every library is found", _sonames(case))


def _sonames(case: Case) -> Iterator[Finding]:
    for soname, by in case.injection.absent:
        binding = binding_of(soname)
        if binding is None or binding.language not in (
            "fortran",
            "cxx",
        ):  # these are checked by parts of their own
            yield _absent(case, soname, by)
    yield from _without_loader(case)
    yield from _missing(case)
    yield from _aliases(case)


def _without_loader(case: Case) -> Iterator[Finding]:
    """Report programs that the kernel does not start, since their loader is not there."""
    absent: dict[str, list[str]] = {}
    for simulated in case.injection.programs:
        if loader := case.guest.absent_loader(simulated.main):
            absent.setdefault(loader, []).append(simulated.program)
    for loader, programs in absent.items():
        yield Finding.of(
            "loader-missing",
            programs=some(map(base, programs)),
            loader=loader,
            evidence=tuple(programs),
        )


def _absent(case: Case, soname: str, by: str) -> Finding:
    return Finding.of("soname-absent", object=base(by), soname=soname, mpi=case.mpi, evidence=(by,))


def _missing(case: Case) -> Iterator[Finding]:
    """Report libraries without which a program does not start; the part `gpu` reports those of a
    GPU's driver. Libraries that were missing before count too: the program does not start."""
    missing: dict[str, tuple[Resolved, list[str]]] = {}
    for simulated in case.injection.programs:
        for r in mapped(simulated.after):
            if r.path is None and not _found_later(r.name):
                missing.setdefault(r.name, (r, []))[1].append(simulated.program)
    for name, (r, programs) in missing.items():
        if binding_of(name) is not None and name in dict(case.injection.absent):
            continue
        side = f"{case.mpi}'s" if case.ours(r.needed_by) else "the guest's"
        yield Finding.of(
            "library-refused" if r.problem else "library-missing",
            name=name,
            side=side,
            object=base(r.needed_by),
            advice=_fix_for_missing(case, r),
            evidence=(
                f"needed by {r.needed_by}",
                *([r.problem] if r.problem else ()),
                *(f"tried {line}" for line in r.tried),
                *(f"for {p}" for p in programs),
            ),
        )


def _fix_for_missing(case: Case, r: Resolved) -> str:
    if case.ours(r.needed_by):
        return (
            f"`ldd {case.abi.mpi.libmpi}` shows whether the host has it; install it on the "
            "host, or in the image"
        )
    return f"install {r.name} in the image, or add its folder to the image's LD_LIBRARY_PATH"


# The start script of R adds the folder of these to the loader's search path.
OF_R = frozenset({"libR.so", "libRblas.so", "libRlapack.so"})


def _found_later(name: str) -> bool:
    """Whether a library is found in a way that the loader's search in the image does not show."""
    return name in OF_R or any(gpu.driver.fullmatch(name) for gpu in fit_facts().gpus)


def _aliases(case: Case) -> Iterator[Finding]:
    """Report other names of one ABI: Debian calls libmpi.so.12 libmpich.so.12."""
    if not case.whole:
        return
    offered = {o.soname: binding_of(o.soname) for o in case.abi.objects}
    needed = {
        n: b for simulated in case.injection.programs for n, b in case.bindings(simulated).items()
    }
    for name, binding in needed.items():
        same = [n for n, b in offered.items() if b == binding]
        if name not in offered and same:
            yield Finding.of("soname-alias", name=name, mpi=case.mpi, same=same[0])

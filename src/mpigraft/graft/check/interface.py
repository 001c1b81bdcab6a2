"""Check whether both sides have one interface: architecture, ABI, library names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from mpigraft.core.model import Abi, CheckResult, Finding, Replace, Role
from mpigraft.graft.check.check_input import CheckInput, base, mapped, part, some
from mpigraft.knowledge import binding_of, fit_facts, version_numbers

if TYPE_CHECKING:
    from mpigraft.binary import Resolved
    from mpigraft.graft.injection.simulation import SimulatedProgram

ABI_NAMES = {  # of an ABI, in messages
    Abi.OMPI.value: "Open MPI 3 to 5",
    Abi.MPICH.value: "MPICH 3.1 and newer (also Intel MPI, Cray MPICH, MVAPICH)",
    Abi.MPI_ABI.value: "the standard ABI of MPI-5",
    "ompi-old": "Open MPI 2 and older",
    "mpich-old": "MPICH 3.0 and older",
}


# ------------------------------------------------------------------ architecture


def architecture(pair: CheckInput) -> CheckResult:
    machine = pair.abi.objects[0].machine
    fine = f"{machine} on both sides"
    return part("architecture", fine, _architecture(pair, machine))


def _architecture(pair: CheckInput, machine: str) -> Iterator[Finding]:
    others: dict[str, list[str]] = {}
    for simulated in pair.contents.programs:
        facts = pair.elf(simulated.program)
        architecture = facts.machine if facts else pair.guest.label.architecture
        if architecture != machine:
            others.setdefault(architecture, []).append(simulated.program)
    for architecture, programs in others.items():
        yield Finding.of(
            "architecture",
            programs=some(map(base, programs)),
            architecture=architecture,
            mpi=pair.mpi,
            machine=machine,
            oci=_oci(machine),
            evidence=tuple(programs),
        )


def _oci(machine: str) -> str:
    """Give the name that images have for an architecture."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


# ------------------------------------------------------------------ ABI


def abi(pair: CheckInput) -> CheckResult:
    """Check the ABI: what programs were built for, and what the host MPI offers."""
    if pair.contents.replace is Replace.MPI:
        abis = sorted(
            {
                b.abi
                for simulated in pair.contents.programs
                for b in pair.bindings(simulated).values()
            }
        )
        fine = f"{', '.join(abis)}: {some(ABI_NAMES.get(name, name) for name in abis)}"
        return part("abi", fine, _abi(pair))
    return part("abi", f"the guest keeps {pair.own_name}", _kept(pair))


def _abi(pair: CheckInput) -> Iterator[Finding]:
    if pair.guest.unknown:
        yield Finding.of("words-not-known", notes="; ".join(pair.guest.unknown))
        yield from _named(pair, pair.guest.label.name, pair.guest.named)
    elif not pair.contents.programs:
        yield Finding.of("no-program", name=pair.guest.label.name)
    offered = _offered(pair)
    differing: dict[str, list[str]] = {}
    unused: list[str] = []
    twins = {
        _package(simulated.program)
        for simulated in pair.contents.programs
        if comparable(pair, simulated)
    }
    for simulated in pair.contents.programs:
        needed = {b.abi: name for name, b in reversed(pair.bindings(simulated).items())}
        if not needed:
            yield from _no_mpi(pair, simulated)
        if len(needed) > 1:
            yield _two_abis(simulated, needed)
        if simulated.program in pair.guest.libraries and _package(simulated.program) in twins:
            unused += [
                f"{simulated.program} needs {needed[name]}" for name in needed.keys() - offered
            ]
            continue
        for name in needed.keys() - offered:
            differing.setdefault(name, []).append(f"{simulated.program} needs {needed[name]}")
    for name, lines in differing.items():
        yield _differs(pair, name, sorted(offered), tuple(lines))
    if unused:
        yield _other_variants(pair, tuple(unused))
    yield from _abi_promise(pair)


def _package(path: str) -> tuple[str, str]:
    """Give folder and module: mpi4py has MPI.openmpi.cpython-311-....so and MPI.mpich...., and
    takes the one whose libmpi it can open (mpi4py 4.1, _mpiabi.py)."""
    folder, _, name = path.rpartition("/")
    return folder, name.partition(".")[0]


def _other_variants(pair: CheckInput, lines: tuple[str, ...]) -> Finding:
    return Finding.of(
        "abi-spare",
        modules=some(base(line.partition(" needs ")[0]) for line in lines),
        mpi=pair.mpi,
        evidence=lines,
    )


def _differs(pair: CheckInput, name: str, offered: list[str], lines: tuple[str, ...]) -> Finding:
    return Finding.of(
        "abi-differs",
        built_for=ABI_NAMES.get(name, name),
        mpi=pair.mpi,
        offered=", ".join(offered),
        name=name,
        alternatives=" or ".join(offered),
        evidence=lines,
    )


def _two_abis(simulated: SimulatedProgram, needed: dict[str, str]) -> Finding:
    return Finding.of(
        "two-abis", program=simulated.program, abis=", ".join(sorted(needed.values()))
    )


def _no_mpi(pair: CheckInput, simulated: SimulatedProgram) -> Iterator[Finding]:
    facts = pair.elf(simulated.program)
    if pair.guest.libraries and facts is not None and facts.dynamic:
        if not pair.guest.interprets(simulated.program):
            yield Finding.of("mpi-not-linked", program=simulated.program)
        return  # what it opens later is checked separately
    linked = facts is not None and any(s.name == "MPI_Init" for s in facts.exported)
    if facts is not None and (linked or not facts.dynamic):
        yield Finding.of("mpi-static", program=simulated.program)
    elif pair.guest.leads_on(simulated.program):
        yield Finding.of("mpi-not-linked", program=simulated.program)
        named = pair.guest.named_in(simulated.program)
        yield from _named(pair, simulated.program, named)
    else:
        yield Finding.of("no-mpi", program=simulated.program)


def _named(pair: CheckInput, program: str, names: Sequence[str]) -> Iterator[Finding]:
    """Report that all MPI libraries that a program may open are of other ABIs than the host's."""
    abis = {b.abi for name in names if (b := binding_of(name))}
    if abis and not abis & (offered := _offered(pair)):
        yield Finding.of(
            "mpi-named",
            program=base(program),
            names=some(names),
            mpi=pair.mpi,
            offered=", ".join(sorted(offered)),
            abis=" or ".join(sorted(abis)),
        )


def _abi_promise(pair: CheckInput) -> Iterator[Finding]:
    """Check Open MPI's promise: its ABI holds from one major release to the next, upwards.

    Source: Open MPI 5.0, building-apps/abi-compatibility.
    """
    if pair.own is None or pair.own.family != pair.abi.mpi.family or pair.own.family != "openmpi":
        return
    built, host = version_numbers(pair.own.version)[:1], version_numbers(pair.abi.mpi.version)[:1]
    if built and host and not 0 <= host[0] - built[0] <= 1:
        yield Finding.of("abi-unpromised", own_name=pair.own_name, mpi=pair.mpi)


def _kept(pair: CheckInput) -> Iterator[Finding]:
    if pair.own is None:
        yield Finding.of("no-own-mpi", name=pair.guest.label.name)
    network = {o.soname for o in pair.abi.objects if o.role is Role.NET}
    over = {*(base(bind.source) for bind in pair.contents.binds), *map(base, pair.contents.files)}
    if pair.contents.replace is Replace.LIBFABRIC and pair.own and not network & over:
        yield Finding.of("nothing-replaced", evidence=tuple(sorted(network)))


def comparable(pair: CheckInput, simulated: SimulatedProgram) -> bool:
    """Return whether a program has the host's architecture and an ABI that the host MPI offers."""
    facts = pair.elf(simulated.program)
    machine = facts.machine if facts else pair.guest.label.architecture
    if machine != pair.abi.objects[0].machine:
        return False
    needed = {binding.abi for binding in pair.bindings(simulated).values()}
    return not pair.whole or (len(needed) == 1 and needed <= _offered(pair))


def _offered(pair: CheckInput) -> set[str]:
    return {b.abi for o in pair.abi.objects if (b := binding_of(o.soname))}


# ------------------------------------------------------------------ library names


def sonames(pair: CheckInput) -> CheckResult:
    return part("sonames", "every library is found", _sonames(pair))


def _sonames(pair: CheckInput) -> Iterator[Finding]:
    for soname, by in pair.contents.absent:
        binding = binding_of(soname)
        if binding is None or binding.language not in (
            "fortran",
            "cxx",
        ):  # these are checked by parts of their own
            yield _absent(pair, soname, by)
    yield from _without_loader(pair)
    yield from _missing(pair)
    yield from _aliases(pair)


def _without_loader(pair: CheckInput) -> Iterator[Finding]:
    """Report programs that the kernel does not start, since their loader is not there."""
    absent: dict[str, list[str]] = {}
    for simulated in pair.contents.programs:
        if loader := pair.guest.absent_loader(simulated.main):
            absent.setdefault(loader, []).append(simulated.program)
    for loader, programs in absent.items():
        yield Finding.of(
            "loader-missing",
            programs=some(map(base, programs)),
            loader=loader,
            evidence=tuple(programs),
        )


def _absent(pair: CheckInput, soname: str, by: str) -> Finding:
    return Finding.of("soname-absent", object=base(by), soname=soname, mpi=pair.mpi, evidence=(by,))


def _missing(pair: CheckInput) -> Iterator[Finding]:
    """Report libraries without which a program does not start; the part `gpu` reports those of a
    GPU's driver. Libraries that were missing before count too: the program does not start."""
    missing: dict[str, tuple[Resolved, list[str]]] = {}
    for simulated in pair.contents.programs:
        for r in mapped(simulated.after):
            if r.path is None and not _found_later(r.name):
                missing.setdefault(r.name, (r, []))[1].append(simulated.program)
    for name, (r, programs) in missing.items():
        if binding_of(name) is not None and name in dict(pair.contents.absent):
            continue
        side = f"{pair.mpi}'s" if pair.ours(r.needed_by) else "the guest's"
        yield Finding.of(
            "library-refused" if r.problem else "library-missing",
            name=name,
            side=side,
            object=base(r.needed_by),
            advice=_fix_for_missing(pair, r),
            evidence=(
                f"needed by {r.needed_by}",
                *([r.problem] if r.problem else ()),
                *(f"tried {line}" for line in r.tried),
                *(f"for {p}" for p in programs),
            ),
        )


def _fix_for_missing(pair: CheckInput, r: Resolved) -> str:
    if pair.ours(r.needed_by):
        return (
            f"`ldd {pair.abi.mpi.libmpi}` shows whether the host has it; install it on the "
            "host, or in the image"
        )
    return f"install {r.name} in the image, or add its folder to the image's LD_LIBRARY_PATH"


# The start script of R adds the folder of these to the loader's search path.
OF_R = frozenset({"libR.so", "libRblas.so", "libRlapack.so"})


def _found_later(name: str) -> bool:
    """Return whether a library is found in a way that the loader's search in the image does not
    show."""
    return name in OF_R or any(gpu.driver.fullmatch(name) for gpu in fit_facts().gpus)


def _aliases(pair: CheckInput) -> Iterator[Finding]:
    """Report other names of one ABI: Debian calls libmpi.so.12 libmpich.so.12."""
    if not pair.whole:
        return
    offered = {o.soname: binding_of(o.soname) for o in pair.abi.objects}
    needed = {
        n: b for simulated in pair.contents.programs for n, b in pair.bindings(simulated).items()
    }
    for name, binding in needed.items():
        same = [n for n, b in offered.items() if b == binding]
        if name not in offered and same:
            yield Finding.of("soname-alias", name=name, mpi=pair.mpi, same=same[0])

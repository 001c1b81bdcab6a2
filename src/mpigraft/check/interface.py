"""Whether the two sides speak of the same thing: architecture, ABI, library names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpigraft.check.case import Case, base, mapped, part, some
from mpigraft.knowledge import fit
from mpigraft.knowledge.sonames import binding_of
from mpigraft.knowledge.table import version
from mpigraft.model import Abi, Finding, Level, Part, Replace, Role

if TYPE_CHECKING:
    from mpigraft.injection import Simulated
    from mpigraft.resolve import Resolved

NAMES = {  # of an ABI, as people say it
    Abi.OMPI.value: "Open MPI 3 to 5",
    Abi.MPICH.value: "MPICH 3.1 and newer (also Intel MPI, Cray MPICH, MVAPICH)",
    Abi.MPI_ABI.value: "the standard ABI of MPI-5",
    "ompi-old": "Open MPI 2 and older",
    "mpich-old": "MPICH 3.0 and older",
}


# ------------------------------------------------------------------ architecture


def architecture(case: Case) -> Part:
    machine = case.abi.objects[0].machine
    fine = f"{machine} on both sides"
    return part("architecture", fine, _architecture(case, machine))


def _architecture(case: Case, machine: str) -> Iterator[Finding]:
    others: dict[str, list[str]] = {}
    for one in case.injection.programs:
        facts = case.elf(one.program)
        found = facts.machine if facts else case.guest.label.architecture
        if found != machine:
            others.setdefault(found, []).append(one.program)
    for found, programs in others.items():
        yield Finding(
            Level.ERROR,
            "architecture",
            f"{some(map(base, programs))}: for {found}, and {case.mpi} is for {machine}",
            "no loader takes a library of another architecture",
            f"on a machine of {found}: `mpigraft discover --abi --json > machine.json`; then "
            "anywhere: `mpigraft check GUEST --machine machine.json --mpi SPEC`. Or take an image "
            f"for {machine}: `podman pull --arch {_oci(machine)} IMAGE`",
            tuple(programs),
        )


def _oci(machine: str) -> str:
    """The name that images have for an architecture."""
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


# ------------------------------------------------------------------ ABI


def abi(case: Case) -> Part:
    """Family and ABI: what programs were built for, and what the host MPI offers."""
    if case.injection.replace is Replace.MPI:
        wanted = sorted(
            {b.abi for one in case.injection.programs for b in case.bindings(one).values()}
        )
        fine = f"{', '.join(wanted)}: {some(NAMES.get(name, name) for name in wanted)}"
        return part("abi", fine, _abi(case))
    return part("abi", f"the guest keeps {case.own_name}", _kept(case))


def _abi(case: Case) -> Iterator[Finding]:
    if not case.injection.programs:
        yield _no_program(case)
    offered = _offered(case)
    differing: dict[str, list[str]] = {}
    spare: list[str] = []
    twins = {_package(one.program) for one in case.injection.programs if comparable(case, one)}
    for one in case.injection.programs:
        wanted = {b.abi: name for name, b in reversed(case.bindings(one).items())}
        if not wanted:
            yield from _no_mpi(case, one)
        if len(wanted) > 1:
            yield _two_abis(one, wanted)
        if one.program in case.guest.libraries and _package(one.program) in twins:
            spare += [f"{one.program} needs {wanted[name]}" for name in wanted.keys() - offered]
            continue
        for name in wanted.keys() - offered:
            differing.setdefault(name, []).append(f"{one.program} needs {wanted[name]}")
    for name, lines in differing.items():
        yield _differs(case, name, sorted(offered), tuple(lines))
    if spare:
        yield _spare(case, tuple(spare))
    yield from _promise(case)


def _package(path: str) -> tuple[str, str]:
    """Folder and module: mpi4py has MPI.openmpi.cpython-311-....so beside MPI.mpich.... and takes
    the one whose libmpi it can open (mpi4py 4.1, _mpiabi.py)."""
    folder, _, name = path.rpartition("/")
    return folder, name.partition(".")[0]


def _spare(case: Case, lines: tuple[str, ...]) -> Finding:
    return Finding(
        Level.WARNING,
        "abi-spare",
        f"{some(base(line.partition(' needs ')[0]) for line in lines)}: for another MPI; a module "
        f"of the same name beside it is for {case.mpi}",
        "the package chooses when it is imported, and the other one cannot run on this MPI",
        "`mpigraft run` counts the ranks and looks at their libmpi; mpi4py is told by "
        "MPI4PY_MPIABI, as openmpi or mpich",
        lines,
    )


def _differs(case: Case, name: str, offered: list[str], lines: tuple[str, ...]) -> Finding:
    return Finding(
        Level.ERROR,
        "abi-differs",
        f"built for {NAMES.get(name, name)}; {case.mpi} offers {', '.join(offered)}",
        "handles, constants and structures differ: such a program cannot run on this MPI, even "
        "where the names of its symbols are there",
        f"take a host MPI of ABI {name}; or build the program with an MPI of ABI "
        f"{' or '.join(offered)}",
        lines,
    )


def _two_abis(one: Simulated, wanted: dict[str, str]) -> Finding:
    return Finding(
        Level.ERROR,
        "two-abis",
        f"{one.program} is linked to two MPIs: {', '.join(sorted(wanted.values()))}",
        "one process can be a rank of one MPI only",
        "build the program and all its libraries with one MPI",
    )


def _no_program(case: Case) -> Finding:
    return Finding(
        Level.ERROR,
        "no-program",
        f"nothing in {case.guest.label.name} needs an MPI library",
        "there is nothing to put a host MPI under",
        "name the program: --program PATH, as it is inside the guest",
    )


def _no_mpi(case: Case, one: Simulated) -> Iterator[Finding]:
    facts = case.elf(one.program)
    if case.guest.libraries and facts is not None and facts.dynamic:
        return  # an interpreter: what it opens later is looked at by itself
    linked = facts is not None and any(s.name == "MPI_Init" for s in facts.exported)
    static = facts is not None and (linked or not facts.dynamic)
    yield Finding(
        Level.ERROR,
        "mpi-static" if static else "no-mpi",
        f"{one.program} needs no MPI library",
        "its MPI, if any, is linked into it, and nothing can be put in its place"
        if static
        else "it is not an MPI program, or it opens one while it runs",
        "link the program to a shared libmpi"
        if static
        else "name the object that needs MPI, for example an extension module: --program PATH",
    )


def _promise(case: Case) -> Iterator[Finding]:
    """Open MPI keeps its ABI from one major release to the next, and only upwards.

    Source: Open MPI 5.0, building-apps/abi-compatibility.
    """
    if case.own is None or case.own.family != case.abi.mpi.family or case.own.family != "openmpi":
        return
    built, host = version(case.own.version)[:1], version(case.abi.mpi.version)[:1]
    if built and host and not 0 <= host[0] - built[0] <= 1:
        yield Finding(
            Level.WARNING,
            "abi-unpromised",
            f"the guest has {case.own_name}, and {case.mpi} is to run its programs",
            "Open MPI promises its ABI to programs of the same and of the last major release only",
            "symbols and versions were compared; what constants and structures mean was not: try "
            "the program's own tests, or take a host MPI of the guest's release",
        )


def _kept(case: Case) -> Iterator[Finding]:
    if case.own is None:
        yield Finding(
            Level.ERROR,
            "no-own-mpi",
            f"{case.guest.label.name} has no MPI of its own",
            "only an MPI of the guest's own can be left in place",
            "--replace mpi puts the host's whole MPI in",
        )
    network = {o.soname for o in case.abi.objects if o.role is Role.NET}
    over = {base(bind.source) for bind in case.injection.binds}
    if case.injection.replace is Replace.LIBFABRIC and case.own and not network & over:
        yield Finding(
            Level.ERROR,
            "nothing-replaced",
            "the guest's MPI uses neither libfabric nor UCX from a file of its own",
            "there is no file over which the host's could be put: it was built without them, or "
            "they are linked into it",
            "--replace mpi puts the host's whole MPI in",
            tuple(sorted(network)),
        )


def comparable(case: Case, one: Simulated) -> bool:
    """Whether a program has the host's architecture and an ABI that the host MPI offers."""
    facts = case.elf(one.program)
    machine = facts.machine if facts else case.guest.label.architecture
    if machine != case.abi.objects[0].machine:
        return False
    wanted = {binding.abi for binding in case.bindings(one).values()}
    return not case.whole or (len(wanted) == 1 and wanted <= _offered(case))


def _offered(case: Case) -> set[str]:
    return {b.abi for o in case.abi.objects if (b := binding_of(o.soname))}


# ------------------------------------------------------------------ library names


def sonames(case: Case) -> Part:
    return part("sonames", "every library is found", _sonames(case))


def _sonames(case: Case) -> Iterator[Finding]:
    for soname, by in case.injection.absent:
        binding = binding_of(soname)
        if binding is None or binding.language not in ("fortran", "cxx"):  # those have their parts
            yield _absent(case, soname, by)
    yield from _missing(case)
    yield from _aliases(case)


def _absent(case: Case, soname: str, by: str) -> Finding:
    return Finding(
        Level.ERROR,
        "soname-absent",
        f"{base(by)} needs {soname}, and {case.mpi} has no library of that name or kind",
        "the program ends before it starts, or the guest's own library is mixed with the host's",
        "take another host MPI",
        (by,),
    )


def _missing(case: Case) -> Iterator[Finding]:
    """Libraries without which a program does not start; those of a GPU's driver are the part
    gpu's. What was missing before counts too: the program would not start either way."""
    lost: dict[str, tuple[Resolved, list[str]]] = {}
    for one in case.injection.programs:
        for r in mapped(one.after):
            if r.path is None and not _driver(r.name):
                lost.setdefault(r.name, (r, []))[1].append(one.program)
    for name, (r, programs) in lost.items():
        if binding_of(name) is not None and name in dict(case.injection.absent):
            continue
        who = f"{case.mpi}'s" if case.ours(r.needed_by) else "the guest's"
        yield Finding(
            Level.ERROR,
            "library-refused" if r.problem else "library-missing",
            f"{name}, which {who} {base(r.needed_by)} needs, "
            + ("is no library that the loader takes" if r.problem else "is not there"),
            f"the loader ends before the program starts: {name}: cannot open shared object file",
            _mend_missing(case, r),
            (
                f"needed by {r.needed_by}",
                *([r.problem] if r.problem else ()),
                *(f"tried {line}" for line in r.tried),
                *(f"for {p}" for p in programs),
            ),
        )


def _mend_missing(case: Case, r: Resolved) -> str:
    if case.ours(r.needed_by):
        return (
            f"`ldd {case.abi.mpi.libmpi}` on the host says whether it is found there; install it "
            "on the host, or in the image"
        )
    return (
        f"install what has {r.name} in the image, or name its folder in the image's LD_LIBRARY_PATH"
    )


def _driver(name: str) -> bool:
    return any(gpu.driver.fullmatch(name) for gpu in fit.facts().gpus)


def _aliases(case: Case) -> Iterator[Finding]:
    """Debian's libmpich.so.12 is what all others call libmpi.so.12."""
    if not case.whole:
        return
    offered = {o.soname: binding_of(o.soname) for o in case.abi.objects}
    wanted = {n: b for one in case.injection.programs for n, b in case.bindings(one).items()}
    for name, binding in wanted.items():
        same = [n for n, b in offered.items() if b == binding]
        if name not in offered and same:
            yield Finding(
                Level.INFO,
                "soname-alias",
                f"{name} is what {case.mpi} calls {same[0]}",
                "both are names of one ABI",
            )

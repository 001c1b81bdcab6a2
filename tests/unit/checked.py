"""Guests and host MPIs by hand, as far as the loader looks at them; nothing of them is on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace as with_fields

from mpigraft.abi_elf import as_elf
from mpigraft.check import judge
from mpigraft.elf import Elf
from mpigraft.guest import Guest, GuestMpi
from mpigraft.injection import inject
from mpigraft.knowledge.sonames import role_of
from mpigraft.model import (
    AbiObject,
    Family,
    Finding,
    Fit,
    GuestKind,
    GuestLabel,
    Machine,
    MpiAbi,
    MpiInstall,
    Part,
    Replace,
)
from mpigraft.root import Entry, Over, RootError
from mpigraft.roots import Pread, Walked
from tests.unit.builders import an_mpi

PLACE = "/.mpigraft"
LIB = "/usr/lib/x86_64-linux-gnu"
APP = "/opt/app/solver"
C_SYMBOLS = ("MPI_Init", "MPI_Finalize", "MPI_Send", "MPI_Recv")
OLD = ("GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.34")
NEW = (*OLD, "GLIBC_2.38")
LIBC_NEEDS = (("libc.so.6", "GLIBC_2.34", False),)


class Nothing(Walked):
    """A root without a file."""

    name = "app.sif"

    def look(self, folder: str, name: str) -> None:
        return None

    def _list(self, folder: str) -> list[str]:
        return []

    def _opened(self, entry: Entry) -> AbstractContextManager[Pread]:
        raise RootError(f"{entry.path}: nothing is there")


def library(soname: str, **facts: object) -> AbiObject:
    """One library: `needed`, `needs`, `defines`, `exported`, `imported` as AbiObject has them."""
    values: dict[str, object] = {
        "path": f"{LIB}/{soname}",
        "digest": "0" * 64,
        "role": role_of(soname),
        "machine": "x86_64",
        "needed": (),
        "needs": (),
        "defines": (),
        "exported": (),
        "imported": (),
    }
    return AbiObject(soname, **{**values, **facts})  # type: ignore[arg-type]


def libc(defines: tuple[str, ...] = OLD, machine: str = "x86_64") -> AbiObject:
    path = f"/usr/lib/{machine}-linux-gnu/libc.so.6"
    return library("libc.so.6", defines=defines, machine=machine, path=path)


def an_abi(mpi: MpiInstall | str, *more: AbiObject, **libmpi: object) -> MpiAbi:
    """A host MPI: its libmpi with `libmpi`'s facts, then `more`."""
    install = an_mpi(mpi) if isinstance(mpi, str) else mpi
    facts: dict[str, object] = {"exported": C_SYMBOLS, "needed": ("libc.so.6",)}
    first = library(
        install.soname, **{**facts, "path": f"{install.prefix}/lib/{install.soname}", **libmpi}
    )
    others = [o for o in more if o.soname != "libc.so.6"]
    libcs = [o for o in more if o.soname == "libc.so.6"] or [libc()]
    return MpiAbi(install, (first, *others, *libcs), glibc="2.36")


def a_program(needed: Iterable[str] = ("libmpi.so.40",), **facts: object) -> Elf:
    """A program of the guest."""
    facts = {"imported": C_SYMBOLS[:2], "needed": (*needed, "libc.so.6"), **facts}
    made = as_elf(library("", **facts), name=APP)
    return changed(made, type="exec", soname=None, interpreter="/lib64/ld-linux-x86-64.so.2")


def changed(made: Elf, **changes: object) -> Elf:
    values = {name: getattr(made, name) for name in made.__dataclass_fields__}
    other = Elf(**{**values, **changes})
    other.__dict__["imported"], other.__dict__["exported"] = made.imported, made.exported
    return other


def a_guest(
    programs: Mapping[str, Elf] | Elf | None = None, *libraries: AbiObject, glibc: str = "2.36"
) -> Guest:
    """An image with these programs and libraries."""
    found = programs if isinstance(programs, Mapping) else {APP: programs or a_program()}
    files = {path: changed(facts, name=path) for path, facts in found.items()}
    with_libc = libraries if any(o.soname == "libc.so.6" for o in libraries) else (
        *libraries, libc(machine=next(iter(files.values())).machine)
    )  # fmt: skip
    files |= {o.path: as_elf(o, name=o.path) for o in with_libc}
    root = Over(Nothing(), files)
    label = GuestLabel(
        "app.sif", GuestKind.SIF, "/images/app.sif", "d" * 64,
        next(iter(files.values())).machine, "Debian GNU/Linux 12 (bookworm)", glibc, tuple(found),
        env_program="/usr/bin/env",
    )  # fmt: skip
    return Guest(label, root)


OPENMPI = library("libmpi.so.40", exported=C_SYMBOLS, needed=("libc.so.6",))


def modules(*paths: str, needed: Sequence[str]) -> Guest:
    """python3 and extension modules, each for a libmpi."""
    found = [
        library(path.rpartition("/")[2], path=path, needed=(name,), imported=C_SYMBOLS)
        for path, name in zip(paths, needed, strict=True)
    ]
    return with_fields(a_guest(a_program(()), OPENMPI, *found), libraries=paths)


def own(
    family: Family | None = Family.OPENMPI, version: str = "4.1.4", **facts: object
) -> GuestMpi:
    values: dict[str, object] = {
        "soname": "libmpi.so.40", "libmpi": f"{LIB}/libmpi.so.40", "launcher": "", "pmi": (),
    }  # fmt: skip
    return GuestMpi(family, version, **{**values, **facts})  # type: ignore[arg-type]


def verdict(
    guest: Guest,
    abi: MpiAbi,
    *,
    own: GuestMpi | None = None,
    machine: Machine | None = None,
    replace: Replace = Replace.MPI,
    glibc: bool = True,
) -> Fit:
    """What `check` would say, the loader simulated."""
    found = inject(guest, abi, replace=replace, place=PLACE, glibc=glibc)
    return judge(guest, abi, found, own=own, machine=machine)


def part(fit: Fit, name: str) -> Part:
    return next(part for part in fit.parts if part.name == name)


def finding(fit: Fit, code: str) -> Finding:
    return next(finding for finding in fit.findings if finding.code == code)


def codes(fit: Fit) -> set[str]:
    return {finding.code for finding in fit.findings}

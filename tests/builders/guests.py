"""Guests and host MPIs as the loader sees them, none of it on disk: ELF facts, links, labels;
what an injection did to a guest, and the verdict on it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace as with_fields

from mpigraft.binary.elf.reader import Elf
from mpigraft.binary.image.over import OverlayRoot
from mpigraft.binary.image.root import BaseRoot, Pread, RootEntry, RootError
from mpigraft.core.model import AbiObject, GuestKind, GuestLabel, MpiAbi, MpiInstall
from mpigraft.graft.abi.copies import as_elf
from mpigraft.graft.guest.examination import Guest
from mpigraft.knowledge.sonames import role_of
from tests.builders.configuration import an_mpi

PLACE = "/.mpigraft"
LIB = "/usr/lib/x86_64-linux-gnu"
APP, PYTHON = "/opt/app/solver", "/usr/bin/python3"
C_SYMBOLS = ("MPI_Init", "MPI_Finalize", "MPI_Send", "MPI_Recv")
OLD = ("GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.34")
NEW = (*OLD, "GLIBC_2.38")
LIBC_NEEDS = (("libc.so.6", "GLIBC_2.34", False),)


class Nothing(BaseRoot):
    """A root without a file."""

    name = "app.sif"

    def entry_in(self, folder: str, name: str) -> None:
        return None

    def _list(self, folder: str) -> list[str]:
        return []

    def _opened(self, entry: RootEntry) -> AbstractContextManager[Pread]:
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
    programs: Mapping[str, Elf] | Elf | None = None,
    *libraries: AbiObject,
    glibc: str = "2.36",
    loader: bool = True,
    base: BaseRoot | None = None,
) -> Guest:
    """An image with these programs and libraries, and the loader of the programs; the rest of it
    is in `base`."""
    found = programs if isinstance(programs, Mapping) else {APP: programs or a_program()}
    files = {path: changed(facts, name=path) for path, facts in found.items()}
    with_libc = libraries if any(o.soname == "libc.so.6" for o in libraries) else (
        *libraries, libc(machine=next(iter(files.values())).machine)
    )  # fmt: skip
    files |= {o.path: as_elf(o, name=o.path) for o in with_libc}
    files |= {made.interpreter: made for made in [*files.values()] if made.interpreter and loader}
    root = OverlayRoot(base or Nothing(), files)
    label = GuestLabel(
        "app.sif", GuestKind.SIF, "/images/app.sif", "d" * 64,
        next(iter(files.values())).machine, "Debian GNU/Linux 12 (bookworm)", glibc, tuple(found),
        env_program="/usr/bin/env",
    )  # fmt: skip
    return Guest(label, root)


OPENMPI = library("libmpi.so.40", exported=C_SYMBOLS, needed=("libc.so.6",))
MPICH = library("libmpi.so.12", exported=C_SYMBOLS, needed=("libc.so.6",))


def modules(*paths: str, needed: Sequence[str], program: str = PYTHON) -> Guest:
    """A program without MPI, and extension modules, each for a libmpi."""
    found = [
        library(path.rpartition("/")[2], path=path, needed=(name,), imported=C_SYMBOLS)
        for path, name in zip(paths, needed, strict=True)
    ]
    return with_fields(a_guest({program: a_program(())}, OPENMPI, *found), libraries=paths)


# ------------------------------------------------------------------ what was done

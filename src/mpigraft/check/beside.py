"""What of the guest's stays beside the host's: libraries of both sides, plugins."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import PurePosixPath

from mpigraft.check.case import Case, base, count, part, some
from mpigraft.model import AbiObject, Finding, Level, Part, Role
from mpigraft.resolve import Rule
from mpigraft.root import RootError

UCS, MAX_UCS = "libucs.so.0", 1 << 26  # bytes; 1.20 has half a MiB
SAID = {
    "host": ("the host's is taken", "host-over-guest"),
    "guest": ("the guest's serves both", "guest-serves"),
    "private": ("each side has its own", "private-copy"),
}


def collisions(case: Case) -> Part:
    found = case.injection.collisions
    counts = [
        (sum(c.choice.value == choice for c in found), said) for choice, (said, _) in SAID.items()
    ]
    told = ", ".join(f"of {number} {said}" for number, said in counts if number)
    fine = f"{count(len(found), 'library', 'libraries')} on both sides: {told}" if found else "none"
    return part("collisions", fine, (*_mixed(case), *_settled(case)))


def _settled(case: Case) -> Iterator[Finding]:
    for choice, (said, code) in SAID.items():
        hits = [c for c in case.injection.collisions if c.choice.value == choice]
        if hits:
            yield Finding(
                Level.INFO,
                code,
                f"{some((c.soname for c in hits), 4)}: {said}",
                "; ".join(dict.fromkeys(c.why for c in hits)),
                evidence=tuple(f"{c.soname}: guest {c.guest}, host {c.host}" for c in hits),
            )


def _mixed(case: Case) -> Iterator[Finding]:
    """Two MPIs in one process. Where the host lacks a binding, that is the news, not this."""
    if not case.whole or case.injection.absent:
        return
    kept = [r for one in case.injection.programs for r in case.kept(one)]
    if kept:
        yield Finding(
            Level.ERROR,
            "two-mpis",
            "parts of the guest's own MPI would be loaded beside the host's: "
            + some(r.soname for r in kept),
            "symbols of one would be bound to the other: crashes, or a world of one",
            "take a host MPI that has all the bindings that the program needs, or leave the "
            "guest's MPI and replace what it runs over: --replace libfabric",
            tuple(dict.fromkeys(f"{r.path}, needed by {r.needed_by}" for r in kept)),
        )


# ------------------------------------------------------------------ plugins


def plugins(case: Case) -> Part:
    goes = {Role.MPI, Role.NET, Role.OTHER} if case.whole else {Role.NET}
    opened = {base(o.path): o for o in case.abi.objects if o.opened and o.role in goes}
    at_home = {name for name, plugin in opened.items() if _lacking(case, plugin)}
    here = {name: why for name, why in _shut(case).items() if name not in at_home}
    findings = [*_strange_modules(case)]
    if here:
        findings.append(_closed(here, len(opened)))
    if at_home:
        findings.append(_closed_at_home(case, opened, at_home))
    fine = f"all {count(len(opened) - len(at_home), 'plugin')} of the host's can be opened"
    return part("plugins", fine if opened else "none to be opened", findings)


def _shut(case: Case) -> dict[str, str]:
    """{plugin: why the loader could not open it}, what its libraries need included."""
    found = {base(name): why for name, why in case.injection.closed}
    for one in case.injection.programs:
        for r in one.after:
            if r.rule is Rule.OPENED and r.problem and case.ours(r.name):
                found.setdefault(base(r.name), r.problem)
    return found


def _strange_modules(case: Case) -> Iterator[Finding]:
    """UCX opens the modules beside the path at which it is loaded, before those that it is told
    of: with the host's laid over the guest's file, the guest's modules.

    Source: ucx src/ucs/sys/module.c, ucs_module_loader_add_dl_dir; seen with 1.20 over 1.13.
    """
    over = {bind.target for bind in case.injection.binds}
    found: dict[str, None] = {}
    for r in (r for one in case.injection.programs for r in one.after):
        laid_over = r.elf is not None and case.ours(r.elf.name) and not case.ours(r.path)
        if not laid_over or r.soname != UCS or _same(case, str(r.path)):
            continue
        folder = f"{PurePosixPath(str(r.path)).parent}/ucx"
        for name in case.guest.root.names(folder):
            entry = case.guest.root.find(f"{folder}/{name}")
            covered = entry and {entry.path, *map(str, PurePosixPath(entry.path).parents)} & over
            if entry and entry.kind == "file" and ".so" in name and not covered:
                found[entry.path] = None
    if found:
        yield Finding(
            Level.ERROR,
            "modules-mixed",
            f"the host's UCX would open the guest's modules: {some(map(base, found))}",
            "a module registers itself in structures that change between releases: MPI_Init ends "
            "by a signal",
            "--replace mpi leaves the guest's UCX alone; or remove the folder of its modules from "
            "the image",
            tuple(found),
        )


def _same(case: Case, path: str) -> bool:
    """Whether the guest's own file there is the host's libucs, byte for byte."""
    ours = next((o.digest for o in case.abi.objects if o.soname == UCS), "")
    try:
        return hashlib.sha256(case.guest.root.read(path, MAX_UCS)).hexdigest() == ours
    except RootError:
        return False


def _lacking(case: Case, plugin: AbiObject) -> list[str]:
    """What a plugin needs that the host has not either."""
    offered = {o.soname for o in case.abi.objects}
    return [name for name in plugin.needed if name not in offered]


def _closed_at_home(case: Case, opened: dict[str, AbiObject], names: set[str]) -> Finding:
    return Finding(
        Level.INFO,
        "plugins-closed-at-home",
        f"{some(sorted(names))} cannot be opened on the host either",
        "what these are for is not installed there",
        evidence=tuple(f"{n} needs {some(_lacking(case, opened[n]))}" for n in sorted(names)),
    )


def _closed(names: dict[str, str], number: int) -> Finding:
    return Finding(
        Level.WARNING,
        "plugins-closed",
        f"{len(names)} of {count(number, 'plugin')} cannot be opened in this guest, and can on the "
        f"host: {some(names)}",
        "they are opened while the program runs; without one its MPI takes another way, mostly "
        "without a word",
        "if the transport needs one of these, put what it lacks into the image; `mpigraft run "
        "--transport` proves which one ran",
        tuple(f"{name}: {why}" for name, why in names.items()),
    )

"""Check what both sides bring: libraries, and plugins."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import PurePosixPath

from mpigraft.binary import RootError, Rule
from mpigraft.core.model import AbiObject, CheckResult, Finding, GuestKind, Role
from mpigraft.core.numbers import counted
from mpigraft.graft.check.check_input import CheckInput, base, part, some
from mpigraft.graft.injection.simulation import PRIVATE

UCS, MAX_UCS = "libucs.so.0", 1 << 26  # bytes; 1.20 has half a MiB
OUTCOMES = {
    "host": ("the host's is taken", "host-over-guest"),
    "guest": ("the guest's serves both", "guest-serves"),
    "private": ("each side has its own", "private-copy"),
}


def collisions(pair: CheckInput) -> CheckResult:
    libraries = pair.contents.collisions
    counts = [
        (sum(c.choice.value == choice for c in libraries), outcome)
        for choice, (outcome, _) in OUTCOMES.items()
    ]
    summary = ", ".join(f"of {number} {outcome}" for number, outcome in counts if number)
    fine = f"{counted(len(libraries), 'library')} on both sides: {summary}" if libraries else "none"
    return part("collisions", fine, (*_two_mpis(pair), *_settled(pair)))


def _settled(pair: CheckInput) -> Iterator[Finding]:
    for choice, (outcome, code) in OUTCOMES.items():
        hits = [c for c in pair.contents.collisions if c.choice.value == choice]
        if hits:
            yield Finding.of(
                code,
                libraries=some((c.soname for c in hits), 4),
                outcome=outcome,
                reasons="; ".join(dict.fromkeys(c.why for c in hits)),
                evidence=tuple(f"{c.soname}: guest {c.guest}, host {c.host}" for c in hits),
            )


def _two_mpis(pair: CheckInput) -> Iterator[Finding]:
    """Report two MPIs in one process, unless a missing binding already explains it."""
    if not pair.whole or pair.contents.absent:
        return
    own_parts = [r for simulated in pair.contents.programs for r in pair.kept(simulated)]
    if own_parts:
        yield Finding.of(
            "two-mpis",
            libraries=some(r.soname for r in own_parts),
            evidence=tuple(dict.fromkeys(f"{r.path}, needed by {r.needed_by}" for r in own_parts)),
        )


# ------------------------------------------------------------------ plugins


def plugins(pair: CheckInput) -> CheckResult:
    roles = {Role.MPI, Role.NET, Role.OTHER} if pair.whole else {Role.NET}
    opened = {base(o.path): o for o in pair.abi.objects if o.opened and o.role in roles}
    at_home = {name for name, plugin in opened.items() if _lacking(pair, plugin)}
    closed = {name: why for name, why in _closed_plugins(pair).items() if name not in at_home}
    findings = [*_guest_modules(pair)]
    if closed:
        findings.append(_closed(pair, closed, len(opened)))
    if at_home:
        findings.append(_closed_at_home(pair, opened, at_home))
    fine = f"all {counted(len(opened) - len(at_home), 'plugin')} of the host's can be opened"
    return part("plugins", fine if opened else "none to be opened", findings)


def _closed_plugins(pair: CheckInput) -> dict[str, str]:
    """Give {plugin: why the loader could not open it}, the needs of its libraries included."""
    reasons = {base(name): why for name, why in pair.contents.closed}
    for simulated in pair.contents.programs:
        for r in simulated.after:
            if r.rule is Rule.OPENED and r.problem and pair.ours(r.name):
                reasons.setdefault(base(r.name), r.problem)
    return reasons


def _guest_modules(pair: CheckInput) -> Iterator[Finding]:
    """Report guest's modules of UCX: it opens those next to the path at which it is loaded before
    any configured ones. With the host's UCX bound over the guest's, these are the guest's.

    Source: ucx src/ucs/sys/module.c, ucs_module_loader_add_dl_dir; seen with 1.20 over 1.13.
    """
    over = {bind.target for bind in pair.contents.binds}
    modules: dict[str, None] = {}
    for r in (r for simulated in pair.contents.programs for r in simulated.after):
        laid_over = r.elf is not None and pair.ours(r.elf.name) and not pair.ours(r.path)
        if not laid_over or r.soname != UCS or _is_same_ucs(pair, str(r.path)):
            continue
        folder = f"{PurePosixPath(str(r.path)).parent}/ucx"
        for name in pair.guest.root.names(folder):
            entry = pair.guest.root.find(f"{folder}/{name}")
            covered = entry and {entry.path, *map(str, PurePosixPath(entry.path).parents)} & over
            if entry and entry.kind == "file" and ".so" in name and not covered:
                modules[entry.path] = None
    if modules:
        yield Finding.of("modules-mixed", modules=some(map(base, modules)), evidence=tuple(modules))


def _is_same_ucs(pair: CheckInput, path: str) -> bool:
    """Return whether the guest's file at `path` is the host's libucs, byte for byte."""
    ours = next((o.digest for o in pair.abi.objects if o.soname == UCS), "")
    try:
        return hashlib.sha256(pair.guest.root.read(path, MAX_UCS)).hexdigest() == ours
    except RootError:
        return False


def _lacking(pair: CheckInput, plugin: AbiObject) -> list[str]:
    """List what a plugin needs and the host lacks too."""
    offered = {o.soname for o in pair.abi.objects}
    absent = (name for name in plugin.needed if name not in offered)
    return [name for name in absent if PRIVATE not in name]  # of a copy: it was there


def _closed_at_home(pair: CheckInput, opened: dict[str, AbiObject], names: set[str]) -> Finding:
    return Finding.of(
        "plugins-closed-at-home",
        plugins=some(sorted(names)),
        evidence=tuple(f"{n} needs {some(_lacking(pair, opened[n]))}" for n in sorted(names)),
    )


def _closed(pair: CheckInput, names: dict[str, str], number: int) -> Finding:
    return Finding.of(
        "plugins-closed",
        guest="the stack" if pair.guest.label.kind is GuestKind.STACK else "this guest",
        count=len(names),
        plugins=counted(number, "plugin"),
        names=some(names),
        evidence=tuple((f"{name}: {why}" for name, why in names.items())),
    )

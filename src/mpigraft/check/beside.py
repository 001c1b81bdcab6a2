"""What of the guest's stays beside the host's: libraries of both sides, plugins."""

from __future__ import annotations

from collections.abc import Iterator

from mpigraft.check.case import Case, base, count, part, some
from mpigraft.model import Finding, Level, Part

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
    opened = [o for o in case.abi.objects if o.opened]
    if case.injection.closed:
        return part("plugins", "", [_closed(case, len(opened))])
    fine = f"all {count(len(opened), 'plugin')} can be opened" if opened else "none to be opened"
    return part("plugins", fine, ())


def _closed(case: Case, number: int) -> Finding:
    names = dict(case.injection.closed)
    return Finding(
        Level.WARNING,
        "plugins-closed",
        f"{len(names)} of {count(number, 'plugin')} could not be opened in this guest: "
        f"{some(map(base, names))}",
        "they are opened while the program runs; without one its MPI takes another way, mostly "
        "without a word",
        "if the transport needs one of these, install what it lacks on the host or in the image; "
        "`mpigraft run` proves which transport ran",
        tuple(f"{base(name)}: {why}" for name, why in names.items()),
    )

"""What of the guest's stays beside the host's: libraries of both sides, plugins."""

from __future__ import annotations

from collections.abc import Iterator

from mpigraft.check.case import Case, base, count, mapped, part, some
from mpigraft.knowledge.sonames import role_of
from mpigraft.model import Finding, Level, Part, Role

SAID = {
    "host": ("the host's is put over the guest's", "host-over-guest"),
    "guest": ("the guest's serves the host's libraries too", "guest-serves"),
    "private": ("the host's libraries get a copy of their own", "private-copy"),
}


def collisions(case: Case) -> Part:
    both = count(len(case.injection.collisions), "library", "libraries")
    fine = f"{both} on both sides, each settled" if case.injection.collisions else "none"
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
    """Parts of the guest's own MPI that would be loaded beside the host's."""
    if not case.whole:
        return
    mixed: dict[str, list[str]] = {}
    for one in case.injection.programs:
        for r in mapped(one.after):
            kept = r.path is not None and not (r.elf is not None and case.ours(r.elf.name))
            if kept and role_of(r.soname) is Role.MPI:
                mixed.setdefault(r.soname, []).append(f"{r.path}, needed by {r.needed_by}")
    if mixed:
        yield Finding(
            Level.ERROR,
            "two-mpis",
            f"parts of the guest's own MPI would be loaded beside the host's: {some(mixed)}",
            "symbols of one would be bound to the other: crashes, or a world of one",
            "take a host MPI that has all the bindings that the program needs, or leave the "
            "guest's MPI and replace what it runs over: --replace libfabric",
            tuple(dict.fromkeys(line for lines in mixed.values() for line in lines)),
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

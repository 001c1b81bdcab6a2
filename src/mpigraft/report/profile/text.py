"""A profile as text of at most 80 columns: one line that says it all, then tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from mpigraft.core.env import redact
from mpigraft.core.hostlist import fold_hosts
from mpigraft.core.numbers import counted, number
from mpigraft.core.text import columns, fold, join_some, printable
from mpigraft.report.screen import LINES, Screen, folded
from mpigraft.report.table import Column, Line, Table
from mpigraft.trace import OWN, PeerTraffic, Profile, RankUse, Routine

NAMED = 3  # routines in the first line
LEAST = 0.0005  # a smaller share is not named there
SIZED, CLASSES = 5, 6  # routines with a table of sizes, and rows of each
LONGEST = 22  # letters of a routine in a table
SHOWN = 8  # ranks and hosts that a line names
NONE = "-"
ROUTINES, WAITS = "routines of MPI", "waiting for others apart from moving data"


def table(
    caption: str, heads: Sequence[str], rows: Iterable[tuple[str, ...]], left: int = 1
) -> Table:
    """Make a table with one space between columns, so that it fits 80; the first `left` columns
    are set to the left."""
    every = (Column(head, right=k >= left) for k, head in enumerate(heads))
    return Table(caption, tuple(every), tuple(rows), before=1)


def headline(profile: Profile, width: int = 0) -> str:
    """`gmx: 12.3 s, 50.3 % MPI: 42.1 % Alltoallv, 5.0 % Scatter, 2.6 % Allreduce`; as many
    routines as fit `width`, and one in any case."""
    name = printable(profile.program) or "program"
    run = seconds(profile.run_s)
    share = profile.share(profile.mpi_s)
    if share is None:
        return f"{name}: {run}"
    text = f"{name}: {run}, {percent(share)} MPI"
    parts = [
        (profile.routine_share(one.name, one.time_s) or 0.0, one.name) for one in profile.routines
    ]
    shown = [f"{percent(part)} {name}" for part, name in parts[:NAMED] if part >= LEAST]
    while len(shown) > 1 and 0 < width < len(f"{text}: {', '.join(shown)}"):
        shown.pop()
    return f"{text}: {', '.join(shown)}" if shown else text


def profile_screen(profile: Profile, top: int = 10) -> Screen:
    """Describe a profile in one screen: its first line, its longest routines, and waits where they
    were measured; what else there is by name."""
    answer, *about = map(redact, [headline(profile, columns()), *_about(profile)])
    every = [*tables(profile, top)]
    shown = [one for one in every if one.caption.startswith((ROUTINES, WAITS))]
    rows: list[Line] = [[(line, "")] for line in about]
    for one in shown:
        lines = [*one.styled()]
        if len(rows) + len(lines) + 2 <= LINES or one is shown[0]:
            rows += [[], *folded(one.caption, columns(), "bold"), *lines]
    hidden = [one.caption.partition(",")[0] for one in every if one not in shown]
    if profile.sites:
        sites = [*_sites(profile, top)]
        room = max(LINES - len(rows), SIZED)
        rows += [[], *([(line, "")] for line in sites[:room])]
        hidden += ["call sites"] if len(sites) > room else []
    return Screen([answer], rows, rest=[f"--full: {', '.join(hidden)}"] if hidden else [])


def profile_lines(profile: Profile, top: int = 10) -> list[str]:
    """Return all of a profile; of each table the `top` rows."""
    lines = [headline(profile, columns()), *_about(profile)]
    for one in tables(profile, top):
        lines += ["", one.caption, *one.lines()]
    if profile.sites:
        lines += ["", *_sites(profile, top)]
    return [line.rstrip() for line in lines]


def _about(profile: Profile) -> Iterator[str]:
    """Yield where it ran, what is to be known of the figures, and which ranks did not end well."""
    hosts = fold_hosts(list(profile.hosts), SHOWN)
    parts = [counted(profile.ranks, "rank")] if profile.ranks else []
    if parts and hosts:
        parts[0] += f" on {printable(hosts)}"
    parts += [printable(value) for _, value in profile.labels]
    parts += [f"profile of {profile.source}"] if profile.source != OWN else []
    if parts:
        yield from fold("; ".join(parts), "", 2)
    if profile.exit_code:
        yield f"ended with exit code {profile.exit_code}; the figures are those until then"
    if profile.entry_s is not None:
        yield f"before that {seconds(profile.entry_s)} in MPI_Init"
    yield from unfinished_lines(profile.unfinished)
    for note in profile.notes:
        yield from fold(f"note: {note}", "", 2)
    for k, other in enumerate(profile.others, 1):
        hosts = printable(fold_hosts(list(other.hosts), SHOWN))
        where = f"{counted(other.ranks, 'rank')} on {hosts}"
        yield from fold(f"world {k}: {headline(other)}; {where}", "", 2)


def unfinished_lines(ranks: Iterable[RankUse]) -> Iterator[str]:
    """`not finalized: rank 1 in Recv for 12.0 s`; ranks in one routine are together."""
    inside: dict[str, list[RankUse]] = defaultdict(list)
    for one in ranks:
        inside[one.inside].append(one)
    for routine, group in inside.items():
        names = join_some([str(one.rank) for one in group], SHOWN, ", ")
        times = [one.inside_s for one in group if one.inside_s is not None]
        spans = {seconds(max(times)), seconds(min(times))} if times else set()
        span = " to ".join(sorted(spans, key=lambda text: text == seconds(max(times))))
        where = f"in {routine} for {span}" if routine else f"outside of MPI for {span}"
        word = "rank" if len(group) == 1 else "ranks"
        yield from fold(f"not finalized: {word} {names}, {where}", "", 2)


def tables(profile: Profile, top: int) -> Iterator[Table]:
    """Tables of a profile, as values: those for which it has figures."""
    routines = [one for one in profile.routines if one.calls or one.time_s]
    if routines:
        yield _routines(profile, routines[:top], len(routines))
    if waiting := [one for one in routines if profile.waits and one.waited_s]:
        yield _waits(profile, waiting[:top])
    if sized := [one for one in routines if one.sizes]:
        yield _sizes(sized[:SIZED])
    if profile.peers:
        yield _peers(profile.peers, top)


def _routines(profile: Profile, routines: list[Routine], total: int) -> Table:
    rows = []
    for one in routines:
        share = percent(profile.routine_share(one.name, one.time_s))
        rows.append((_name(one.name), share, *routine_figures(one)))
    heads = ("routine", "run time", "min", "avg", "max", "imbal", "calls", "bytes", "mean")
    more = f", {len(routines)} of {total}" if len(routines) < total else ""
    return table(f"{ROUTINES}{more}: share of run time, time of a rank", heads, rows)


def routine_figures(one: Routine) -> tuple[str, ...]:
    """Write the least, mean and most time of a rank, imbalance, calls, bytes, bytes of a call."""
    spread = one.spread
    times = (spread.low, spread.mean, spread.high) if spread else (None, None, None)
    uneven = spread.imbalance if spread else None
    mean = one.bytes / one.calls if one.bytes is not None and one.calls else None
    return (
        *map(seconds, times), NONE if uneven is None else f"{100 * uneven:.0f} %",
        count(one.calls), size(one.bytes), size(mean),
    )  # fmt: skip


def _waits(profile: Profile, routines: list[Routine]) -> Table:
    """Describe waiting for others, and moving data: shares of the run time."""
    rows = []
    for one in routines:
        waited, whole = one.waited_s or 0.0, one.time_s or 0.0
        part = f"{100 * waited / whole:.0f} %" if whole else NONE
        moved = max(0.0, whole - waited)
        shares = (profile.share(waited), profile.share(moved))
        rows.append((_name(one.name), *map(percent, shares), part))
    heads = ("routine", "waiting", "moving", "waiting of its time")
    return table(WAITS, heads, rows)


def _sizes(routines: list[Routine]) -> Table:
    rows = []
    for one in routines:
        weight = {part: part.time_s or part.bytes or part.calls for part in one.sizes}
        kept = sorted(one.sizes, key=lambda part: -weight[part])[:CLASSES]
        for part in sorted(kept, key=lambda part: (part.mixed, part.least)):
            of_it = part.time_s / one.time_s if part.time_s is not None and one.time_s else None
            rows.append((
                _name(one.name), size_range(part.least, part.most, part.mixed), count(part.calls),
                size(part.bytes), percent(of_it) + (" est." if part.estimated else ""),
            ))  # fmt: skip
    heads = ("routine", "message", "messages", "bytes", "of its time")
    return table("sizes of messages", heads, rows)


def _peers(peers: tuple[PeerTraffic, ...], top: int) -> Table:
    peers = tuple(one for one in peers if one.source != one.target) or peers
    rows = tuple(
        (f"{one.source} to {one.target}", one.kind.value, count(one.messages), size(one.bytes))
        for one in peers[:top]
    )
    more = f", {top} of {len(peers)}" if len(peers) > top else ""
    heads = ("ranks", "kind", "messages", "bytes")
    return table(f"pairs of ranks that exchange most{more}", heads, rows, left=2)


def _sites(profile: Profile, top: int) -> Iterator[str]:
    yield "call sites"
    for one in profile.sites[:top]:
        share = percent(profile.routine_share(one.routine, one.time_s))
        yield f"{share:>7} {one.routine}, {count(one.calls)} calls"
        for frame in one.frames:
            yield from fold(frame, "          ", 12)


def _name(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}~"


# ------------------------------------------------------------------ figures


def percent(share: float | None) -> str:
    """`42.1 %`."""
    return NONE if share is None else f"{100 * share:.1f} %"


def seconds(value: float | None) -> str:
    """`12.3 s`, `4.5 ms`, `120 us`, to three digits; 2568 s whole."""
    if value is None:
        return NONE
    if value == 0:
        return "0 s"
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if value * factor >= 0.9995:
            return f"{number(value * factor)} {unit}" if value < 1e6 else f"{value:.0f} s"
    return f"{value * 1e9:.0f} ns"


def count(value: int | None) -> str:
    """Exact below a million: `1234`, then `1.23M`."""
    return NONE if value is None else str(value) if value < 1_000_000 else number(value)


def size(value: float | None) -> str:
    """Return bytes to three digits: `0`, `512`, `1.5K`, `12.3M`."""
    if value is None:
        return NONE
    for power, letter in ((5, "P"), (4, "T"), (3, "G"), (2, "M"), (1, "K")):
        if value >= 1024**power:
            return (
                f"{value / 1024**power:.3g}{letter}"
                if value < 1000 * 1024**power
                else (f"{value / 1024**power:.0f}{letter}")
            )
    return f"{value:.0f}"


def size_range(least: int, most: int, mixed: bool = False) -> str:
    """`0`, `1`, `2-3`, `1K-2K`: the upper bound of a class is one byte less. Of many classes `mixed
    8 to 1M`."""
    if mixed:
        return f"mixed {size(least)} to {size(most)}"
    if least == most:
        return size(least)
    return f"{size(least)}-{size(most if most < 1024 else most + 1)}"

"""Numbers, sizes and verdicts as a person reads them, the same in every form of a report."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from pathlib import Path

from mpigraft.model import Better, Cell, CellGroup, Evidence, Proof, Standing, Verdict
from mpigraft.summary import bound, lost, mixed

UNITS = ((1 << 30, "GiB", "G"), (1 << 20, "MiB", "M"), (1 << 10, "KiB", "K"))
UNIT = re.compile(r"(?<=\d) (?=(?:B|KiB|MiB|GiB|s|min|h|days|rounds)\b|%)")
STUCK = "\xa0"
HOME = re.compile(r"(?:(?<![\w.])|(?<=-[A-Z]))/(?:home|Users)/\w[\w.@+-]*")
VERDICTS = {
    Verdict.FASTER: "▲",
    Verdict.SLOWER: "▼",
    Verdict.EQUIVALENT: "=",
    Verdict.INCONCLUSIVE: "·",
}
VERDICTS_ASCII = {
    Verdict.FASTER: "+",
    Verdict.SLOWER: "-",
    Verdict.EQUIVALENT: "=",
    Verdict.INCONCLUSIVE: ".",
}
STANDINGS = {
    Standing.PROVEN: "✓",
    Standing.CONTRADICTED: "✗",
    Standing.NOT_EXERCISED: "○",
    Standing.NO_EVIDENCE: "?",
}


WIDEST = 100.0  # upper over lower bound of an interval that is shown as one
BESIDE = "beside the wish"  # proven, but of a lane that the transport did not ask for


def beside(evidence: Evidence, proof: Proof) -> bool:
    """Whether a proven lane is one that this MPI takes whatever the transport. The finding says
    so rather than the proof, and stores of every age have it."""
    what = f"{proof.kind} {proof.peer} "
    return proof.standing is Standing.PROVEN and any(
        f.code == "lane-beside" and f.seen.startswith(what) for f in evidence.findings
    )


COUNTERS = {  # of wires.py: what a person has to know of each
    "netdev": "netdev, which does not see RDMA",
    "infiniband": "the port's own counter",
    "cxi telemetry": "the NIC's own counter",
}


def counted(
    interface: str, sent: int, counter: str, payload: int, *, due: bool, own: int | None = None
) -> str:
    """`16,870,000 bytes through e0, 1.01 of the payload, which it had to carry (netdev, ...),
    16,700,000 by the ranks' own connections`."""
    said = f"{sent:,} bytes through {interface}"
    if payload:
        said += f", {sent / payload:.2f} of the payload"
    if due:
        said += ", which it had to carry"
    said += f" ({COUNTERS.get(counter, counter)})" if counter else ""
    return said + (f", {own:,} by the ranks' own connections" if own is not None else "")


def own_through(evidence: Evidence, interface: str) -> int | None:
    """Bytes that the ranks' own connections sent through an interface of the kernel, None where
    that is not known or no connection can."""
    if evidence.own is None or dict(evidence.counters).get(interface) != "netdev":
        return None
    return dict(evidence.own).get(interface, 0)


def size(count: int) -> str:
    """Bytes of a message: 8 B, 1 KiB, 1.5 MiB; a dash where the benchmark has no size."""
    if count <= 0:
        return "-"
    for unit, name, _ in UNITS:
        if count >= unit:
            return f"{count / unit:.4g} {name}" if count * 100 % unit == 0 else f"{count} B"
    return f"{count} B"


def short_size(count: int) -> str:
    """The same in the width of a matrix column: 8, 1K, 4M."""
    if count <= 0:
        return "-"
    for unit, _, letter in UNITS:
        if count >= unit and count % unit == 0:
            return f"{count // unit}{letter}"
    return str(count)


def number(value: float) -> str:
    """Three significant digits, or all before the point; millions as M, so columns stay narrow."""
    if not math.isfinite(value):
        return "-"
    for unit, letter in ((1e9, "G"), (1e6, "M")):
        if abs(value) >= unit:
            return f"{value / unit:.3g}{letter}"
    if abs(value) >= 99.95:
        return f"{value:.0f}"
    return _three(value)


def ratio(value: float) -> str:
    """A ratio to three significant digits, two where it is small: 0.024, 0.170, 1.02, 12.3."""
    if not math.isfinite(value):
        return "-"
    if value < 0.1:
        return f"{value:.3f}" if value >= 0.00995 else f"{value:.2g}"
    return f"{value:.0f}" if value >= 99.95 else _three(value)


def _three(value: float) -> str:
    if value == 0:
        return "0"
    whole = math.floor(math.log10(abs(value)) + 1e-9)
    text = f"{value:.{min(max(2 - whole, 0), 6)}f}"
    # 0.9999 rounds up to 1.000: one digit too many for its new place.
    return f"{float(text):.{max(1 - whole, 0)}f}" if abs(float(text)) >= 10 ** (whole + 1) else text


def interval(low: float | None, high: float | None) -> str:
    """A 95 % interval, a dash where there is none, `unknown` where it says nothing."""
    if low is None or high is None:
        return "-"
    return f"[{ratio(low)}, {ratio(high)}]" if informs(low, high) else "unknown"


def informs(low: float, high: float) -> bool:
    """Whether an interval of ratios says anything: its ends are not a hundredfold apart. Two rounds
    that differ by a few percent give a millionfold."""
    return low > 0 and high / low < WIDEST


def span(bounds: tuple[float, float] | None) -> str:
    """An interval of values rather than ratios."""
    return "-" if bounds is None else f"[{number(bounds[0])}, {number(bounds[1])}]"


def percent(fraction: float) -> str:
    """A fraction as a percentage: 15 %, 2.4 %."""
    value = 100 * fraction
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.2g} %"


def spread(fraction: float) -> str:
    """The half-width of an interval: ±15 %."""
    low, high = 1 / (1 + fraction), 1 + fraction
    return f"±{percent(fraction)}" if informs(low, high) else "unknown"


def duration(seconds: float) -> str:
    """A span that a person plans with: 40 s, 25 min, 3.5 h, 12 days."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.0f} days"


def many(number: int, thing: str) -> str:
    """`1 round`, `6 rounds`, `3 launches`."""
    return f"{number} {plural(number, thing)}"


def plural(number: int, thing: str) -> str:
    return thing if number == 1 else thing + ("es" if thing.endswith("ch") else "s")


def unbroken(text: str) -> str:
    """`text` with figures stuck to their units by no-break spaces, so that no line parts them."""
    return UNIT.sub(STUCK, text)


def visible(text: str) -> str:
    """Foreign text on one line, control characters shown as escapes: a name must not move the
    cursor, and a line break must not forge a row."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def line(text: str) -> str:
    """The same for a sentence: its line breaks are only white space, what else is hidden shows."""
    return visible(" ".join(text.split()))


def homeless(text: str) -> str:
    """`text` with home folders as ~: this user's, and what is named like one, since a store may
    come from another machine. A published report names nobody's home."""
    for home in _homes():
        # /root has to begin a path, or /opt/root would lose its end; longer ones name somebody
        # wherever they stand: -L/home/me, file:///home/me.
        before = "" if home.count("/") > 1 else r"(?<![\w./-])"
        text = re.sub(rf"{before}{re.escape(home)}(?![\w.-])", "~", text)
    return HOME.sub("~", text)


def _homes() -> tuple[str, ...]:
    """This user's home as it is called and as it is mounted, the longer one first."""
    try:
        home = Path.home()
        names = {str(home), str(home.resolve())}
    except (RuntimeError, OSError):  # no HOME, and no such user
        return ()
    return tuple(sorted((n for n in names if n != "/"), key=len, reverse=True))


def better(direction: Better) -> str:
    return "lower is better" if direction is Better.LOWER else "higher is better"


@dataclass(frozen=True, slots=True)
class Crossing:
    """From `size` on the other of the two is ahead."""

    size: int
    ahead: str  # id of the one that is ahead from there on


def crossings(group: CellGroup, baseline: str, direction: Better) -> tuple[Crossing, ...]:
    """Who is ahead from each crossover on, read from the ratio at that size."""
    at = {cell.size: cell for cell in group.cells}
    return tuple(
        Crossing(s, group.configuration if ahead(at[s], direction) else baseline)
        for s in group.crossovers
        if s in at
    )


def undecided(group: CellGroup) -> str:
    """Why a curve has no verdict, where more than chance is to blame; else empty."""
    if group.withheld:
        return f"no verdict: {group.withheld}"
    return lost(group) or mixed(group)


def note(group: CellGroup) -> str:
    """What the sign of a curve does not say: why it has no verdict, or how far a size may be
    from equal. Else empty."""
    return undecided(group) or bound(group)


def ahead(cell: Cell, direction: Better) -> bool:
    """Whether the configuration's value is the better one, verdict or not."""
    return cell.ratio < 1 if direction is Better.LOWER else cell.ratio > 1

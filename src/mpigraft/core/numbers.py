"""Numbers as a person reads them, the same in every text: bytes, ratios, intervals, counts; and
sizes as a person writes them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

UNITS = ((1 << 30, "GiB", "G"), (1 << 20, "MiB", "M"), (1 << 10, "KiB", "K"))
SIZE = re.compile(r"(\d{1,18}) ?(?:([KMGT])(?:I?B)?|B)?", re.ASCII | re.IGNORECASE)
DIGITS = 12  # significant: those after it are of the logarithm, not of the value
WIDEST = 100.0  # upper over lower bound of an interval that is shown as one


def size(count: int) -> str:
    """Return bytes of a message: 8 B, 1 KiB, 1.5 MiB; a dash where the benchmark has no size."""
    if count <= 0:
        return "-"
    for unit, name, _ in UNITS:
        if count >= unit:
            return f"{count / unit:.4g} {name}" if count * 100 % unit == 0 else f"{count} B"
    return f"{count} B"


def read_size(text: str) -> int:
    """Read bytes: `4194304`, `1K`, `4 MiB`, `4MB`. K, M, G and T are powers of 1024, with
    or without B or iB: messages are measured at powers of two. Raises ValueError."""
    match = SIZE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return int(match[1]) << 10 * " KMGT".index((match[2] or " ").upper())


def size_span(sizes: Sequence[int]) -> str:
    """From the first to the last: 1 B to 64 KiB; one size by itself."""
    first, last = size(sizes[0]), size(sizes[-1])
    return first if len(sizes) == 1 else f"{first} to {last}"


def short_size(count: int) -> str:
    """Return the same in the width of a matrix column: 8, 1K, 4M."""
    if count <= 0:
        return "-"
    for unit, _, letter in UNITS:
        if count >= unit and count % unit == 0:
            return f"{count // unit}{letter}"
    return str(count)


def number(value: float) -> str:
    """Return three significant digits, or all before the point; millions as M, so columns stay
    narrow."""
    if not math.isfinite(value):
        return "-"
    for unit, letter in ((1e9, "G"), (1e6, "M")):
        if abs(value) >= unit:
            return f"{value / unit:.3g}{letter}"
    if abs(value) >= 99.95:
        return f"{value:.0f}"
    return _three(value)


def ratio(value: float) -> str:
    """Return a ratio to three significant digits, two where it is small: 0.024, 0.170, 1.02,
    12.3."""
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
    """Return a 95 % interval, a dash where there is none, `unknown` where it says nothing."""
    if low is None or high is None:
        return "-"
    return f"[{ratio(low)}, {ratio(high)}]" if is_informative(low, high) else "unknown"


def is_informative(low: float, high: float) -> bool:
    """Return whether an interval of ratios says anything: its ends are not a hundredfold apart. Two
    rounds that differ by a few percent give a millionfold."""
    return low > 0 and high / low < WIDEST


def span(bounds: tuple[float, float] | None) -> str:
    """Return an interval of values rather than ratios."""
    return "-" if bounds is None else f"[{number(bounds[0])}, {number(bounds[1])}]"


def percent(fraction: float) -> str:
    """Return a fraction as a percentage: 15 %, 2.4 %."""
    value = 100 * fraction
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.2g} %"


def spread(fraction: float) -> str:
    """Return the half-width of an interval: ±15 %."""
    low, high = 1 / (1 + fraction), 1 + fraction
    return f"±{percent(fraction)}" if is_informative(low, high) else "unknown"


def duration(seconds: float) -> str:
    """Return a span that a person plans with: 40 s, 25 min, 3.5 h, 12 days."""
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < 48 else f"{hours / 24:.0f} days"


def node_hours(seconds: float, nodes: int) -> str:
    """Return what a machine's accounts are charged in: 0.05 node-hours, 130 node-hours."""
    hours = seconds * nodes / 3600
    return f"{hours:,.0f} node-hours" if hours >= 9.95 else f"{hours:.2g} node-hours"


def counted(number: int, thing: str) -> str:
    """`1 round`, `3 launches`, `2 libraries`."""
    return f"{number} {plural(number, thing)}"


def round_numbers(rounds: Iterable[int]) -> list[str]:
    """Write rounds as a person counts them, from 1."""
    return [str(number + 1) for number in sorted(rounds)]


def plural(number: int, thing: str) -> str:
    if number == 1:
        return thing
    if thing.endswith("ry"):
        return f"{thing[:-1]}ies"
    return thing + ("es" if thing.endswith(("ch", "ss")) else "s")


def from_log(log: float) -> float:
    """Return the value of a logarithm without the digits that rounding adds: 6.74, not
    6.739999999999999."""
    return float(f"{math.exp(log):.{DIGITS}g}")

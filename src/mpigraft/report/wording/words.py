"""Numbers, sizes and verdicts as a person reads them, the same in every form of a report."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from mpigraft.analysis import reason_of, size_bound
from mpigraft.core.model import (
    Better,
    Cell,
    CellGroup,
    Evidence,
    Proof,
    ProofStatus,
    SettingState,
    Verdict,
    common_sizes,
)
from mpigraft.core.numbers import counted, size, size_span
from mpigraft.core.numbers import ratio as number_ratio
from mpigraft.core.text import NO_BREAK, join_some, printable

UNIT = re.compile(r"(?<=\d) (?=(?:B|KiB|MiB|GiB|s|min|h|days|rounds)\b|%)")
NO_SPEED = {"%", "B", "kB", "MB", "GB", "KiB", "MiB", "GiB", "J", "kJ", "W"}
NAMED = 4  # configurations before a note that they share
VERDICT_SIGNS = {
    Verdict.FASTER: "▲",
    Verdict.SLOWER: "▼",
    Verdict.EQUIVALENT: "=",
    Verdict.INCONCLUSIVE: "·",
}
ASCII_SIGNS = {
    Verdict.FASTER: "+",
    Verdict.SLOWER: "-",
    Verdict.EQUIVALENT: "=",
    Verdict.INCONCLUSIVE: ".",
}
STATUS_SIGNS = {
    ProofStatus.PROVEN: "✓",
    ProofStatus.CONTRADICTED: "✗",
    ProofStatus.NOT_EXERCISED: "○",
    ProofStatus.NO_EVIDENCE: "?",
}


OTHER_LANE = ("lane-other", "lane-beside")  # stores of before have the second
UNREQUESTED = "other than requested"  # proven, but of a lane that the transport did not ask for


def effects_text(evidence: Evidence) -> str:
    """Say which variables of a setting are in effect: `2 in effect, 1 read`; empty without one."""
    states = Counter(one.state for one in evidence.settings)
    return ", ".join(f"{states[state]} {state}" for state in SettingState if states[state])


def is_unrequested(evidence: Evidence, proof: Proof) -> bool:
    """Return whether a proven lane is one that this MPI takes with every transport. The finding
    says so rather than the proof, and stores of every age have it."""
    what = f"{proof.kind} {proof.peer} "
    return proof.standing is ProofStatus.PROVEN and any(
        f.code in OTHER_LANE and f.message.startswith(what) for f in evidence.findings
    )


COUNTERS = {  # of wires.py: what a person has to know of each
    "netdev": "netdev, which does not see RDMA",
    "infiniband": "the port's own counter",
    "cxi telemetry": "the NIC's own counter",
}


def counted_bytes(
    interface: str, sent: int, counter: str, payload: int, *, due: bool, own: int | None = None
) -> str:
    """`16,870,000 bytes through e0, 1.01 of the payload, which it had to carry (netdev, ...),
    16,700,000 by the ranks' own connections`."""
    text = f"{sent:,} bytes through {interface}"
    if payload:
        text += f", {sent / payload:.2f} of the payload"
    if due:
        text += ", which it had to carry"
    text += f" ({COUNTERS.get(counter, counter)})" if counter else ""
    return text + (f", {own:,} by the ranks' own connections" if own is not None else "")


def own_bytes(evidence: Evidence, interface: str) -> int | None:
    """Return bytes that the ranks' own connections sent through an interface of the kernel, None
    where that is not known or no connection can."""
    if evidence.own is None or dict(evidence.counters).get(interface) != "netdev":
        return None
    return dict(evidence.own).get(interface, 0)


def unbroken(text: str) -> str:
    """`text` with figures stuck to their units by no-break spaces, so that no line parts them."""
    return UNIT.sub(NO_BREAK, text)


def single_line(text: str) -> str:
    """Write a sentence in one line: line breaks are only white space, what else is hidden shows."""
    return printable(" ".join(text.split()))


def factor(ratio: float, direction: Better, unit: str = "") -> str:
    """`12.7x slower`, of a latency's 12.7 and of a bandwidth's 0.079; `1.5x higher` of a share in
    percent or of memory, which are no speeds."""
    if not 0 < ratio < math.inf:
        return "-"
    by = max(ratio, 1 / ratio)
    if by < 1.005:
        return "equal"
    if not is_speed(unit):
        return f"{number_ratio(by)}x {'higher' if ratio > 1 else 'lower'}"
    faster = (ratio > 1) is (direction is Better.HIGHER)
    return f"{number_ratio(by)}x {'faster' if faster else 'slower'}"


def is_speed(unit: str) -> bool:
    """Return whether figures of a unit say how fast something is: shares and memory do not."""
    return unit not in NO_SPEED


def in_unit(quantity: str, unit: str) -> str:
    """`latency in us`, or the bare name: an application's figure may have no unit."""
    return f"{quantity} in {unit}" if unit else quantity


def better(direction: Better) -> str:
    return "lower is better" if direction is Better.LOWER else "higher is better"


def crossings(group: CellGroup, baseline: str, direction: Better) -> dict[int, str]:
    """Return who is ahead from the size of each crossover on, by the ratio at that size."""
    at = {cell.size: cell for cell in group.cells}
    return {
        s: group.configuration if is_ahead(at[s], direction) else baseline
        for s in group.crossovers
        if s in at
    }


def crossing_steps(changes: Mapping[int, str], baseline: str, most: int = 4) -> str:
    """Write `the baseline is ahead from 1 KiB, it is ahead from 64 KiB and 2 more`."""
    steps = [
        f"{'the baseline' if ahead == baseline else 'it'} is ahead from {size(at)}"
        for at, ahead in changes.items()
    ]
    return join_some(steps, most, ", ")


def no_verdict_reason(group: CellGroup) -> str:
    """Return why a curve has no verdict; empty where it has one."""
    return reason.sentence if (reason := reason_of(group)) else ""


def curve_note(group: CellGroup) -> str:
    """Describe what the sign of a curve does not say: why it has no verdict, or how far a size
    may be from equal. Else empty."""
    return no_verdict_reason(group) or size_bound(group)


def brief_note(group: CellGroup) -> str:
    """Write the same where the curve's ratio and interval are shown beside it."""
    reason = reason_of(group)
    return reason.brief if reason else size_bound(group)


def bracketed_note(group: CellGroup) -> str:
    """Write the same in brackets, to follow the verdict."""
    return f" ({note})" if (note := curve_note(group)) else ""


def curve_notes(groups: Sequence[CellGroup]) -> list[str]:
    """Give the notes of curves that are shown together, each once, after the names of those that
    have it; without names where all have it."""
    names: dict[str, dict[str, None]] = {}
    for group in groups:
        if note := curve_note(group):
            names.setdefault(note, {})[printable(group.configuration)] = None
    if len(names) == 1 and all(map(curve_note, groups)):
        return list(names)
    return [f"{join_some(list(own), NAMED, ', ')}: {note}" for note, own in names.items()]


def lanes(ran: str) -> str:
    """`p2p ucx, collective ucx; nothing shows what carried one-sided`: of a label of lanes, what is
    known first."""
    parts = ran.split(", ")
    unknown = [kind for part in parts if (kind := part.removesuffix(" not known")) != part]
    known = [part for part in parts if not part.endswith(" not known")]
    if not unknown or not known:
        return ran
    return f"{', '.join(known)}; nothing shows what carried {' or '.join(unknown)}"


def unlike_sizes(groups: Sequence[CellGroup]) -> str:
    """Say which ratios of curves that are shown together lack sizes, and give those of all over
    the sizes that all have; empty where none lacks one."""
    every = {cell.size for group in groups for cell in group.cells}
    names = {group.configuration: printable(group.configuration) for group in groups}
    fewer = [group for group in groups if len(group.used_sizes) < len(every)]
    if not fewer:
        return ""
    lacking = [f"{names[g.configuration]} {len(g.used_sizes)}" for g in fewer]
    text = f"ratios over fewer than the {len(every)} sizes: {join_some(lacking, NAMED, ', ')}"
    if len(groups) == 1:
        return text
    if not (common := common_sizes(groups)):
        return f"{text}; no size is in all"
    same = [f"{names[g.configuration]} {number_ratio(g.ratio_over(common))}" for g in groups]
    span = f"{counted(len(common), 'size')} that all have ({size_span(common)})"
    return f"{text}; over the {span}: {join_some(same, NAMED, ', ')}"


def is_ahead(cell: Cell, direction: Better) -> bool:
    """Return whether the configuration's value is the better one, verdict or not."""
    return cell.ratio < 1 if direction is Better.LOWER else cell.ratio > 1

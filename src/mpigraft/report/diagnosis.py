"""What a diagnosis says, in one screen or as a document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypedDict

from mpigraft.core.numbers import counted
from mpigraft.core.text import join_some, printable
from mpigraft.report.screen import LINES, Screen, folded, shorten
from mpigraft.report.table import Line

if TYPE_CHECKING:
    from mpigraft.advice import Diagnosis, Examined
    from mpigraft.knowledge import Certainty

INDENT = 4
SHOWN = 3  # curves, outputs or MPIs that a finding names
STYLES = {"measured": "bold red", "matches": "yellow", "possible": "dim"}
MEANINGS = (
    "measured: the values themselves are the fault",
    "matches: only this issue is known to look like that",
    "possible: it fits, and so may other causes",
)


class SeenDocument(TypedDict):
    """What an issue was detected by."""

    of: str  # the file, the MPI or the curve
    kind: str  # text, version, fact, curve, ratio or profile
    message: str


class DiagnosedDocument(TypedDict):
    """A known issue that something examined shows."""

    id: str
    sure: Certainty
    seen: list[SeenDocument]  # the clearest first
    symptom: str
    affects: str
    cause: str
    fix: str
    setting: str  # an option to paste; empty: no variable mends it
    confirm: str  # a command that confirms or refutes it
    sources: Sequence[str]


class DiagnosisDocument(TypedDict):
    """Known issues that explain what was examined, the surest first."""

    curves: int
    outputs: int
    machines: int
    profiles: int
    findings: list[DiagnosedDocument]


def diagnosis_document(examined: Examined, found: Sequence[Diagnosis]) -> DiagnosisDocument:
    return {
        "curves": len(examined.curves),
        "outputs": len(examined.outputs),
        "machines": len(examined.machines),
        "profiles": len(examined.profiles),
        "findings": [_document(one) for one in found],
    }


def _document(one: Diagnosis) -> DiagnosedDocument:
    issue = one.issue
    return {
        "id": issue.id,
        "sure": one.sure,
        "seen": [{"of": m.of, "kind": m.kind, "message": m.message} for m in one.matches],
        "symptom": issue.symptom,
        "affects": issue.affects,
        "cause": issue.cause,
        "fix": issue.fix,
        "setting": one.setting,
        "confirm": one.confirm,
        "sources": issue.sources,
    }


def diagnosis_screen(
    examined: Examined, found: Sequence[Diagnosis], width: int, *, full: bool
) -> Screen:
    """Describe the surest issues, as many as a screen has room for, and name the others."""
    lines: list[Line] = []
    for number, one in enumerate(found):
        part = [*_described(one, width, full=full)]
        room = len(lines) + len(part) + len(found) - number - 1 <= LINES
        if full or not number or room:
            lines += part
        else:
            head = f"{one.sure:9} {one.issue.id}: {printable(one.issue.symptom)}"
            lines.append([(shorten(head, width), STYLES[one.sure])])
    rest = ["--full: every issue with its cause, command, fix and sources"]
    return Screen(_answer(examined, found), lines, (), [*MEANINGS, *rest] if found else ())


def _answer(examined: Examined, found: Sequence[Diagnosis]) -> list[str]:
    parts = (
        (len(examined.curves), "curve"),
        (len(examined.outputs), "output"),
        (len(examined.machines), "machine"),
        (len(examined.profiles), "profile"),
    )
    what = join_some([counted(number, name) for number, name in parts if number], len(parts), ", ")
    if not found:
        return [f"No known issue was found in {what or 'a campaign without values'}."]
    counts = Counter(one.sure for one in found)
    kinds = ", ".join(f"{number} {sure}" for sure, number in counts.items())
    return [f"{counted(len(found), 'known issue')} in {what}: {kinds}."]


def _described(one: Diagnosis, width: int, *, full: bool) -> Iterator[Line]:
    issue, matches = one.issue, one.matches
    head = f"{one.sure:9} {issue.id}: {printable(issue.symptom)}"
    yield from folded(head, width, STYLES[one.sure], INDENT)
    kept = matches if full else matches[:1]
    for match in kept:
        yield from _labelled("seen", f"{match.of}: {match.message}", width)
    if len(kept) < len(matches):
        others = dict.fromkeys(match.of for match in matches[1:])
        yield from _labelled("also in", join_some([*others], SHOWN, "; "), width)
    yield from _labelled("cause", issue.cause, width)
    yield [(f"  confirm: {printable(one.confirm)}", "")]
    yield from _labelled("fix", issue.fix, width)
    if one.setting:
        yield [(f"    {printable(one.setting)}", "")]
    yield from _labelled("sources", "; ".join(issue.sources), width)


def _labelled(label: str, text: str, width: int) -> Iterator[Line]:
    for line in folded(f"{label}: {printable(text)}", width - 2):
        yield [("  ", ""), *line]

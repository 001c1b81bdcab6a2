"""Which known issues an output or a machine shows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from mpigraft.core.model import Machine, Transport
from mpigraft.core.serialize import plain
from mpigraft.knowledge import (
    Facts,
    IssueMatch,
    KnownIssue,
    MachineFact,
    known_issues,
    transport_rows,
    why_excluded,
)

WIDEST = 200  # characters of a text that a message quotes
NAMES = ("name", "id", "vendor", "kind")  # keys by which a part of a place names a row


def matching_issues(output: str, transport: Transport | None) -> tuple[KnownIssue, ...]:
    """Find known issues whose text is in a failed launch's output, those of the transport first.

    An issue without a text never matches: it would be offered for every failure. One that rows
    name, but not the transport's own, is left out: it is about another transport or version.
    """
    own = transport.issues if transport else ()
    named = {issue for row in transport_rows() for issue in row.issues}
    hits = [
        issue
        for issue in known_issues()
        if (issue.id in own or issue.id not in named)
        and issue.detect.text
        and issue.detect.text.search(output)
    ]
    return tuple(sorted(hits, key=lambda i: own.index(i.id) if i.id in own else len(own)))


def issues_in_output(output: str, of: str) -> tuple[IssueMatch, ...]:
    """Find the issues whose text is in an output of unknown transport, with its last line."""
    found = []
    for issue in known_issues():
        hit = issue.detect.text.search(output) if issue.detect.text else None
        if hit:
            start = output.rfind("\n", 0, max(hit.end() - 1, 0)) + 1
            line = " ".join(output[start : start + 2 * WIDEST].partition("\n")[0].split())
            found.append(IssueMatch(issue, "text", f"it printed {line[:WIDEST]!r}", of))
    return tuple(found)


def issues_of_machine(machine: Machine) -> tuple[IssueMatch, ...]:
    """Find the issues that are known of the MPIs of a machine, and of its facts."""
    facts, document = Facts.of(machine), plain(machine, shown=True)
    return tuple(
        match for issue in known_issues() for match in _of_machine(issue, machine, facts, document)
    )


def _of_machine(
    issue: KnownIssue, machine: Machine, facts: Facts, document: Mapping[str, Any]
) -> Iterator[IssueMatch]:
    version, fact = issue.detect.version, issue.detect.fact
    text = next(fact_texts(fact, document), "") if fact else ""
    if (not version and not fact) or (fact and not text):
        return
    if not version:
        yield IssueMatch(issue, "fact", text, machine.hostname)
        return
    hits = [
        mpi
        for mpi in machine.mpis
        if mpi.usable
        and (not version.families or mpi.family in version.families)
        and not why_excluded(version, mpi, facts)
    ]
    if hits:
        names = f"{machine.hostname}: {', '.join(mpi.id for mpi in hits)}"
        kind = "fact" if fact else "version"
        yield IssueMatch(issue, kind, "; ".join(filter(None, (issue.affects, text))), names)


def fact_texts(fact: MachineFact, document: Mapping[str, Any]) -> Iterator[str]:
    """Yield each text at the place of a fact that is like it says, with the place."""
    for place, value in _at(fact.at.split("."), document, ()):
        if fact.like.search(str(value)):
            yield f"{'.'.join(place)}: {value}" if value else f"{'.'.join(place)} is empty"


def _at(
    parts: Sequence[str], value: Any, above: tuple[str, ...]
) -> Iterable[tuple[tuple[str, ...], Any]]:
    if not parts:
        return [] if isinstance(value, (dict, list)) else [(above, value)]
    first, rest = parts[0], parts[1:]
    rows: list[tuple[str, Any]] = []
    if isinstance(value, dict):
        rows = [(key, inner) for key, inner in value.items() if first in ("*", key)]
    elif isinstance(value, list):
        named = [(_name(inner, number), inner) for number, inner in enumerate(value)]
        rows = [(name, inner) for name, inner in named if first in ("*", name)]
    return [hit for name, inner in rows for hit in _at(rest, inner, (*above, name))]


def _name(row: Any, number: int) -> str:
    keys = NAMES if isinstance(row, dict) else ()
    return str(next((row[key] for key in keys if row.get(key)), number))

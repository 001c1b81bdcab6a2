"""Variables of MPIs, who set which, and how two MPIs differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from mpigraft.core.text import fold, labelled

if TYPE_CHECKING:
    from mpigraft.core.model import Finding
    from mpigraft.core.serialize import Keys
    from mpigraft.evidence import Answer, Value, Variable, VariableEntry

    VariableKeys = Annotated[
        dict[str, Any],
        Variable,
        VariableEntry,
        Keys("variable", "number", "text", "sort", "after"),
        Keys(description=str, after_init=Value, **{"class": str}),
    ]


class SpawnRow(TypedDict):
    """What is known about MPI_Comm_spawn under a launcher."""

    launcher: str
    pmi: str  # empty: what the launcher offers
    works: bool
    message: str
    fix: str


class MpiVariables(TypedDict):
    """The variables of an MPI."""

    id: str
    version: str  # first line of MPI_Get_library_version
    variables: list[VariableKeys]
    spawn: list[SpawnRow]
    findings: Sequence[Finding]


class VariablesDocument(TypedDict):
    """The variables that MPIs list through MPI_T."""

    mpis: list[MpiVariables]  # those requested; with --diff its two, in order


MOST_CATEGORIES = 12  # that a summary names; the rest are counted
EMPTY = "(empty)"
LABEL = 15  # columns of a line's first word


def variable_summary(answer: Answer, width: int) -> Iterator[str]:
    """Describe how many there are, what was set, and where to look further."""
    yield from _title(answer, width)
    for kind in ("control", "performance"):
        ours = [e for e in answer.entries if e.variable.kind == kind]
        before = sum("before" in e.listed for e in ours)
        after = sum("after" in e.listed for e in ours)
        yield f"  {kind:12} {before} before MPI_Init, {after} after it"
    changed = [e for e in answer.entries if e.differs or e.set_by]
    if not changed:
        yield f"  {'set':12} none; all have their defaults"
    for n, entry in enumerate(changed):
        yield from labelled("" if n else "  set", _change(entry), width, LABEL)
    counts = Counter(c for e in answer.entries for c in e.variable.categories)
    named = [f"{name} ({n})" for name, n in counts.most_common(MOST_CATEGORIES)]
    more = len(counts) - len(named)
    yield from labelled(
        "  categories", ", ".join(named) + (f", {more} more" if more > 0 else ""), width, LABEL
    )
    for n, known in enumerate(answer.spawn):
        yield from labelled("" if n else "  spawn", known.summary, width, LABEL)
    yield from _notes(answer, width)


def _change(entry: VariableEntry) -> str:
    one = entry.variable
    default = "" if entry.default is None else f"default {one.word(entry.default) or EMPTY}"
    value = one.word(entry.value)
    sources = "; ".join(
        s.source if s.value in (value, str(entry.value)) else f"{s.source}: {s.value or EMPTY}"
        for s in entry.set_by
    )
    text = "; ".join(filter(None, (default, sources or "the MPI itself")))
    return f"{one.name} = {value or EMPTY}  [{text}]"


def variable_blocks(answer: Answer, width: int) -> Iterator[str]:
    """Describe each variable in full."""
    yield from _title(answer, width)
    if not answer.entries:
        yield "  none has that in name, category or description"
    for entry in answer.entries:
        yield ""
        yield _change(entry) if entry.differs or entry.set_by else _plain(entry)
        one = entry.variable
        words = [one.kind, one.type, one.scope or one.sort, f"for {one.verbosity}"]
        words += [f"of a {one.binding}"] if one.binding != "none" else []
        words += [f"in {', '.join(one.categories)}"] if one.categories else []
        words += ["listed after MPI_Init only"] if entry.listed == ("after",) else []
        words += [f"after MPI_Init {one.word(entry.after) or EMPTY}"] if _later(entry) else []
        words += ["reading it ends the program"] if one.fatal else []
        yield from labelled("", "; ".join(words), width, 4)
        if one.choices:
            yield from labelled("", ", ".join(f"{n} {word}" for n, word in one.choices), width, 4)
        if one.text:
            yield from labelled("", one.text, width, 4)
    yield from _notes(answer, width)


def _title(answer: Answer, width: int) -> Iterator[str]:
    version = " ".join(answer.version.split())
    yield from fold(f"{answer.mpi}  {version}", rest=4, width=width)


def _plain(entry: VariableEntry) -> str:
    return f"{entry.variable.name} = {entry.variable.word(entry.value) or EMPTY}"


def _later(entry: VariableEntry) -> bool:
    return "before" in entry.listed and entry.after not in (None, entry.value)


def _notes(answer: Answer, width: int) -> Iterator[str]:
    for finding in answer.findings:
        parts = [finding.message, finding.why, finding.fix]
        yield from labelled(f"  {finding.level}", "; ".join(filter(None, parts)), width, LABEL)


def variable_differences(one: Answer, other: Answer, width: int) -> Iterator[str]:
    """Describe what one of two MPIs has alone, and what both have with another value."""
    first = {e.variable.key: e for e in one.entries}
    second = {e.variable.key: e for e in other.entries}
    for own, names in ((one, first.keys() - second.keys()), (other, second.keys() - first.keys())):
        yield f"only in {own.mpi}: {len(names)}"
        if names:
            yield from labelled("", " ".join(sorted(name for _, name, _ in names)), width, 4)
    both = [key for key in first if key in second]
    changed = [key for key in both if first[key].value != second[key].value]
    yield f"in both: {len(both)}, with another value: {len(changed)}"
    for key in changed:
        values = [e.variable.word(e.value) or EMPTY for e in (first[key], second[key])]
        yield from labelled("", f"{key[1]}: {values[0]} -> {values[1]}", width, 4)


def variables_document(answers: Iterable[Answer]) -> str:
    """Make the document of schemas/vars.json."""
    from mpigraft.core.serialize import document

    return document(**VariablesDocument(mpis=[_mpi(answer) for answer in answers]))


def _mpi(answer: Answer) -> MpiVariables:
    from mpigraft.core.serialize import row_of

    variables = [_row(entry) for entry in answer.entries]
    spawn = [row_of(SpawnRow, row) for row in answer.spawn]
    return row_of(MpiVariables, answer, id=answer.mpi, variables=variables, spawn=spawn)


def _row(entry: VariableEntry) -> VariableKeys:
    from mpigraft.core.serialize import plain

    own = plain(entry, shown=True)
    row: VariableKeys = own.pop("variable") | own
    del row["number"]
    for ours, name in (("text", "description"), ("sort", "class"), ("after", "after_init")):
        row[name] = row.pop(ours)
    return row

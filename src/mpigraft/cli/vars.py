"""`mpigraft vars`: the variables of MPIs, who set which, and how two MPIs differ."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from mpigraft.cli.common import Environment, Json, console, option, out, tell
from mpigraft.core.errors import MpigraftError, UsageError
from mpigraft.core.text import fold, labelled

if TYPE_CHECKING:
    from mpigraft.core.model import Machine, MpiInstall
    from mpigraft.tuning import Answer, Entry

Words = list[str] | None
MOST_CATEGORIES = 12  # that a summary names; the rest are counted
EMPTY = "(empty)"
LABEL = 15  # columns of a line's first word
WORKERS = 4  # an MPI that starts waits more than it computes


def command(
    mpi: Annotated[
        Words, option("NAME", "MPI to query: openmpi, mpich@5, a path; repeatable.", "all")
    ] = None,
    transport: Annotated[
        str, option("NAME", "Add the settings of this transport: ofi-lnx, ob1-sm.")
    ] = "",
    env: Environment = None,
    filter_: Annotated[
        str | None,
        option(
            "TEXT",
            "Show variables with this in name, category or description; '' for all.",
            "a summary",
            "--filter",
        ),
    ] = None,
    diff: Annotated[
        tuple[str, str] | None, option("A B", "Show how the variables of two MPIs differ.")
    ] = None,
    native_build: Annotated[
        str, option("HOW", "prebuilt: use the program of this package; mpicc: build it here.")
    ] = "prebuilt",
    as_json: Json = False,
) -> None:
    """Show the control and performance variables of MPIs (MPI_T).

    Each variable is shown with its value, its default and what set it. A program that runs as a
    single rank reads them from each MPI, before and after MPI_Init.

    \b
    Examples:
      mpigraft vars --mpi openmpi@5 --transport ob1-sm
      mpigraft vars --mpi mpich --filter eager
      mpigraft vars --diff openmpi@4 openmpi@5 --filter btl_tcp
    """
    from mpigraft.core.env import redact
    from mpigraft.discovery import discover_machine, with_places

    if diff and mpi:
        raise UsageError.of("diff-excludes-mpi")
    with console(stderr=True).status("reading variables"):
        machine = with_places(discover_machine(), diff or mpi or ())
        if diff:
            answers = _pair(machine, diff, transport, env or (), native_build)
        else:
            answers = _answers(machine, mpi or (), transport, env or (), native_build)
    chosen = [replace(a, entries=tuple(matching(a.entries, filter_ or ""))) for a in answers]
    width = min(100, shutil.get_terminal_size((80, 24)).columns)
    if as_json:
        from mpigraft.core.serialize import document

        text = document(mpis=[as_row(answer) for answer in chosen])
    elif diff:
        text = "\n".join(differences(chosen[0], chosen[1], width))
    else:
        shown = summary if filter_ is None else blocks
        text = "\n\n".join("\n".join(shown(answer, width)) for answer in chosen)
    out(redact(text))


# ------------------------------------------------------------------ asking


def _answers(
    machine: Machine, specs: Sequence[str], transport: str, words: Sequence[str], build: str
) -> list[Answer]:
    """Of each MPI; one that was not named may refuse, as long as another answers."""
    from concurrent.futures import ThreadPoolExecutor

    from mpigraft.selection import select_mpis

    def query(mpi: MpiInstall) -> Answer | MpigraftError:
        try:
            return _answer(machine, mpi, transport, words, build)
        except MpigraftError as error:
            return error

    with ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(query, select_mpis(specs, machine.mpis)))
    refused = [one for one in results if isinstance(one, MpigraftError)]
    answers = [one for one in results if not isinstance(one, MpigraftError)]
    if refused and (specs or not answers):
        raise refused[0]
    for error in refused:
        tell(f"mpigraft: left out: {error.message}")
    return answers


def _pair(
    machine: Machine, specs: tuple[str, str], transport: str, words: Sequence[str], build: str
) -> list[Answer]:
    from mpigraft.selection import select_mpis

    chosen: list[MpiInstall] = []
    for spec in specs:
        hits = select_mpis((spec,), machine.mpis)
        if len(hits) > 1:
            names = ", ".join(m.id for m in hits)
            raise UsageError.of("diff-ambiguous", spec=spec, names=names)
        chosen += hits
    return [_answer(machine, mpi, transport, words, build) for mpi in chosen]


def _answer(
    machine: Machine, mpi: MpiInstall, transport: str, words: Sequence[str], build: str
) -> Answer:
    from mpigraft.native import VARS, choose_tool
    from mpigraft.tuning import answer_variables, variable_asker, variable_rows

    rows, dropped = variable_rows(mpi, machine, transport, words, os.environ)
    program = choose_tool(VARS, mpi, machine.cpu.architecture, build)
    answer = answer_variables(mpi, rows, variable_asker(program, mpi, os.environ))
    return replace(answer, findings=(*dropped, *answer.findings))


def matching(entries: Sequence[Entry], text: str) -> Iterator[Entry]:
    """Entries with `text` in name, category or description, in any case; all for an empty one."""
    wanted = text.casefold()
    for entry in entries:
        one = entry.variable
        if any(wanted in word.casefold() for word in (one.name, one.text, *one.categories)):
            yield entry


# ------------------------------------------------------------------ for a person


def summary(answer: Answer, width: int) -> Iterator[str]:
    """How many there are, what was set, and where to look further."""
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


def _change(entry: Entry) -> str:
    one = entry.variable
    default = "" if entry.default is None else f"default {one.word(entry.default) or EMPTY}"
    value = one.word(entry.value)
    sources = "; ".join(
        s.source if s.value in (value, str(entry.value)) else f"{s.source}: {s.value or EMPTY}"
        for s in entry.set_by
    )
    text = "; ".join(filter(None, (default, sources or "the MPI itself")))
    return f"{one.name} = {value or EMPTY}  [{text}]"


def blocks(answer: Answer, width: int) -> Iterator[str]:
    """Each variable in full."""
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


def _plain(entry: Entry) -> str:
    return f"{entry.variable.name} = {entry.variable.word(entry.value) or EMPTY}"


def _later(entry: Entry) -> bool:
    return "before" in entry.listed and entry.after not in (None, entry.value)


def _notes(answer: Answer, width: int) -> Iterator[str]:
    for finding in answer.findings:
        parts = [finding.message, finding.why, finding.fix]
        yield from labelled(f"  {finding.level}", "; ".join(filter(None, parts)), width, LABEL)


def differences(one: Answer, other: Answer, width: int) -> Iterator[str]:
    """What only one of two MPIs has, and what both have with another value."""
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


# ------------------------------------------------------------------ for other tools


def as_row(answer: Answer) -> dict[str, Any]:
    """An MPI as report/schemas/vars.json has it."""
    from mpigraft.core.serialize import plain

    return {
        "id": answer.mpi,
        "version": answer.version,
        "variables": [_row(entry) for entry in answer.entries],
        "spawn": [
            {key: getattr(row, key) for key in ("launcher", "pmi", "works", "message", "fix")}
            for row in answer.spawn
        ],
        "findings": plain(answer.findings),
    }


def _row(entry: Entry) -> dict[str, Any]:
    from mpigraft.core.serialize import plain

    own = plain(entry)
    row = own.pop("variable") | own
    del row["number"]
    for ours, name in (("text", "description"), ("sort", "class"), ("after", "after_init")):
        row[name] = row.pop(ours)
    return {**row, "choices": {str(number): word for number, word in entry.variable.choices}}

"""`mpigraft vars`: the variables of MPIs, who set which, and how two MPIs differ."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpigraft.cli.common import console, out, tell
from mpigraft.errors import MpigraftError, UsageError

if TYPE_CHECKING:
    from mpigraft.model import Machine, MpiInstall
    from mpigraft.vars import Answer, Entry

Words = list[str] | None
MOST_CATEGORIES = 12  # that a summary names; the rest are counted
EMPTY = "(empty)"
WORKERS = 4  # an MPI that starts waits more than it computes


def command(
    mpi: Annotated[
        Words,
        typer.Option(metavar="NAME", help="An MPI: openmpi, mpich@5.0.2.", show_default="all"),
    ] = None,
    transport: Annotated[
        str, typer.Option(metavar="NAME", help="With what a transport sets: ofi-lnx, ob1-sm.")
    ] = "",
    set_: Annotated[
        Words, typer.Option("--set", metavar="NAME=VALUE", help="With this in the environment.")
    ] = None,
    filter_: Annotated[
        str | None,
        typer.Option(
            "--filter",
            metavar="TEXT",
            help="Variables with this in name, category or description; '' for all of them.",
            show_default="a summary",
        ),
    ] = None,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="A B", help="How the variables of two MPIs differ."),
    ] = None,
    native_build: Annotated[
        str, typer.Option(metavar="HOW", help="prebuilt, or mpicc: with the MPI's own wrapper.")
    ] = "prebuilt",
    as_json: Annotated[bool, typer.Option("--json", help="A document for other tools.")] = False,
) -> None:
    """Show the control and performance variables of MPIs, by MPI_T.

    Each with its value, its default and who set it. Each MPI is asked by a program that starts
    alone, before and after MPI_Init.

    \b
    Examples:
      mpigraft vars --mpi openmpi@5 --transport ob1-sm
      mpigraft vars --mpi mpich --filter eager
      mpigraft vars --diff openmpi@4 openmpi@5 --filter btl_tcp
    """
    from mpigraft import discover, env

    if diff and mpi:
        raise UsageError("--diff names its two MPIs itself", mend="leave --mpi out")
    with console(stderr=True).status("asking each MPI"):
        machine = discover.machine()
        if diff:
            answers = _pair(machine, diff, transport, set_ or (), native_build)
        else:
            answers = _answers(machine, mpi or (), transport, set_ or (), native_build)
    chosen = [replace(a, entries=tuple(matching(a.entries, filter_ or ""))) for a in answers]
    width = min(100, shutil.get_terminal_size((80, 24)).columns)
    if as_json:
        from mpigraft.jsonout import document

        text = document(mpis=[as_row(answer) for answer in chosen])
    elif diff:
        text = "\n".join(differences(chosen[0], chosen[1], width))
    else:
        shown = summary if filter_ is None else blocks
        text = "\n\n".join("\n".join(shown(answer, width)) for answer in chosen)
    out(env.redact(text))


# ------------------------------------------------------------------ asking


def _answers(
    machine: Machine, specs: Sequence[str], transport: str, words: Sequence[str], build: str
) -> list[Answer]:
    """Of each MPI; one that was not named may refuse, as long as another answers."""
    from concurrent.futures import ThreadPoolExecutor

    from mpigraft.configure import select_mpis

    def ask(mpi: MpiInstall) -> Answer | MpigraftError:
        try:
            return _answer(machine, mpi, transport, words, build)
        except MpigraftError as error:
            return error

    with ThreadPoolExecutor(WORKERS) as pool:
        told = list(pool.map(ask, select_mpis(specs, machine.mpis)))
    refused = [one for one in told if isinstance(one, MpigraftError)]
    found = [one for one in told if not isinstance(one, MpigraftError)]
    if refused and (specs or not found):
        raise refused[0]
    for error in refused:
        tell(f"mpigraft: left out: {error.seen}")
    return found


def _pair(
    machine: Machine, specs: tuple[str, str], transport: str, words: Sequence[str], build: str
) -> list[Answer]:
    from mpigraft.configure import select_mpis

    chosen: list[MpiInstall] = []
    for spec in specs:
        hits = select_mpis((spec,), machine.mpis)
        if len(hits) > 1:
            names = ", ".join(m.id for m in hits)
            raise UsageError(f"--diff: {spec!r} means several MPIs", mend=f"name one of: {names}")
        chosen += hits
    return [_answer(machine, mpi, transport, words, build) for mpi in chosen]


def _answer(
    machine: Machine, mpi: MpiInstall, transport: str, words: Sequence[str], build: str
) -> Answer:
    from mpigraft import natives, vars

    rows, dropped = vars.settings(mpi, machine, transport, words, os.environ)
    program = natives.tool(natives.VARS, mpi, machine.cpu.architecture, build)
    found = vars.answer(mpi, rows, vars.asker(program, mpi, os.environ))
    return replace(found, findings=(*dropped, *found.findings))


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
        yield from _wrapped("set" if n == 0 else "", _change(entry), width)
    counts = Counter(c for e in answer.entries for c in e.variable.categories)
    named = [f"{name} ({n})" for name, n in counts.most_common(MOST_CATEGORIES)]
    more = len(counts) - len(named)
    yield from _wrapped(
        "categories", ", ".join(named) + (f", {more} more" if more > 0 else ""), width
    )
    for n, known in enumerate(answer.spawn):
        yield from _wrapped("" if n else "spawn", known.told, width)
    yield from _notes(answer, width)


def _change(entry: Entry) -> str:
    one = entry.variable
    default = "" if entry.default is None else f"default {one.word(entry.default) or EMPTY}"
    value = one.word(entry.value)
    who = "; ".join(
        s.source if s.value in (value, str(entry.value)) else f"{s.source}: {s.value or EMPTY}"
        for s in entry.set_by
    )
    told = "; ".join(filter(None, (default, who or "the MPI itself")))
    return f"{one.name} = {value or EMPTY}  [{told}]"


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
        words += ["who reads it dies"] if one.fatal else []
        yield from _indented("; ".join(words), width)
        if one.choices:
            yield from _indented(", ".join(f"{n} {word}" for n, word in one.choices), width)
        if one.text:
            yield from _indented(one.text, width)
    yield from _notes(answer, width)


def _title(answer: Answer, width: int) -> Iterator[str]:
    said = " ".join(answer.version.split())
    yield from textwrap.wrap(f"{answer.mpi}  {said}", width, subsequent_indent=" " * 4)


def _plain(entry: Entry) -> str:
    return f"{entry.variable.name} = {entry.variable.word(entry.value) or EMPTY}"


def _later(entry: Entry) -> bool:
    return "before" in entry.listed and entry.after not in (None, entry.value)


def _notes(answer: Answer, width: int) -> Iterator[str]:
    for finding in answer.findings:
        parts = [finding.seen, finding.why, finding.mend]
        yield from _wrapped(str(finding.level), "; ".join(filter(None, parts)), width)


def differences(one: Answer, other: Answer, width: int) -> Iterator[str]:
    """What only one of two MPIs has, and what both have with another value."""
    ours = {e.variable.key: e for e in one.entries}
    theirs = {e.variable.key: e for e in other.entries}
    for mine, names in ((one, ours.keys() - theirs.keys()), (other, theirs.keys() - ours.keys())):
        yield f"only in {mine.mpi}: {len(names)}"
        if names:
            yield from _indented(" ".join(sorted(name for _, name, _ in names)), width)
    both = [key for key in ours if key in theirs]
    changed = [key for key in both if ours[key].value != theirs[key].value]
    yield f"in both: {len(both)}, with another value: {len(changed)}"
    for key in changed:
        values = [e.variable.word(e.value) or EMPTY for e in (ours[key], theirs[key])]
        yield from _indented(f"{key[1]}: {values[0]} -> {values[1]}", width)


def _wrapped(label: str, text: str, width: int) -> Iterator[str]:
    yield from textwrap.wrap(
        text,
        width,
        initial_indent=f"  {label:12} ",
        subsequent_indent=" " * 17,
        break_on_hyphens=False,
        break_long_words=False,
    )


def _indented(text: str, width: int) -> Iterator[str]:
    indent = " " * 4
    yield from textwrap.wrap(
        text,
        width,
        initial_indent=indent,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )


# ------------------------------------------------------------------ for other tools


def as_row(answer: Answer) -> dict[str, Any]:
    """An MPI as schemas/vars.json has it."""
    from mpigraft.jsonout import plain

    return {
        "id": answer.mpi,
        "version": answer.version,
        "variables": [_row(entry) for entry in answer.entries],
        "spawn": [
            {key: getattr(row, key) for key in ("launcher", "pmi", "works", "seen", "mend")}
            for row in answer.spawn
        ],
        "findings": plain(answer.findings),
    }


def _row(entry: Entry) -> dict[str, Any]:
    from mpigraft.jsonout import plain

    one = entry.variable
    row: dict[str, Any] = {
        "kind": one.kind,
        "name": one.name,
        "type": one.type,
        "value": entry.value,
        "default": entry.default,
        "after_init": entry.after,
        "differs": entry.differs,
        "set_by": entry.set_by,
        "listed": entry.listed,
        "scope": one.scope,
        "class": one.sort,
        "binding": one.binding,
        "verbosity": one.verbosity,
        "categories": one.categories,
        "choices": {str(number): word for number, word in one.choices},
        "fatal": one.fatal,
        "description": one.text,
    }
    return {key: plain(value) for key, value in row.items()}

"""`mpigraft vars`: the variables of MPIs, who set which, and how two MPIs differ."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from mpigraft.cli.common import Json, console, option, out, tell
from mpigraft.cli.options import row_of, takes_request
from mpigraft.core.errors import MpigraftError, UsageError
from mpigraft.core.text import columns, did_you_mean
from mpigraft.report import (
    variable_blocks,
    variable_differences,
    variable_summary,
    variables_document,
)
from mpigraft.request import Asked, CampaignSpec, RunSpec

if TYPE_CHECKING:
    from mpigraft.core.model import Machine, MpiInstall
    from mpigraft.evidence import Answer, VariableEntry

BUILD = "prebuilt: use the program of this package; mpicc: build it here."
WORKERS = 4  # an MPI that starts waits more than it computes


@takes_request(
    only=("transport", "env", "setting"),
    usual={"transport": True},
    texts={"transport": "Add the settings of this transport: ofi-lnx, ob1-sm."},
)
def command(
    *,
    mpi: Annotated[
        list[str] | None,
        row_of(CampaignSpec, "mpi", "MPI to query: openmpi, mpich@5, a path; repeatable."),
    ] = None,
    asked: Asked[RunSpec],
    filter_: Annotated[
        str | None,
        option(
            "TEXT",
            "Show variables with this in name, category or description; '' for all.",
            "a summary",
            "--filter",
            panel="Output",
        ),
    ] = None,
    diff: Annotated[
        tuple[str, str] | None,
        option("A B", "Show how the variables of two MPIs differ.", panel="Output"),
    ] = None,
    native_build: Annotated[str, row_of(CampaignSpec, "native_build", BUILD, True)] = "prebuilt",
    as_json: Json = False,
) -> None:
    """Show the control and performance variables of MPIs (MPI_T).

    Each variable is shown with its value, its default and what set it. A program that runs as a
    single rank reads them from each MPI, before and after MPI_Init.

    \b
    Examples:
      mpigraft vars --mpi openmpi@5 --transport ob1-sm
      mpigraft vars --mpi mpich --filter eager --setting tuned.toml:big
      mpigraft vars --diff openmpi@4 openmpi@5 --filter btl_tcp
    """
    from mpigraft.core.env import redact
    from mpigraft.discovery import discover_machine, with_places
    from mpigraft.request import read_site

    if diff and mpi:
        raise UsageError.of("diff-excludes-mpi")
    spec = replace(asked.value, setting=read_site(os.environ).settings_of(asked.value))
    with console(stderr=True).status("reading variables"):
        machine = with_places(discover_machine(), diff or mpi or ())
        if diff:
            answers = _pair(machine, diff, spec, native_build)
        else:
            answers = _answers(machine, mpi or (), spec, native_build)
    chosen = [replace(a, entries=tuple(matching(a.entries, filter_ or ""))) for a in answers]
    width = columns(100)
    if as_json:
        text = variables_document(chosen)
    elif diff:
        text = "\n".join(variable_differences(chosen[0], chosen[1], width))
    else:
        shown = variable_summary if filter_ is None else variable_blocks
        text = "\n\n".join("\n".join(shown(answer, width)) for answer in chosen)
    out(redact(text))
    found = any(answer.entries for answer in chosen)
    if filter_ and not found and (near := did_you_mean(filter_, words_of(answers))):
        tell(f"mpigraft: no variable has {filter_!r}: {near.rstrip()}")


# ------------------------------------------------------------------ asking


def _answers(machine: Machine, names: Sequence[str], spec: RunSpec, build: str) -> list[Answer]:
    """Query each MPI; one that was not named may fail, as long as another answers."""
    from concurrent.futures import ThreadPoolExecutor

    from mpigraft.selection import select_mpis

    def query(mpi: MpiInstall) -> Answer | MpigraftError:
        try:
            return _answer(machine, mpi, spec, build)
        except MpigraftError as error:
            return error

    with ThreadPoolExecutor(WORKERS) as pool:
        results = list(pool.map(query, select_mpis(names, machine.mpis)))
    refused = [one for one in results if isinstance(one, MpigraftError)]
    answers = [one for one in results if not isinstance(one, MpigraftError)]
    if refused and (names or not answers):
        raise refused[0]
    for error in refused:
        tell(f"mpigraft: left out: {error.message}")
    return answers


def _pair(machine: Machine, pair: tuple[str, str], spec: RunSpec, build: str) -> list[Answer]:
    from mpigraft.selection import select_mpis

    chosen: list[MpiInstall] = []
    for name in pair:
        hits = select_mpis((name,), machine.mpis)
        if len(hits) > 1:
            names = ", ".join(m.id for m in hits)
            raise UsageError.of("diff-ambiguous", spec=name, names=names)
        chosen += hits
    return [_answer(machine, mpi, spec, build) for mpi in chosen]


def _answer(machine: Machine, mpi: MpiInstall, spec: RunSpec, build: str) -> Answer:
    from mpigraft.evidence import answer_variables, variable_asker, variable_rows
    from mpigraft.native import VARS, choose_tool

    rows, dropped = variable_rows(mpi, machine, spec, os.environ)
    program = choose_tool(VARS, mpi, machine.cpu.architecture, build)
    answer = answer_variables(mpi, rows, variable_asker(program, mpi, os.environ))
    return replace(answer, findings=(*dropped, *answer.findings))


def words_of(answers: Sequence[Answer]) -> Iterator[str]:
    """Yield what a person may look for: names, their parts, and categories."""
    for one in (entry.variable for answer in answers for entry in answer.entries):
        for name in (one.name, *one.categories):
            yield from (name, *name.split("_"))


def matching(entries: Sequence[VariableEntry], text: str) -> Iterator[VariableEntry]:
    """Entries with `text` in name, category or description, in any case; all for an empty one."""
    wanted = text.casefold()
    for entry in entries:
        one = entry.variable
        if any(wanted in word.casefold() for word in (one.name, one.text, *one.categories)):
            yield entry

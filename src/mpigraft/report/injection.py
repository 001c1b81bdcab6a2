"""What is injected into a software stack: what would be written, what is on, what was proven."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from mpigraft.core.errors import CheckFailed, MissingError
from mpigraft.core.text import join_some, labelled, printable
from mpigraft.report.stack_check import stack_check_lines

if TYPE_CHECKING:
    from mpigraft.core.model import Finding
    from mpigraft.graft import (
        GenerationRecord,
        InstalledOverride,
        OverridePlan,
        Slot,
        StackCheck,
    )
    from mpigraft.run import InjectionProof


class InjectedFile(TypedDict):
    """A file of a generation."""

    name: str
    source: str
    digest: str
    edited: bool


class OverrideRow(TypedDict):
    """What an override gets."""

    slot: Slot
    key: str  # SHA-256 over contents: what is injected again has the same
    bindings: Sequence[str]  # names by which programs find the MPI
    files: list[InjectedFile]
    links: dict[str, str]
    environment: dict[str, str | None]  # of each process that loads a copy; null: unset
    generation: GenerationRecord | None  # that is on; null for --dry-run


class OverridesDocument(TypedDict):
    """A host MPI in overrides of a stack."""

    mpi: str
    overrides: list[OverrideRow]  # as few as reach every program


class GenerationRow(TypedDict):
    """One generation of an override."""

    number: int
    on: bool
    mpi: str
    made: str  # UTC
    previous: int  # the generation that was on when it was made; 0: none
    key: str
    folder: Path


class KeptGeneration(TypedDict):
    """A generation that is not on and that --prune kept."""

    number: int
    reason: Finding


class GenerationsDocument(TypedDict):
    """The generations of an override."""

    slot: Slot
    current: int  # the generation that is on; 0: the stack's own MPI
    generations: list[GenerationRow]
    removed: Sequence[int]  # numbers that --prune removed
    kept: list[KeptGeneration]


def override_lines(plan: OverridePlan) -> Iterator[str]:
    """Describe what would be written."""
    from mpigraft.graft import read_override, refuse_unfit

    override = read_override(plan.slot)
    number = max((r.number for r in override.generations), default=0) + 1
    active = override.active
    yield from labelled("MPI", printable(plan.mpi))
    yield from labelled("override", printable(plan.slot.path))
    now = f"generation {active.number}: {active.content}" if active else "the stack's own MPI"
    yield from labelled("now", now)
    same = active is not None and active.key == plan.key
    then = f"the same; generation {override.current} stays" if same else f"generation {number}"
    yield from labelled("then", then)
    yield from labelled("found as", ", ".join(plan.bindings))
    if absent := absent_names(active, plan):
        yield from labelled("no longer", absent)
    hidden = [c for c in plan.copies if c.edit and c.name.startswith("mpi/")]
    data = [c for c in plan.copies if not c.edit]
    names = [Path(c.name).name for c in hidden]
    yield from labelled("hidden", f"{len(hidden)} libraries: {join_some(names, 6, ', ')}")
    yield from labelled("data", f"{len(data)} files")
    yield from labelled("sets", ", ".join(name for name, _ in plan.environment))
    try:
        refuse_unfit(override, plan)
    except (CheckFailed, MissingError) as error:
        yield from labelled("problem", printable(error.message))
        yield from labelled("fix", printable(error.fix))


def absent_names(active: GenerationRecord | None, plan: OverridePlan) -> str:
    """Name what programs find in the generation that is on, and in the planned one no more: an
    override holds one generation."""
    return join_some(sorted({*(active.bindings if active else ())} - {*plan.bindings}), 6, ", ")


def overrides_document(
    plans: Sequence[OverridePlan], records: Sequence[GenerationRecord | None] = ()
) -> str:
    """Make the document of schemas/inject.json."""
    from mpigraft.core.serialize import document, row_of

    rows = [
        row_of(
            OverrideRow,
            plan,
            files=[row_of(InjectedFile, copy, edited=copy.edit) for copy in plan.copies],
            links=dict(plan.links),
            environment=dict(plan.environment),
            generation=record,
        )
        for plan, record in zip_longest(plans, records)
    ]
    return document(**OverridesDocument(mpi=plans[0].mpi, overrides=rows))


def proof_lines(proof: InjectionProof, why: str) -> Iterator[str]:
    """Describe what a program proved of a generation, and `why` it was this program."""
    yield from labelled("program", printable(f"{proof.program} ({why})"))
    yield from labelled("MPI", printable(f"{proof.mpi}, generation {proof.generation}"))
    yield from labelled("mapped", printable(proof.libmpi))
    yield from labelled("version", " ".join(proof.library_version.partition("\n")[0].split()))
    alone = ", and without a launcher" if proof.alone else ""
    yield from labelled("started", f"on two ranks{alone}")
    if proof.imported:
        text = f"`import mpi4py.MPI` of {', '.join(proof.imported)}"
        yield from labelled("imported", printable(text))
    if proof.spawns:
        yield from labelled("spawned", f"MPI_Comm_spawn {' and '.join(proof.spawns)}")
    ran = proof.transport or "the MPI's own choice; --transport NAME proves one"
    yield from labelled("transport", printable(ran))


def fitting_lines(verdicts: Sequence[StackCheck]) -> Iterator[str]:
    """Describe which programs load what is injected, and in full where some do not."""
    from mpigraft.graft import Fate

    for verdict in verdicts:
        if verdict.ok:
            fits = f"{verdict.count(Fate.FITS)} load it, and nothing else differs"
            if accepted := verdict.count(Fate.ACCEPTED):
                fits += f"; {accepted} accepted by --except"
            yield from labelled("programs", fits)
        else:
            yield from ("", *stack_check_lines(verdict))


def generation_lines(
    override: InstalledOverride,
    removed: tuple[int, ...],
    kept: tuple[tuple[int, Finding], ...],
    *,
    pruned: bool,
) -> Iterator[str]:
    """Describe the generations of an override, and what was removed and kept of them."""
    active = override.active
    on = f"generation {active.number}: {active.content}" if active else "the stack's own MPI"
    yield printable(f"{override.link}: {on}")
    if pruned:
        numbers = ", ".join(map(str, removed)) or "none"
        yield f"removed generations: {numbers}"
        for _, why in kept:
            yield printable(why.message)
            yield printable(f"  {why.fix}")
    for record in override.generations:
        mark = "*" if record.number == override.current else " "
        yield printable(f"{mark} {record.number:>3}  {record.made}  {record.content}")


def generations_document(
    override: InstalledOverride, removed: tuple[int, ...], kept: tuple[tuple[int, Finding], ...]
) -> str:
    """Make the document of schemas/undo.json."""
    from mpigraft.core.serialize import document, row_of

    current, folder = override.current, override.folder
    rows = [
        row_of(GenerationRow, r, on=r.number == current, folder=folder(r.number))
        for r in override.generations
    ]
    reasons = [KeptGeneration(number=number, reason=finding) for number, finding in kept]
    own = {"generations": rows, "removed": removed, "kept": reasons}
    return document(**row_of(GenerationsDocument, override, **own))

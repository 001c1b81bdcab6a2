"""`mpigraft plan`: the host's MPI under a guest as plain data, and as commands."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import typer

from mpigraft.cli.common import (
    Words,
    chosen_form,
    console,
    examine_machine,
    flag,
    guest_and_words,
    image_of,
    option,
    out,
    tell,
    tell_image,
)
from mpigraft.cli.options import GUEST, row_of, takes_request
from mpigraft.core.errors import CheckFailed, UsageError
from mpigraft.core.write import write_whole
from mpigraft.report import graft_plan_lines, pruned_lines, stored_plans_lines
from mpigraft.request import Asked, GraftSpec, RunSpec

if TYPE_CHECKING:
    from mpigraft.core.model import GraftPlan
    from mpigraft.core.serialize import Keys
    from mpigraft.graft import GraftFolder, GraftOptions, Guest, Pruned

    PrunedDocument = Annotated[dict[str, Any], Pruned, Keys(dry_run=bool)]

FORMS = ("text", "json", "command", "shell", "cdi")
UNUSED_DAYS, MOST_DAYS = 30, 36500
KEPT = "Stored plans"


class PlanDocument(TypedDict):
    """A host MPI under a guest."""

    plan: GraftPlan
    folder: str  # the graft folder on this machine


class PlansDocument(TypedDict):
    """All plans that are stored (--list)."""

    plans: Sequence[GraftFolder]  # the one that was used last first
    disk: int  # bytes of all plans; copies that several plans have count once


@takes_request("machine")
def command(
    *,
    guest: Annotated[
        str, typer.Argument(help="The guest, without --image.", show_default=False)
    ] = "",
    image: Annotated[str, row_of(RunSpec, "image", GUEST, "none")] = "",
    words: Words = None,
    asked: Asked[GraftSpec],
    list_: Annotated[bool, flag("List the plans that are stored.", "--list", panel=KEPT)] = False,
    remove: Annotated[
        str,
        option("KEY", "Remove this plan and its files.", True, "--remove", panel=KEPT, rare=True),
    ] = "",
    prune: Annotated[
        bool,
        flag(
            "Remove plans that no job used for DAYS (the argument; 30 without it).",
            "--prune",
            panel=KEPT,
            rare=True,
        ),
    ] = False,
    dry_run: Annotated[
        bool,
        flag("With --prune: show what would be removed.", "--dry-run", panel=KEPT, rare=True),
    ] = False,
    as_json: Annotated[
        bool, flag("Same as --as json.", "--json", panel="Output", rare=True)
    ] = False,
) -> None:
    """Plan how a host MPI goes under a guest, as plain data that any launch can use.

    The guest and the host's libraries are never written to. Files of the host are copied into a
    folder of this user and bound over the files that the guest's loader would have loaded.

    \b
    Examples:
      mpigraft plan --image app.sif --mpi openmpi@5
      mpigraft plan --image app.sif --mpi mpich -- python3 solver.py
      mpigraft plan --image app.sif --mpi openmpi@5 --as shell -o app.sh
      mpigraft plan --list
      mpigraft plan --prune 7 --dry-run
    """
    form = chosen_form(asked.value.form, as_json, FORMS)
    spec = replace(asked.value, form=form)
    if dry_run and not prune:
        raise UsageError.of("dry-run-alone")
    if prune:
        out(_pruned(guest, form, dry=dry_run))
        return
    if list_ or remove:
        out(_listed(form) if list_ else _removed(remove))
        return
    guest, job_words = guest_and_words(image, guest, words)
    if not guest or not spec.mpi:
        raise UsageError.of("plan-incomplete")
    if not image:
        tell_image("plan", guest)
    from mpigraft.core.model import refuse_count
    from mpigraft.request import asked_for, read_site
    from mpigraft.selection import examine_subject

    refuse_count("--ranks-per-node", spec.ranks_per_node)
    engine = {"engine": spec.engine or None, "engine_option": spec.engine_options or None}
    site = read_site(os.environ).merged(asked_for(RunSpec, engine))
    spec = replace(
        spec, guest=image_of(guest), words=job_words,
        engine=site.engine, engine_options=site.engine_options, typed=spec.words_of("plan"),
    )  # fmt: skip
    options = spec.options
    with console(stderr=True).status("reading the guest"):
        examined = examine_subject(spec)
    plan = _planned(examined, spec.mpi, options)
    text = _as(form, plan, spec.ranks_per_node)
    if spec.output:
        _write(Path(spec.output), text, executable=form == "shell")
        tell(f"written: {spec.output}")
    elif text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        out(text, exact=True)
    else:
        raise UsageError.of("path-not-text")


def _planned(examined: Guest, spec: str, options: GraftOptions) -> GraftPlan:
    from mpigraft.graft import materialize, own_mpi_of, plan_graft
    from mpigraft.selection import fetchable_mpis, fitting_mpis, select_mpis, suggest_mpis

    here = examine_machine(mpis=[spec])
    hits = select_mpis([spec], here.mpis)
    mpi = next((m for m in hits if m.usable), hits[0])
    with console(stderr=True).status("putting it together"):
        try:
            plan = plan_graft(examined, mpi, here, options)
        except CheckFailed as no:
            fits = fitting_mpis(
                here, [mpi.id], lambda other: plan_graft(examined, other, here, options)
            )
            own = own_mpi_of(examined)
            wheels = fetchable_mpis(examined, own, here, options.replace, options.engine)
            suggest_mpis(no, fits, wheels)
            raise
        materialize(plan)
    return plan


def _as(form: str, plan: GraftPlan, ranks: int) -> str:
    from mpigraft.core.serialize import document
    from mpigraft.graft import ENGINES, engine_words, graft_folder
    from mpigraft.launch import engine_context

    folder = graft_folder(plan)
    if form == "json":
        return document(**PlanDocument(plan=plan, folder=str(folder)))
    if form == "cdi":
        import json

        from mpigraft.graft import cdi_document

        return json.dumps(cdi_document(plan, folder), indent=2)
    seat = engine_context(plan, ranks, Path.cwd())
    if form == "shell":
        from mpigraft.graft import wrapper_script

        return wrapper_script(plan, seat)
    if form == "command":
        return shlex.join(engine_words(plan, seat))
    return "\n".join(graft_plan_lines(plan, seat, ENGINES[plan.engine].shares(plan, seat)))


def _listed(form: str) -> str:
    from mpigraft.core.serialize import document
    from mpigraft.graft import disk_usage, graft_folders

    plans = sorted(graft_folders(), key=lambda one: -one.used)
    disk = disk_usage()
    if form == "json":
        return document(**PlansDocument(plans=plans, disk=disk))
    return "\n".join(stored_plans_lines(plans, disk))


def _removed(key: str) -> str:
    from mpigraft.graft import remove_graft

    return f"removed {remove_graft(key).folder}"


def _pruned(days: str, form: str, *, dry: bool) -> str:
    from mpigraft.core.serialize import document, plain
    from mpigraft.graft import prune_grafts

    try:
        limit = float(days or UNUSED_DAYS)
    except ValueError:
        limit = -1.0
    if not 0 <= limit <= MOST_DAYS:
        raise UsageError.of("days-invalid", days=days)
    done = prune_grafts(limit, dry=dry)
    if form == "json":
        return document(**plain(done, shown=True), dry_run=dry)
    return "\n".join(pruned_lines(done, limit, dry=dry))


def _write(path: Path, text: str, *, executable: bool) -> None:
    data = f"{text.rstrip(chr(10))}\n".encode("utf-8", "surrogateescape")
    try:
        write_whole(path, data, 0o755 if executable else 0o644)
    except OSError as error:
        raise UsageError.of("file-unusable", path=path, reason=error.strerror) from error

"""`mpigraft inject`: a host MPI under every program of a software stack."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace as with_fields
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli.common import (
    DryRun,
    Json,
    chosen_form,
    console,
    examine_machine,
    first_usable,
    out,
    refuse_alone,
    tell,
)
from mpigraft.cli.options import takes_request
from mpigraft.core.errors import CheckFailed, UsageError
from mpigraft.core.numbers import counted
from mpigraft.core.text import join_some
from mpigraft.report import absent_names, override_lines, overrides_document, stack_check_lines
from mpigraft.request import Asked, InjectSpec

if TYPE_CHECKING:
    from mpigraft.core.model import Machine as MachineFacts
    from mpigraft.core.model import MpiInstall
    from mpigraft.graft import ModuleFile, OverridePlan, Slot, Stack

FORMS = ("text", "json", "commands", "module", "tcl", "spack")
OF_EXTERNAL = ("module", "tcl", "spack")


@takes_request()
def command(
    *,
    stack: Annotated[str, typer.Argument(help="Folder of a software stack, or a program of it.")],
    asked: Asked[InjectSpec],
    dry_run: DryRun = False,
    as_json: Json = False,
) -> int:
    """Put a host MPI under every program of a software stack, or prove that it is there.

    Programs that were built with override folders, such as EESSI's host_injections, search them
    first. The override gets copies of the MPI as a numbered generation, switched on by renaming
    one symlink; the stack itself is not changed. `mpigraft undo` switches back.

    \b
    Examples:
      mpigraft inject /cvmfs/software.eessi.io/versions/2023.06 --mpi openmpi@5 --dry-run
      mpigraft inject ~/stack --mpi openmpi@5
      mpigraft inject ~/stack --verify --transport ofi-lnx
      mpigraft inject ~/stack --mpi openmpi@5 --as commands > inject.sh
    """
    spec = asked.value
    form = chosen_form(spec.form, as_json, FORMS)
    from mpigraft.cli.check_stack import read_named_stack, read_part
    from mpigraft.cli.verify_injection import verify_injections

    if not spec.verify:
        refuse_alone("--verify", program=spec.program, transport=spec.transport)
    if not spec.mpi and not spec.verify:
        raise UsageError.of("inject-incomplete")
    there = read_named_stack(stack)
    if there.only and spec.mpi:  # others find the override too
        there = read_named_stack(there.root)
    if not spec.mpi:
        every = [] if spec.slot else [*there.slots]
        slots = every or [choose_slot(there, spec.slot, ())]
        return verify_injections(there, slots, spec, as_json=form == "json")
    here = examine_machine(mpis=[spec.mpi])
    chosen = _mpi(spec.mpi, here)
    if form in OF_EXTERNAL:
        if read_part(spec.replace):
            raise UsageError.of("form-of-mpi", form=form, replace=spec.replace)
        out(_external(spec, there, chosen, here))
        return 0
    plans = _planned(spec, there, chosen, here)
    if form == "commands":
        out("\n".join(map(_commands, plans)))
    elif dry_run:
        text = "\n\n".join("\n".join(override_lines(plan)) for plan in plans)
        out(overrides_document(plans) if form == "json" else text)
    else:
        _inject(plans, there, form)
    if spec.verify and not dry_run and form != "commands":
        return verify_injections(there, [p.slot for p in plans], spec, as_json=False)
    return 0


def choose_slot(stack: Stack, named: str, slots: Sequence[Slot]) -> Slot:
    """Choose the override that was named, else the one of `slots` that most programs search, the
    first of equals. Raises UsageError."""
    if named:
        wanted = os.path.abspath(named)  # noqa: PTH100  links stay as programs spell them
        places = (named, wanted, os.path.dirname(wanted))  # noqa: PTH120
        hit = next((s for s in stack.slots if s.path in places), None)
        if hit is None:
            known = ", ".join(s.path for s in stack.slots) or "none"
            raise UsageError.of("slot-unknown", slot=named, known=known)
        return hit
    if not stack.programs:
        files = counted(stack.elf_files, "file")
        raise UsageError.of("stack-without-mpi", stack=stack.root, files=files)
    if not slots:
        raise UsageError.of("stack-no-override", stack=stack.root)
    return max(slots, key=lambda s: s.programs)


def _mpi(spec: str, here: MachineFacts) -> MpiInstall:
    from mpigraft.selection import select_mpis

    hits = select_mpis([spec], here.mpis)
    chosen = first_usable(hits)
    if others := [m.id for m in hits if m is not chosen]:
        tell(f"{spec}: {chosen.id} is used; this machine also has {join_some(others, 6, ', ')}")
    return chosen


def _planned(
    spec: InjectSpec, stack: Stack, mpi: MpiInstall, here: MachineFacts
) -> list[OverridePlan]:
    """Plan each override that is filled, after a check of all programs with it in place."""
    from mpigraft.cli.check_stack import files_of, progress, read_part
    from mpigraft.graft import check_stack, network_part, plan_override, read_abi
    from mpigraft.native import settings_library

    part = read_part(spec.replace)
    with console(stderr=True).status("reading the MPI"):
        abi = network_part(read_abi(mpi), part) if part else read_abi(mpi)
    slots = (choose_slot(stack, spec.slot, ()),) if spec.slot else None
    with progress(f"checking {mpi.id}") as checked:
        verdict = check_stack(stack, abi, files_of(abi), slots=slots, machine=here, checked=checked)
    if not stack.slots:
        choose_slot(stack, "", ())
    if not verdict.ok:
        tell("\n".join(stack_check_lines(verdict)))
        if not verdict.slots or not (spec.force or verdict.ok_without(spec.exceptions)):
            raise CheckFailed.of("stack-does-not-fit", mpi=mpi.id, stack=stack.root)
    settings = settings_library(mpi, abi.objects[0].machine)
    plans = [
        plan_override(abi, one, {n for p in stack.searching(one) for n in p.mpi}, settings)
        for one in verdict.slots
    ]
    paths = [(p.path, p.slot) for p in verdict.excepted(() if spec.force else spec.exceptions)]
    return [
        with_fields(plan, accepted=tuple(path for path, slot in paths if slot == plan.slot.path))
        for plan in plans
    ]


def _external(spec: InjectSpec, stack: Stack, chosen: MpiInstall, here: MachineFacts) -> str:
    """Write a module with the launcher of what is injected; where nothing can be, one that puts the
    MPI first, or Spack's external. Raises CheckFailed where the MPI does not fit."""
    from mpigraft.cli.check_stack import progress
    from mpigraft.graft import (
        check_module,
        check_splice,
        module_of_mpi,
        read_abi,
        render_module,
        render_spack,
        search_folders,
    )

    form = spec.form
    if form != "spack" and stack.slots:
        plans = _planned(spec, stack, chosen, here)
        return render_module(form, _launcher(max(plans, key=lambda plan: plan.slot.programs)))
    check = check_splice if form == "spack" else check_module
    with progress(f"checking {chosen.id}") as checked:
        verdict = check(stack, read_abi(chosen), here, checked)
    if not verdict.ok:
        tell("\n".join(stack_check_lines(verdict)))
        if not spec.force and not verdict.ok_without(spec.exceptions):
            raise CheckFailed.of("stack-does-not-fit", mpi=chosen.id, stack=stack.root)
    if form == "spack":
        return render_spack(chosen)
    return render_module(form, module_of_mpi(chosen, search_folders(chosen)))


def _launcher(plan: OverridePlan) -> ModuleFile:
    """Make the module of a launcher: it leads to that of the generation that is on, whichever."""
    from mpigraft.graft import module_of_launcher, read_override

    active = read_override(plan.slot).active
    if active is None or active.key != plan.key:
        now = active.mpi if active else "the stack's own MPI"
        tell(f"{now} is on, not {plan.mpi}: inject {plan.mpi} for the module to start it")
    return module_of_launcher(plan.slot)


def _commands(plan: OverridePlan) -> str:
    from mpigraft.graft import read_override, render_commands

    override = read_override(plan.slot)
    return render_commands(plan, override)


# ------------------------------------------------------------------ injecting


def _inject(plans: Sequence[OverridePlan], stack: Stack, form: str) -> None:
    from mpigraft.graft import read_override, switch_on

    records = []
    for plan in plans:
        override = read_override(plan.slot)
        before = override.current
        if absent := absent_names(override.active, plan):
            tell(f"{plan.slot.path}: programs no longer find {absent} of generation {before}")
        with console(stderr=True).status("making the generation"):
            record = switch_on(plan)
        records.append(record)
        if form != "json":
            programs = counted(len(stack.searching(plan.slot)), "program")
            done = "was on already" if before == record.number else "is on"
            out(f"generation {record.number} {done}: {record.content} in {plan.slot.path}")
            out(f"{programs} may search it, by {', '.join(plan.bindings)}")
    if form == "json":
        out(overrides_document(plans, records))
        return
    name = shlex.quote(stack.root)
    out(f"prove it: mpigraft inject {name} --verify")
    out(f"switch back: mpigraft undo {name}")

"""`mpigraft build`: an MPI that is built for this machine, by EasyBuild, from one plan."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli.common import examine_machine, flag, option, out, tell
from mpigraft.core.errors import UsageError

if TYPE_CHECKING:
    from mpigraft.build import BuildStep


def command(
    recipe: Annotated[
        str, typer.Argument(help="What to build: openmpi or mpich.", show_default=False)
    ],
    with_: Annotated[
        list[str] | None,
        option(
            "NAME[=VERSION]",
            "Build this package too, or in this version; repeatable.",
            "none",
            "--with",
        ),
    ] = None,
    without: Annotated[
        list[str] | None, option("NAME", "Leave this package out; repeatable.", "none", "--without")
    ] = None,
    compiler: Annotated[str, option("NAME", "gnu, llvm, cce, aocc or nvhpc.")] = "gnu",
    machine: Annotated[
        Path | None,
        option("FILE", "Plan for this machine: what `discover --json` wrote.", "this one"),
    ] = None,
    prefix: Annotated[
        Path | None, option("FOLDER", "Install below this folder.", "~/.local/mpigraft")
    ] = None,
    sources: Annotated[
        Path | None,
        option("FOLDER", "Take all sources from this folder; fetch nothing.", "fetch them"),
    ] = None,
    form: Annotated[
        str, option("FORM", "Form of the plan: text, json, easyconfigs or spack.", True, "--as")
    ] = "text",
    dry_run: Annotated[bool, flag("Print the plan; build nothing.", "--dry-run")] = False,
    as_json: Annotated[bool, flag("Same as --as json.", "--json")] = False,
) -> None:
    """Build an MPI for this machine, with all that it needs, from one plan.

    The plan says which versions go together, why each was chosen, and with which options it is
    built. EasyBuild builds the packages below --prefix; nothing outside is changed. A build that
    was cut off continues where it stopped.

    \b
    Examples:
      mpigraft build openmpi --dry-run
      mpigraft build openmpi --with libfabric=2.1.0 --sources ~/tarballs
      mpigraft build openmpi --as spack > spack.yaml
    """
    from mpigraft.build import (
        FORMS,
        BuildFolders,
        BuildRequest,
        build,
        build_host,
        plan_build,
        render_plan,
    )
    from mpigraft.knowledge.builds import packages, plan_table

    form = "json" if as_json else form
    if form not in FORMS:
        raise UsageError.of("form-unknown", form=form, forms=", ".join(FORMS))
    table = plan_table()
    request = BuildRequest(recipe, _versions(with_ or ()), frozenset(without or ()), compiler)
    facts = examine_machine(machine)
    host = build_host(
        facts.cpu.architecture, facts.fabrics, table, request.compiler, os.environ, sources
    )
    plan = plan_build(request, host, packages(), table)
    if dry_run or form != "text":
        out(render_plan(plan, form))
        return
    if facts.cpu.architecture != platform.machine():
        raise UsageError.of(
            "architecture-other", architecture=facts.cpu.architecture, own=platform.machine()
        )
    folder = (prefix or Path.home() / ".local/mpigraft").absolute()
    folders = BuildFolders(folder, sources.absolute() if sources else None)
    tell(render_plan(plan, "text"))
    build(plan, folders, os.environ, _report)
    out(f"built: {folders.root(plan)}")
    out(f"use it: module use {folders.modules}; module load {folders.module(plan)}")


def _versions(words: Iterable[str]) -> dict[str, str]:
    """The packages of --with, each with its version; empty for any."""
    versions: dict[str, str] = {}
    for word in words:
        name, _, version = word.partition("=")
        if versions.setdefault(name, version) != version:
            raise UsageError.of("package-twice", name=name, one=versions[name], other=version)
    return versions


def _report(step: BuildStep, number: int, count: int) -> None:
    tell(f"[{number}/{count}] {step.id} {step.version}")

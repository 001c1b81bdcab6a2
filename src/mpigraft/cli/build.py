"""`mpigraft build`: an MPI that is built for this machine, by EasyBuild, from one plan."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli.built import build_all
from mpigraft.cli.common import chosen_form, console, examine_machine, flag, option, out, tell
from mpigraft.core.errors import UsageError

if TYPE_CHECKING:
    from mpigraft.build import BuildPlan


def command(
    recipe: Annotated[
        str,
        typer.Argument(
            help="What to build: openmpi, mpich or mvapich; in a version: openmpi@5.0.7.",
            show_default=False,
        ),
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
        list[str] | None,
        option("NAME", "Leave this package out; repeatable.", "none", "--without", rare=True),
    ] = None,
    compiler: Annotated[str, option("NAME", "gnu, llvm, cce, aocc or nvhpc.", rare=True)] = "gnu",
    machine: Annotated[
        list[Path] | None,
        option(
            "FILE",
            "Plan for this machine: what `discover --json` wrote; repeatable, one for each kind of "
            "node of a system.",
            "this one",
            rare=True,
        ),
    ] = None,
    use: Annotated[
        list[str] | None,
        option(
            "NAME=FOLDER",
            "Use the machine's cuda, rocm, xpmem, ... here; repeatable.",
            "none",
            rare=True,
        ),
    ] = None,
    on: Annotated[
        Path | None,
        option(
            "STACK",
            "Build for this software stack: with its packages, its compiler, its C library.",
            "this machine alone",
        ),
    ] = None,
    toolchain: Annotated[
        str,
        option(
            "VERSION",
            "With --on: take the stack's packages of this GCC.",
            "its newest MPI's",
            rare=True,
        ),
    ] = "",
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
    check: Annotated[
        bool,
        flag("Prove each transport of what was built, or not.", "--check/--no-check", rare=True),
    ] = True,
    as_json: Annotated[bool, flag("Same as --as json.", "--json", rare=True)] = False,
) -> None:
    """Build an MPI for this machine, with all that it needs, from one plan.

    The plan says which versions go together, why each was chosen, and with which options it is
    built. EasyBuild builds the packages below --prefix; nothing outside is changed. A build that
    was cut off continues where it stopped. At the end each transport that the MPI has here is
    started once and proven.

    \b
    Examples:
      mpigraft build openmpi --dry-run
      mpigraft build openmpi@5.0.7 --with libfabric=2.1.0 --sources ~/tarballs
      mpigraft build openmpi --on /cvmfs/software.eessi.io/versions/2023.06
      mpigraft build openmpi --as spack > spack.yaml
    """
    from mpigraft.build import (
        FORMS,
        BuildRequest,
        HostOptions,
        build_host,
        check_sources,
        plan_system,
        render_plan,
    )
    from mpigraft.knowledge import packages, plan_table

    form = chosen_form(form, as_json, FORMS)
    recipe, _, version = recipe.partition("@")
    words = [f"{recipe}={version}"] if version else []
    versions = _versions([*words, *(with_ or ())])
    request = BuildRequest(recipe, versions, frozenset(without or ()), compiler)
    stack = _stack_of_node(on) if on and not machine else on
    options = HostOptions(
        compiler, sources, _folders(use or ()), not machine, stack, toolchain, _needed
    )
    hosts = [
        build_host(examine_machine(document), plan_table(), options, os.environ)
        for document in machine or (None,)
    ]
    plans = plan_system(request, hosts, packages(), plan_table())
    if sources:
        for plan in plans:
            check_sources(plan, sources)
    if dry_run or form != "text":
        out(render_plan(plans, form))
        return
    folder = (prefix or Path.home() / ".local/mpigraft").absolute()
    _build(plans, folder, sources, check=check)


def _build(plans: Sequence[BuildPlan], prefix: Path, sources: Path | None, *, check: bool) -> None:
    """Build the partition that this machine belongs to."""
    from mpigraft.build import BuildFolders, render_plan

    own = [plan for plan in plans if plan.host.architecture == platform.machine()]
    if len(own) != 1:
        raise UsageError.of(
            "architecture-other",
            architecture=", ".join(plan.host.partition for plan in plans),
            own=platform.machine(),
        )
    given = sources.absolute() if sources else None
    folders = BuildFolders(prefix, given)
    if len(plans) > 1:
        folders = BuildFolders(prefix / own[0].host.partition, given, common=prefix)
    tell(render_plan(own, "text"))
    build_all(own[0], folders, check=check)


def _stack_of_node(folder: Path) -> Path:
    """Return the tree of a stack's version that this node takes, as `check` and `inject` choose
    it."""
    from mpigraft.graft import cpu_target

    chosen = cpu_target(folder.absolute())
    if chosen != folder.absolute():
        tell(f"{folder}: of its CPU targets this node takes {chosen}; name another by its folder")
    return chosen


def _needed(software: Path, architecture: str) -> dict[str, int]:
    """Read what programs of a stack need of an MPI, those for accelerators too."""
    from mpigraft.graft import read_stack

    root = software.parent if (software.parent / "accel").is_dir() else software
    with console(stderr=True).status("reading the stack") as status:
        stack = read_stack(root, lambda n: status.update(f"reading the stack: {n} ELF files"))
    return stack.needed(architecture)


def _folders(words: Iterable[str]) -> dict[str, str]:
    """Return the folders of --use, by package."""
    folders: dict[str, str] = {}
    for word in words:
        name, _, folder = word.partition("=")
        if not folder:
            raise UsageError.of("use-invalid", word=word, problem="no folder", known="cuda, rocm")
        folders[name] = str(Path(folder).absolute())
    return folders


def _versions(words: Iterable[str]) -> dict[str, str]:
    """Return the packages of --with, each with its version; empty for any."""
    versions: dict[str, str] = {}
    for word in words:
        name, _, version = word.partition("=")
        if versions.setdefault(name, version) != version:
            raise UsageError.of("package-twice", name=name, one=versions[name], other=version)
    return versions

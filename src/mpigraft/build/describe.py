"""Write a plan for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from mpigraft.build.easyconfigs import easyconfigs_of, suffix_of
from mpigraft.build.spack import render_spack
from mpigraft.build.values import MACHINE, BuildPlan, BuildStack, BuildStep
from mpigraft.core.numbers import counted
from mpigraft.core.serialize import document, plain, row_of
from mpigraft.core.text import fold

if TYPE_CHECKING:
    from mpigraft.build.values import Offer
    from mpigraft.core.model import Finding
    from mpigraft.core.serialize import Keys

    ProvidedKeys = Annotated[dict[str, Any], Offer, Keys(name=str)]
    PlanFindingKeys = Annotated[dict[str, Any], Finding, Keys("evidence")]

FORMS = ("text", "json", "easyconfigs", "spack")


def render_plan(plans: Sequence[BuildPlan], form: str) -> str:
    """Write the plans of a system's partitions in one of FORMS."""
    if form == "json":
        return document(**plans_document(plans))
    if form == "text":
        return "\n\n".join(describe_plan(plan) for plan in plans)
    return "\n".join(_files(plan, form, partition=len(plans) > 1) for plan in plans)


def _files(plan: BuildPlan, form: str, *, partition: bool) -> str:
    folder = f"{plan.host.partition}/" if partition else ""
    if form == "spack":
        return (f"# {folder}spack.yaml\n" if partition else "") + render_spack(plan)
    return "\n".join(f"# {folder}{name}\n{text}" for name, text in easyconfigs_of(plan).items())


def describe_plan(plan: BuildPlan) -> str:
    """Say what is built, in which order, in which version, and why."""
    host, lines = plan.host, []
    head = (
        f"{plan.recipe.what}: {counted(len(plan.steps), 'package')} for {host.partition}, with "
        f"{plan.compiler.id} ({plan.compiler.cc})"
    )
    lines += fold(head)
    for by, has in _offers(plan):
        lines += fold(f"{by} has: {', '.join(has) or 'nothing of its own'}")
    if host.stack and host.stack.needed:
        needs = [f"{name} ({counted(n, 'program')})" for name, n in host.stack.needed.items()]
        lines += fold(f"programs of {host.stack.name} need: {', '.join(needs)}")
    lines.append("")
    widths = [max(len(step.id) for step in plan.steps), max(len(s.version) for s in plan.steps)]
    for number, step in enumerate(plan.steps, 1):
        head = f"{number:2}  {step.id:{widths[0]}}  {step.version:{widths[1]}}  "
        indent = len(head)
        lines += fold(step.why, head, indent)
        lines += fold(f"version: {step.chosen}", " " * indent, indent)
        lines += fold(f"sources: {step.archive.file} ({step.archive.by})", " " * indent, indent)
        for planned in step.patches:
            what = f"patch: {planned.patch.file}: {planned.patch.why} ({planned.patch.source})"
            lines += fold(what, " " * indent, indent)
    sources = {step.chosen: step.source for step in plan.steps if step.source}
    for chosen, source in sources.items():
        lines += ["", *fold(f"{chosen}: versions that were built together ({source})")]
    for row in plan.unneeded:
        lines += ["", *fold(f"not built: {row.id}: {row.why} ({row.source})")]
    for finding in plan.findings:
        lines += ["", *fold(f"{finding.level}: {finding.message}")]
        lines += fold(f"source: {finding.why}", "  ", 2) if finding.why else []
        lines += fold(f"what to do: {finding.fix}", "  ", 2)
    return "\n".join(lines)


def _offers(plan: BuildPlan) -> Iterator[tuple[str, list[str]]]:
    """Yield what the machine has, and what a stack has that is used where it is."""
    host, stack = plan.host, plan.host.stack
    own, shared = sorted(host.features), []
    for name, offer in sorted(host.provided.items()):
        label = f"{name} {offer.version}".rstrip()
        if stack and offer.of_stack:
            shared.append(f"{label} ({_below(offer.prefix, stack)})")
        else:
            own.append(f"{label} ({offer.prefix})")
    yield host.name or MACHINE, own
    if stack:
        shared += [f"GCC ({_below(stack.compilers, stack)})"] if stack.compilers else []
        shared += [f"glibc {stack.glibc} ({stack.loader})"] if stack.loader else []
        yield f"stack {stack.name}, {stack.folder},", shared


def _below(path: str, stack: BuildStack) -> str:
    return path.removeprefix(f"{stack.folder}/")


class CompilerRow(TypedDict):
    """The compiler that packages are built with."""

    name: str
    cc: str
    cxx: str
    fc: str


class NeededRow(TypedDict):
    """A library of MPI that programs of the stack need."""

    soname: str
    programs: int


class BuildStackRow(TypedDict):
    """The stack that a plan is for."""

    name: str
    folder: str  # with NAME/VERSION of each package
    toolchain: str  # the GCC whose packages are used
    compilers: str  # prefix of that GCC; empty: none
    loader: str  # its own; empty: the machine's
    glibc: str
    needed: list[NeededRow]


class SourceRow(TypedDict):
    """Where a package comes from."""

    file: str
    by: str  # upstream, debian
    sha256: str  # empty: it is packed from a git commit
    url: str  # empty: it comes with --sources
    checksum_from: str  # who publishes this SHA-256


class Reasoned(TypedDict):
    """A decision and where it comes from."""

    why: str
    source: str


class PatchRow(Reasoned):
    """A patch of a package."""

    file: str
    sha256: str


class UnneededRow(Reasoned):
    """A package on others' lists that the plan does not have."""

    name: str


class PackageRow(TypedDict):
    """A package that is built."""

    name: str
    version: str
    why: str  # why it is in the plan
    chosen: str  # why in this version
    needs: list[str]
    configure: list[str]  # {NAME} is the prefix of another package, {own} its own
    source: SourceRow
    patches: list[PatchRow]


class PartitionRow(TypedDict):
    """The plan for one kind of node."""

    name: str  # x86_64, aarch64-cuda
    machine: str  # its host name
    architecture: str
    features: list[str]  # fabrics and devices of the machine
    stack: BuildStackRow | None
    provided: list[ProvidedKeys]  # packages that are there already, and are used where they are
    suffix: str  # of builds with another compiler
    packages: list[PackageRow]  # in the order of building
    unneeded: list[UnneededRow]
    findings: list[PlanFindingKeys]


class BuildDocument(TypedDict):
    """The plan of a build."""

    recipe: str
    compiler: CompilerRow
    partitions: list[PartitionRow]  # without --machine, this machine alone


def plans_document(plans: Sequence[BuildPlan]) -> BuildDocument:
    """Return the plans as plain data."""
    first = plans[0]
    return {
        "recipe": first.recipe.id,
        "compiler": row_of(CompilerRow, first.compiler, name=first.compiler.id),
        "partitions": [_partition(plan) for plan in plans],
    }


def _partition(plan: BuildPlan) -> PartitionRow:
    host = plan.host
    return row_of(
        PartitionRow,
        host,
        name=host.partition,
        machine=host.name,
        features=sorted(host.features),
        stack=_stack(host.stack) if host.stack else None,
        provided=[{"name": name, **plain(offer)} for name, offer in sorted(host.provided.items())],
        suffix=suffix_of(plan),
        packages=[_package(step) for step in plan.steps],
        unneeded=[row_of(UnneededRow, row, name=row.id) for row in plan.unneeded],
        findings=[_finding(finding) for finding in plan.findings],
    )


def _stack(stack: BuildStack) -> BuildStackRow:
    needed = [NeededRow(soname=name, programs=n) for name, n in stack.needed.items()]
    return row_of(BuildStackRow, stack, toolchain=stack.generation, needed=needed)


def _package(step: BuildStep) -> PackageRow:
    archive = step.archive
    url = archive.url or archive.git
    return row_of(
        PackageRow,
        step,
        name=step.id,
        chosen=f"{step.chosen} ({step.source})" if step.source else step.chosen,
        source=row_of(SourceRow, archive, url=url, checksum_from=archive.source),
        patches=[row_of(PatchRow, one.patch, sha256=one.sha256) for one in step.patches],
    )


def _finding(finding: Finding) -> PlanFindingKeys:
    return {key: value for key, value in plain(finding).items() if key != "evidence"}

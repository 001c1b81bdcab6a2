"""Write a plan for people and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mpigraft.build.easyconfigs import easyconfigs_of, suffix_of
from mpigraft.build.spack import render_spack
from mpigraft.build.values import MACHINE, BuildPlan, BuildStack, BuildStep
from mpigraft.core.numbers import counted
from mpigraft.core.text import fold

SCHEMA = 2
FORMS = ("text", "json", "easyconfigs", "spack")


def render_plan(plans: Sequence[BuildPlan], form: str) -> str:
    """Write the plans of a system's partitions in one of FORMS."""
    if form == "json":
        return json.dumps(plans_json(plans), indent=2)
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


def plans_json(plans: Sequence[BuildPlan]) -> dict[str, Any]:
    """Return the plans as plain data."""
    first = plans[0]
    return {
        "schema": SCHEMA,
        "recipe": first.recipe.id,
        "compiler": {
            "name": first.compiler.id,
            "cc": first.compiler.cc,
            "cxx": first.compiler.cxx,
            "fc": first.compiler.fc,
        },
        "partitions": [_partition(plan) for plan in plans],
    }


def _partition(plan: BuildPlan) -> dict[str, Any]:
    host = plan.host
    return {
        "name": host.partition,
        "machine": host.name,
        "architecture": host.architecture,
        "features": sorted(host.features),
        "stack": _stack(host.stack) if host.stack else None,
        "provided": [
            {"name": name, "prefix": offer.prefix, "version": offer.version, "by": offer.by}
            for name, offer in sorted(host.provided.items())
        ],
        "suffix": suffix_of(plan),
        "packages": [_package(step) for step in plan.steps],
        "unneeded": [
            {"name": row.id, "why": row.why, "source": row.source} for row in plan.unneeded
        ],
        "findings": list(_findings(plan)),
    }


def _stack(stack: BuildStack) -> dict[str, Any]:
    return {
        "name": stack.name,
        "folder": stack.folder,
        "toolchain": stack.generation,
        "compilers": stack.compilers,
        "loader": stack.loader,
        "glibc": stack.glibc,
        "needed": [{"soname": name, "programs": n} for name, n in stack.needed.items()],
    }


def _package(step: BuildStep) -> dict[str, Any]:
    archive = step.archive
    return {
        "name": step.id,
        "version": step.version,
        "why": step.why,
        "chosen": f"{step.chosen} ({step.source})" if step.source else step.chosen,
        "needs": list(step.needs),
        "configure": list(step.configure),
        "source": {
            "file": archive.file,
            "by": archive.by,
            "sha256": archive.sha256,
            "url": archive.url or archive.git,
            "checksum_from": archive.source,
        },
        "patches": [
            {
                "file": planned.patch.file,
                "sha256": planned.sha256,
                "why": planned.patch.why,
                "source": planned.patch.source,
            }
            for planned in step.patches
        ],
    }


def _findings(plan: BuildPlan) -> Iterable[dict[str, str]]:
    for f in plan.findings:
        yield {
            "level": str(f.level), "code": f.code, "message": f.message, "why": f.why,
            "fix": f.fix,
        }  # fmt: skip

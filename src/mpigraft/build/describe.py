"""Write a plan for people and as JSON."""

from __future__ import annotations

import json
from typing import Any

from mpigraft.build.easyconfigs import easyconfigs_of, suffix_of
from mpigraft.build.plan import BuildPlan
from mpigraft.build.spack import render_spack
from mpigraft.core.numbers import counted
from mpigraft.core.text import fold

SCHEMA = 2
FORMS = ("text", "json", "easyconfigs", "spack")


def render_plan(plan: BuildPlan, form: str) -> str:
    """Write a plan in one of FORMS."""
    if form == "json":
        return json.dumps(plan_json(plan), indent=2)
    if form == "spack":
        return render_spack(plan)
    if form == "easyconfigs":
        return "\n".join(f"# {name}\n{text}" for name, text in easyconfigs_of(plan).items())
    return describe_plan(plan)


def describe_plan(plan: BuildPlan) -> str:
    """Say what is built, in which order, in which version, and why."""
    host = plan.host
    own = [f"{name} ({path})" for name, path in sorted(host.provided.items())]
    head = (
        f"{plan.recipe.what}: {counted(len(plan.steps), 'package')} for {host.architecture}, with "
        f"{plan.compiler.id} ({plan.compiler.cc})"
    )
    has = ", ".join([*sorted(host.features), *own]) or "nothing of its own"
    lines = [*fold(head), *fold(f"this machine has: {has}"), ""]
    widths = [max(len(step.id) for step in plan.steps), max(len(s.version) for s in plan.steps)]
    for number, step in enumerate(plan.steps, 1):
        head = f"{number:2}  {step.id:{widths[0]}}  {step.version:{widths[1]}}  "
        indent = len(head)
        lines += fold(step.why, head, indent)
        lines += fold(f"version: {step.chosen}", " " * indent, indent)
        lines += fold(f"sources: {step.archive.file} ({step.archive.by})", " " * indent, indent)
    for finding in plan.findings:
        lines += ["", *fold(f"{finding.level}: {finding.message}")]
        lines += fold(f"what to do: {finding.fix}", "  ", 2)
    return "\n".join(lines)


def plan_json(plan: BuildPlan) -> dict[str, Any]:
    """Return the plan as plain data."""
    return {
        "schema": SCHEMA,
        "recipe": plan.recipe.id,
        "compiler": plan.compiler.id,
        "architecture": plan.host.architecture,
        "features": sorted(plan.host.features),
        "provided": dict(sorted(plan.host.provided.items())),
        "suffix": suffix_of(plan),
        "packages": [
            {
                "name": step.id,
                "version": step.version,
                "why": step.why,
                "chosen": step.chosen,
                "needs": list(step.needs),
                "configure": list(step.configure),
                "source": {
                    "file": step.archive.file,
                    "by": step.archive.by,
                    "sha256": step.archive.sha256,
                    "url": step.archive.url or step.archive.git,
                },
            }
            for step in plan.steps
        ],
        "findings": [
            {
                "level": str(f.level),
                "code": f.code,
                "message": f.message,
                "why": f.why,
                "fix": f.fix,
            }
            for f in plan.findings
        ],
    }

"""Write a plan as a Spack environment, as text to review: spack.yaml with one root.

The names of variants are those of Spack's builtin packages (repos/spack_repo/builtin).
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from mpigraft.build.values import BuildPlan, BuildStep
from mpigraft.knowledge import Package

EXTERNALS = {"rocm": "hip"}  # Spack's names of what the machine has


def render_spack(plan: BuildPlan) -> str:
    """Return the environment: the MPI as its root, with each version and variant pinned, and the
    machine's own packages as externals whose version somebody has to fill in."""
    root = next(step for step in plan.steps if step.id == plan.recipe.root)
    others = [step for step in plan.steps if step is not root]
    spec = " ".join([_spec(root, plan), *(f"^{_spec(step, plan)}" for step in others)])
    lines = [
        f"# {plan.recipe.what}. Written by mpigraft; read it before you build with it.",
        *(f"# {finding.message}" for finding in plan.findings),
        "spack:",
        "  specs:",
        f'  - "{spec}"',
        "  concretizer:",
        "    unify: true",
        "  view: false",
        *_externals(plan),
    ]
    return "\n".join(lines) + "\n"


def _spec(step: BuildStep, plan: BuildPlan) -> str:
    package = step.package
    present = {*plan.versions, *plan.host.provided, *plan.host.interfaces}
    words = list(package.variants)
    for option in package.options_of(step.version):
        if option.applies(present):
            there = not option.package or option.package in present
            words += option.variants if there else option.absent_variants
    compiler = f" %{_compiler(plan)}"
    return " ".join([f"{_name(package)}@{step.version}", *joined_variants(words)]) + compiler


def joined_variants(words: Iterable[str]) -> list[str]:
    """Join the values of each name=value in their order; other words stay as they are."""
    values: dict[str, list[str]] = {}
    for word in words:
        name, _, value = word.partition("=")
        values.setdefault(name, []).extend(value.split(",") if value else ())
    return [f"{name}={','.join(dict.fromkeys(v))}" if v else name for name, v in values.items()]


def _name(package: Package) -> str:
    return package.spack or package.id


def _compiler(plan: BuildPlan) -> str:
    return {"gnu": "gcc"}.get(plan.compiler.id, plan.compiler.id)


def _externals(plan: BuildPlan) -> list[str]:
    own = {n: o for n, o in sorted(plan.host.provided.items()) if n not in ("fortran", "openssl")}
    if not own:
        return []
    lines = ["  packages:"]
    for name, offer in own.items():
        spack = EXTERNALS.get(name, name)
        note = "" if offer.version else "  # fill in the version of this machine"
        lines += [
            f"    {spack}:",
            "      buildable: false",
            "      externals:",
            f'      - spec: "{spack}@{offer.version or "VERSION"}"{note}',
            f"        prefix: {json.dumps(offer.prefix, ensure_ascii=False)}",
        ]
    return lines

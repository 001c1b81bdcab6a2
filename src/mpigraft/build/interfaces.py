"""What a planned MPI lacks of the interfaces that are wanted of it, and what has them."""

from __future__ import annotations

from collections.abc import Iterator

from mpigraft.build.choice import VersionChoice
from mpigraft.build.values import BuildPlan, BuildRequest
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Finding
from mpigraft.core.numbers import counted
from mpigraft.knowledge import binding_of


def interfaces_lacking(
    plan: BuildPlan, choice: VersionChoice, request: BuildRequest
) -> Iterator[Finding]:
    """Yield what programs of the stack need and this MPI will not have. Raises UsageError for an
    interface that was requested by name."""
    stack, root = plan.host.stack, plan.steps[-1]
    present = choice.present(plan.versions)
    mpi = f"{root.id} {root.version}"
    needed = stack.needed if stack else {}
    for row in choice.table.interfaces:
        sonames = row.sonames(needed, plan.recipe.abi)
        given = row.id in present and root.package.gives(row.id, root.version, present)
        if given or not (sonames or row.id in request.versions):
            continue
        fix = _fix(row.id, plan, present)
        if row.id in request.versions:
            raise UsageError.of("interface-absent", mpi=mpi, what=row.what, name=row.id, advice=fix)
        assert stack
        most = max(needed[soname] for soname in sonames)
        yield Finding.of(
            "stack-interface", mpi=mpi, what=row.what, stack=stack.name,
            programs=counted(most, "program"), sonames=", ".join(sonames), advice=fix,
        )  # fmt: skip
    others = [name for name in needed if _abi_of(name) != plan.recipe.abi]
    if others and stack:
        yield Finding.of(
            "stack-other-family", stack=stack.name, mpi=mpi, sonames=", ".join(others),
            programs=counted(max(needed[name] for name in others), "program"),
        )  # fmt: skip


def _abi_of(soname: str) -> str:
    binding = binding_of(soname)
    return binding.abi if binding else ""


def _fix(interface: str, plan: BuildPlan, present: set[str]) -> str:
    """Advise on an interface that a plan lacks."""
    package, version = plan.steps[-1].package, plan.steps[-1].version
    able = [
        v for v in package.versions if any(o.package == interface for o in package.options_of(v))
    ]
    compiled = any(o.package == interface and o.beside == "fortran" for o in package.options)
    if version in able and compiled and "fortran" not in present:
        return f"put {plan.compiler.fc} into PATH, or load its module"
    if version in able:
        return "leave --without away"
    if able:
        return f"build {package.id}@{able[0]}, which has them"
    return "no recipe here gives it: programs that need it stay on an MPI that has it"

"""Choose the packages of a chain, their versions, sources and options, before anything is built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mpigraft.build.chain import (
    check_request,
    collect,
    needs_of,
    ordered,
    usable_offers,
)
from mpigraft.build.choice import Chosen, VersionChoice, findings_of
from mpigraft.build.interfaces import interfaces_lacking
from mpigraft.build.values import (
    ASSUMED,
    FABRICS,
    BuildHost,
    BuildPlan,
    BuildRequest,
    BuildStep,
    Offer,
)
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Finding
from mpigraft.knowledge import Compiler, Package, PlanTable, Recipe, version_numbers

__all__ = ["BuildHost", "BuildPlan", "BuildRequest", "BuildStep", "plan_build", "plan_system"]


def plan_build(
    request: BuildRequest, host: BuildHost, packages: Mapping[str, Package], table: PlanTable
) -> BuildPlan:
    """Plan a chain. Raises UsageError for what nobody knows, MissingError for sources that
    --sources lacks, and CheckFailed for versions that clash."""
    return plan_system(request, [host], packages, table)[0]


def plan_system(
    request: BuildRequest,
    hosts: Sequence[BuildHost],
    packages: Mapping[str, Package],
    table: PlanTable,
) -> tuple[BuildPlan, ...]:
    """Plan a chain for each partition of a system, in the same versions. Raises as `plan_build`,
    and UsageError for two partitions with the same name."""
    recipe = _recipe(request.recipe, table)
    compiler = _compiler(request.compiler, table)
    check_request(request, recipe, packages, table)
    root = packages[recipe.root]
    offers = [usable_offers(host, request, recipe, root, table) for host in hosts]
    names = [host.partition for host in offers]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError.of("partition-twice", partition=twice)
    chains = [collect(recipe, request, host, packages) for host in offers]
    wanted = {n: version for n, version in request.versions.items() if version}
    everything = VersionChoice(_union(offers), packages, table, compiler.id)
    chosen = everything.versions(dict.fromkeys(n for chain in chains for n in chain), wanted)
    plans = []
    for host, chain in zip(offers, chains, strict=True):
        choice = VersionChoice(host, packages, table, compiler.id)
        plan = _plan(recipe, _compiler_for(compiler, host), choice, chain, chosen)
        lacking = tuple(interfaces_lacking(plan, choice, request))
        plans.append(replace(plan, findings=(*lacking, *plan.findings)))
    return tuple(plans)


def _union(hosts: Sequence[BuildHost]) -> BuildHost:
    """Return all that any of these machines has."""
    provided: dict[str, Offer] = {}
    for host in hosts:
        provided = dict(host.provided) | provided
    features = frozenset().union(*(host.features for host in hosts))
    return replace(hosts[0], features=features, provided=provided)


def _plan(
    recipe: Recipe,
    compiler: Compiler,
    choice: VersionChoice,
    chain: Mapping[str, str],
    chosen: Chosen,
) -> BuildPlan:
    """Plan one partition in versions that were chosen for all."""
    versions = {name: chosen[name].version for name in chain}
    findings = findings_of(choice, versions)
    present = choice.present(versions)
    steps = []
    for name in ordered(chain, choice.packages):
        package, version = choice.packages[name], versions[name]
        patches, missing = choice.patches(package, version, present)
        findings += [
            Finding.of(
                "patch-missing", package=f"{name} {version}", file=patch.file, why=patch.why,
                source=patch.source,
                reason="--sources lacks it" if patch.sha256 else "nobody publishes its checksum",
            )
            for patch in missing
        ]  # fmt: skip
        archive = choice.archive(package, version)
        step = BuildStep(
            package=package,
            archive=archive,
            needs=tuple(sorted(needs_of(package, chain, version))),
            configure=_configure(package, version, present),
            why=chain[name],
            chosen=chosen[name].why,
            source=chosen[name].source,
            patches=tuple(patches),
            packed=bool(archive.git) and archive.file not in choice.host.sources,
        )
        steps.append(step)
    findings += _known_of(compiler, choice.host)
    findings += _packed_here(steps)
    unneeded = tuple(row for row in choice.table.unneeded if not row.on or row.on in chain)
    return BuildPlan(recipe, compiler, choice.host, tuple(steps), tuple(findings), unneeded)


def _known_of(compiler: Compiler, host: BuildHost) -> Iterable[Finding]:
    """Yield notes on the compiler and the machine."""
    if not compiler.checked:
        yield Finding.of("compiler-planned-only", compiler=compiler.id)
    assumed = {name: offer.prefix for name, offer in host.provided.items() if offer.by == ASSUMED}
    places = [f"{name} in {place}" for name, place in sorted(assumed.items()) if name != "fortran"]
    if places:
        yield Finding.of("provided-assumed", places=", ".join(places))
    if not host.features & set(FABRICS):
        yield Finding.of("fabric-none", machine=host.name or "this machine")
    stack = host.stack
    if stack and compiler.id != "gnu":
        yield Finding.of("stack-other-compiler", stack=stack.name, compiler=compiler.id)
    elif stack and not stack.compilers:
        yield Finding.of("stack-without-compiler", stack=stack.name)
        if stack.glibc and version_numbers(host.glibc) > version_numbers(stack.glibc):
            yield Finding.of(
                "stack-older-glibc", stack=stack.name, older=stack.glibc, own=host.glibc
            )
    if stack and stack.others:
        yield Finding.of(
            "stack-toolchains", stack=stack.name, toolchain=stack.generation,
            others=", ".join(stack.others),
        )  # fmt: skip


def _packed_here(steps: Iterable[BuildStep]) -> Iterable[Finding]:
    """Name archives that no SHA-256 is compared with: EasyBuild packs them from git, or nobody
    publishes one."""
    unchecked = [step for step in steps if step.packed or not step.archive.sha256]
    by_commit = [step for step in unchecked if step.archive.commit]
    by_tag = [step for step in unchecked if not step.archive.commit]
    if by_commit:
        source = by_commit[-1].archive.source
        yield Finding.of("archive-from-commit", packages=_names(by_commit), source=source)
    if by_tag:
        source = by_tag[-1].archive.source
        yield Finding.of("archive-from-tag", packages=_names(by_tag), source=source)


def _names(steps: Iterable[BuildStep]) -> str:
    return ", ".join(f"{step.id} {step.version}" for step in steps)


def _recipe(name: str, table: PlanTable) -> Recipe:
    for recipe in table.recipes:
        if recipe.id == name:
            return recipe
    known = (recipe.id for recipe in table.recipes)
    raise UsageError.unknown("word-unknown", name, known, what="recipe")


def _compiler(name: str, table: PlanTable) -> Compiler:
    for compiler in table.compilers:
        if name in (compiler.id, compiler.cc):
            return compiler
    known = (compiler.id for compiler in table.compilers)
    raise UsageError.unknown("word-unknown", name, known, what="compiler")


def _compiler_for(compiler: Compiler, host: BuildHost) -> Compiler:
    """Return the stack's compiler in place of the machine's of that family: it knows the stack's C
    library."""
    if not host.stack or not host.stack.compilers or compiler.id != "gnu":
        return compiler
    folder = f"{host.stack.compilers}/bin"
    return replace(compiler, cc=f"{folder}/gcc", cxx=f"{folder}/g++", fc=f"{folder}/gfortran")


def _configure(package: Package, version: str, present: Iterable[str]) -> tuple[str, ...]:
    available = set(present)
    words = list(package.configure)
    for option in package.options_of(version):
        words += option.words(available) if option.applies(available) else ()
    return tuple(words)

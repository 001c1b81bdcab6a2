"""Collect the packages of a chain, with why each is there, and put them into order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from mpigraft.build.values import BuildHost, BuildRequest, Offer
from mpigraft.core.errors import UsageError
from mpigraft.knowledge import Package, PlanTable, Recipe


def check_request(
    request: BuildRequest, recipe: Recipe, packages: Mapping[str, Package], table: PlanTable
) -> None:
    """Refuse packages and versions that nobody knows, and a chain without its end."""
    places = {row.id for row in table.provided}
    wanted = packages.keys() | {row.id for row in table.interfaces}
    for name in request.versions:
        _check_name(name, wanted, table)
    for name in sorted(request.without):
        _check_name(name, wanted | places, table)
    for name, version in request.versions.items():
        versions = packages[name].versions if name in packages else ()
        if version and version not in versions:
            known = ", ".join(versions) or "none, an interface has no version of its own"
            raise UsageError.of("version-unknown", name=name, version=version, known=known)
    both = sorted(request.without & (request.versions.keys() | {recipe.root}))
    if both:
        raise UsageError.of("package-contradiction", name=both[0], recipe=recipe.id)
    roots = {other.root for other in table.recipes} - {recipe.root}
    for name in sorted(roots & request.versions.keys()):
        raise UsageError.of("package-other-recipe", name=name, recipe=recipe.id)


def _check_name(name: str, known: Collection[str], table: PlanTable) -> None:
    for row in table.unneeded:
        if row.id == name:
            raise UsageError.of("package-unneeded", name=name, why=row.why)
    if name not in known:
        raise UsageError.unknown("word-unknown", name, sorted(known), what="package")


def usable_offers(
    host: BuildHost, request: BuildRequest, recipe: Recipe, root: Package, table: PlanTable
) -> BuildHost:
    """Leave out what is offered but was not wanted: by --without, or since it is to be built. Add
    the interfaces that are wanted: by --with, or since programs of the stack need them."""
    out = request.without | request.versions.keys()
    needed = host.stack.needed if host.stack else ()
    interfaces = {
        row.id
        for row in table.interfaces
        if row.id in request.versions or row.sonames(needed, recipe.abi)
    }
    for option in root.options:
        if request.without & {option.package, *option.needs}:
            interfaces.discard(option.package)
    provided = {n: o for n, o in host.provided.items() if n not in out}
    if host.stack and host.stack.compilers and request.compiler in ("gnu", "gcc"):
        provided.pop("fortran", None)  # the machine's does not build here
        if host.stack.fortran:
            provided["fortran"] = Offer(host.stack.fortran, by=host.stack.name)
    return replace(host, provided=provided, interfaces=frozenset(interfaces))


def collect(
    recipe: Recipe, request: BuildRequest, host: BuildHost, packages: Mapping[str, Package]
) -> dict[str, str]:
    """Collect the packages, each with why it is there. `host` offers what `usable_offers` left.
    Raises UsageError where one is needed that is to be left out."""
    reasons = {recipe.root: f"recipe {recipe.id}: {packages[recipe.root].what}"}
    available = host.features | host.provided.keys()
    for part in recipe.parts:
        wanted = (not part.on or part.on in available) and part.unless not in available
        if wanted and part.package not in host.provided:
            reasons.setdefault(part.package, part.why)
    for name in request.versions.keys() & packages.keys():
        reasons.setdefault(name, "requested")
    for name in request.without:
        reasons.pop(name, None)
    while missing := _missing(reasons, host.provided.keys() | host.interfaces, packages):
        name, by = missing
        if name in request.without:
            raise UsageError.of("package-needed", name=name, by=by)
        reasons[name] = f"{by} needs it: {packages[name].what}"
    for name in reasons:
        choice = packages[name].one_of
        if choice and not any(one in reasons or one in host.provided for one in choice):
            raise UsageError.of("package-one-of", by=name, names=" or ".join(choice))
    return reasons


def _missing(
    reasons: Mapping[str, str], offered: Collection[str], packages: Mapping[str, Package]
) -> tuple[str, str] | None:
    """Return a package that the chain lacks, and the one that needs it; None: it is whole."""
    present = reasons.keys() | offered
    for name in reasons:
        needs = [*packages[name].needs]
        for option in packages[name].options:
            needs += option.needs if option.package in present else ()
        for other in needs:
            if other not in present:
                return other, name
    return None


def needs_of(package: Package, chain: Collection[str], version: str = "") -> set[str]:
    """Return the packages of the chain that must be built before this one, in any version or in
    one."""
    options = package.options_of(version) if version else package.options
    optional = {option.package for option in options}
    placed = {
        name
        for option in options
        if option.package in chain
        for text in option.present
        for name in chain
        if f"{{{name}}}" in text
    }
    return (set(package.needs) | optional | placed) & set(chain)


def ordered(chain: Mapping[str, str], packages: Mapping[str, Package]) -> Sequence[str]:
    """Order the packages, each after what it needs, and by name otherwise."""
    done: list[str] = []
    waiting = {name: needs_of(packages[name], chain) for name in chain}
    while waiting:
        ready = sorted(name for name, needs in waiting.items() if needs <= set(done))
        done += ready
        for name in ready:
            del waiting[name]
    return done

"""Choose the packages of a chain, their versions, sources and options, before anything is built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from mpigraft.core.errors import CheckFailed, MissingError, UsageError
from mpigraft.core.model import Finding, Level
from mpigraft.knowledge.builds import (
    Archive,
    Clash,
    Compiler,
    Package,
    PlanTable,
    Recipe,
    VersionSet,
)


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What was asked for. `versions` has package to version, empty for any; `without` leaves
    packages out."""

    recipe: str
    versions: Mapping[str, str] = field(default_factory=dict)
    without: frozenset[str] = frozenset()
    compiler: str = "gnu"


@dataclass(frozen=True, slots=True)
class BuildHost:
    """What this machine offers."""

    architecture: str
    features: frozenset[str]  # fabrics that it has: cxi, infiniband
    provided: Mapping[str, str]  # packages of its own, with their prefixes; fortran: the compiler
    sources: frozenset[str] = frozenset()  # files of --sources
    offline: bool = False  # nothing is downloaded: only those files count


@dataclass(frozen=True, slots=True)
class BuildStep:
    """One package of a plan. In `configure`, {NAME} stands for the prefix of another package, and
    {own} for its own."""

    package: Package
    archive: Archive
    needs: tuple[str, ...]  # packages of the plan, which are built before
    configure: tuple[str, ...]
    why: str
    chosen: str  # why this version

    @property
    def id(self) -> str:
        return self.package.id

    @property
    def version(self) -> str:
        return self.archive.version


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """All packages of a chain, each after what it needs."""

    recipe: Recipe
    compiler: Compiler
    host: BuildHost
    steps: tuple[BuildStep, ...]
    findings: tuple[Finding, ...]

    @property
    def versions(self) -> dict[str, str]:
        return {step.id: step.version for step in self.steps}


def plan_build(
    request: BuildRequest, host: BuildHost, packages: Mapping[str, Package], table: PlanTable
) -> BuildPlan:
    """Plan a chain. Raises UsageError for what nobody knows, MissingError for sources that
    --sources lacks, and CheckFailed for versions that clash."""
    recipe = _recipe(request.recipe, table)
    compiler = _compiler(request.compiler, table)
    _refuse_unknown(request, recipe, packages, table)
    reasons = _chain(recipe, request, host, packages)
    wanted = {name: version for name, version in request.versions.items() if version}
    chosen = _versions(reasons, wanted, host, packages, table)
    versions = {name: version for name, (version, _) in chosen.items()}
    findings = _known(versions, host, compiler, table.clashes)
    present = versions.keys() | host.provided.keys()
    steps = tuple(
        BuildStep(
            packages[name],
            _archive(packages[name], versions[name], host),
            tuple(sorted(_needs(packages[name], reasons))),
            _configure(packages[name], present),
            reasons[name],
            chosen[name][1],
        )
        for name in _ordered(reasons, packages)
    )
    return BuildPlan(recipe, compiler, host, steps, findings)


def _recipe(name: str, table: PlanTable) -> Recipe:
    for recipe in table.recipes:
        if recipe.id == name:
            return recipe
    known = ", ".join(recipe.id for recipe in table.recipes)
    raise UsageError.of("recipe-unknown", name=name, known=known)


def _compiler(name: str, table: PlanTable) -> Compiler:
    for compiler in table.compilers:
        if compiler.id == name:
            return compiler
    known = ", ".join(compiler.id for compiler in table.compilers)
    raise UsageError.of("compiler-unknown", name=name, known=known)


def _refuse_unknown(
    request: BuildRequest, recipe: Recipe, packages: Mapping[str, Package], table: PlanTable
) -> None:
    """Refuse packages and versions that nobody knows, and a chain without its end."""
    for name in [*request.versions, *sorted(request.without)]:
        for row in table.unneeded:
            if row.id == name:
                raise UsageError.of("package-unneeded", name=name, why=row.why)
        if name not in packages:
            known = ", ".join(packages)
            raise UsageError.of("package-unknown", name=name, known=known)
    for name, version in request.versions.items():
        if version and version not in packages[name].versions:
            known = ", ".join(packages[name].versions)
            raise UsageError.of("version-unknown", name=name, version=version, known=known)
    both = sorted(request.without & (request.versions.keys() | {recipe.root}))
    if both:
        raise UsageError.of("package-contradiction", name=both[0], recipe=recipe.id)


def _chain(
    recipe: Recipe, request: BuildRequest, host: BuildHost, packages: Mapping[str, Package]
) -> dict[str, str]:
    """Collect the packages, each with why it is there."""
    reasons = {recipe.root: f"recipe {recipe.id}: {packages[recipe.root].what}"}
    available = host.features | host.provided.keys()
    for part in recipe.parts:
        if not part.on or part.on in available:
            reasons.setdefault(part.package, part.why)
    for name in request.versions:
        reasons.setdefault(name, "requested")
    for name in request.without:
        reasons.pop(name, None)
    while missing := _missing(reasons, packages):
        name, by = missing
        if name in request.without:
            raise UsageError.of("package-needed", name=name, by=by)
        reasons[name] = f"{by} needs it: {packages[name].what}"
    return reasons


def _missing(reasons: Mapping[str, str], packages: Mapping[str, Package]) -> tuple[str, str] | None:
    """A package that the chain lacks, and the one that needs it; None: it is whole."""
    for name in reasons:
        package = packages[name]
        needs = [*package.needs]
        for option in package.options:
            needs += option.needs if option.package in reasons else ()
        for other in needs:
            if other not in reasons:
                return other, name
    return None


def _versions(
    reasons: Mapping[str, str],
    wanted: Mapping[str, str],
    host: BuildHost,
    packages: Mapping[str, Package],
    table: PlanTable,
) -> dict[str, tuple[str, str]]:
    """Choose each version, with why: what was requested, then what somebody has run together,
    then the newest with known sources."""
    proven = _best_set(reasons, wanted, host, packages, table.sets)
    together = dict(proven.versions) if proven else {}
    chosen = {name: (version, "requested") for name, version in wanted.items()}
    for name, version in together.items():
        if proven and name in reasons:
            chosen.setdefault(name, (version, f"{proven.what} ({proven.source})"))
    for name in reasons:
        if name not in chosen:
            chosen[name] = _newest(packages[name], chosen, host, table)
    return {name: chosen[name] for name in reasons}


def _newest(
    package: Package, chosen: Mapping[str, tuple[str, str]], host: BuildHost, table: PlanTable
) -> tuple[str, str]:
    """The newest version with sources that goes with those chosen before; the newest of all if
    none does, which is refused later with its reason."""
    usable = [v for v in package.versions if _archives(package, v, host)]
    if not usable:
        files = ", ".join(archive.file for archive in package.archives)
        raise MissingError.of("sources-missing", name=package.id, files=files)
    features = host.features | host.provided.keys()
    before = {name: version for name, (version, _) in chosen.items()}
    for version in usable:
        versions = before | {package.id: version}
        errors = [row for row in table.clashes if row.level is Level.ERROR]
        if not any(row.meets(versions, features) for row in errors):
            others = "" if version == usable[0] else " that goes with the others"
            return version, f"the newest with known sources{others}"
    return usable[0], "the newest with known sources"


def _best_set(
    reasons: Mapping[str, str],
    wanted: Mapping[str, str],
    host: BuildHost,
    packages: Mapping[str, Package],
    sets: Iterable[VersionSet],
) -> VersionSet | None:
    """Find the set that names most packages of the chain, among those that go with the request and
    whose sources are there; of equals the first."""

    def usable(row: VersionSet) -> bool:
        return all(
            _archives(packages[name], version, host)
            for name, version in row.versions
            if name in reasons
        )

    suited = [row for row in sets if row.suits(host.features, wanted) and usable(row)]
    return max(
        suited, key=lambda row: sum(name in reasons for name, _ in row.versions), default=None
    )


def _archives(package: Package, version: str, host: BuildHost) -> list[Archive]:
    """The sources of a version that can be had, those of --sources first."""
    known = [archive for archive in package.archives if archive.version == version]
    given = [archive for archive in known if archive.file in host.sources]
    fetched = [archive for archive in known if archive.url or archive.git]
    return given if given or host.offline else fetched


def _archive(package: Package, version: str, host: BuildHost) -> Archive:
    usable = _archives(package, version, host)
    if not usable:
        known = [archive.file for archive in package.archives if archive.version == version]
        raise MissingError.of(
            "sources-missing", name=f"{package.id} {version}", files=", ".join(known)
        )
    return usable[0]


def _known(
    versions: Mapping[str, str], host: BuildHost, compiler: Compiler, clashes: Iterable[Clash]
) -> tuple[Finding, ...]:
    """What is known of these versions together. Raises CheckFailed for what cannot work."""
    findings = []
    for row in clashes:
        if not row.meets(versions, host.features | host.provided.keys()):
            continue
        pair = [f"{name} {versions[name]}" for name in (row.package, row.other)]
        if row.level is Level.ERROR:
            raise CheckFailed.of(
                "versions-clash",
                package=pair[0],
                other=pair[1],
                why=row.why,
                advice=row.fix,
                source=row.source,
            )
        known = Finding.of(
            "versions-known",
            level=row.level,
            package=pair[0],
            other=pair[1],
            problem=row.why,
            advice=row.fix,
            source=row.source,
        )
        findings.append(known)
    if not compiler.checked:
        findings.append(Finding.of("compiler-planned-only", compiler=compiler.id))
    return tuple(findings)


def _needs(package: Package, chain: Mapping[str, str]) -> set[str]:
    """The packages of the chain that must be built before this one."""
    optional = {option.package for option in package.options}
    placed = {
        name
        for option in package.options
        if option.package in chain
        for text in option.present
        for name in chain
        if f"{{{name}}}" in text
    }
    return (set(package.needs) | optional | placed) & chain.keys()


def _configure(package: Package, present: Iterable[str]) -> tuple[str, ...]:
    available = set(present)
    words = list(package.configure)
    for option in package.options:
        words += option.present if option.package in available else option.absent
    return tuple(words)


def _ordered(chain: Mapping[str, str], packages: Mapping[str, Package]) -> Sequence[str]:
    """Order the packages, each after what it needs, and by name otherwise."""
    ordered: list[str] = []
    waiting = {name: _needs(packages[name], chain) for name in chain}
    while waiting:
        ready = sorted(name for name, needs in waiting.items() if needs <= set(ordered))
        ordered += ready
        for name in ready:
            del waiting[name]
    return ordered

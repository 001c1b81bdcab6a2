"""Choose the version of each package, with why, and what is known of them together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mpigraft.build.values import ASSUMED, BuildHost, PlannedPatch
from mpigraft.core.errors import CheckFailed, MissingError
from mpigraft.core.model import Finding, Level
from mpigraft.knowledge import Archive, Clash, Package, Patch, PlanTable, VersionSet


@dataclass(frozen=True, slots=True)
class Version:
    """The version that was chosen, why, and the source of that."""

    version: str
    why: str
    source: str = ""


Chosen = Mapping[str, Version]  # by package


@dataclass(frozen=True, slots=True)
class VersionChoice:
    """What versions are chosen for: a machine, or several of one system together."""

    host: BuildHost
    packages: Mapping[str, Package]
    table: PlanTable
    compiler: str

    def versions(self, reasons: Iterable[str], wanted: Mapping[str, str]) -> Chosen:
        """Choose each version: what was requested, then what somebody has run together, then the
        newest with known sources that goes with the others."""
        names = tuple(reasons)
        proven = self._best_set(names, wanted)
        chosen = {name: Version(version, "requested") for name, version in wanted.items()}
        if proven:
            rows = {name: version for name, version in proven.versions if name in names}
            chosen = {n: Version(v, proven.what, proven.source) for n, v in rows.items()} | chosen
        for name in names:
            if name not in chosen:
                chosen[name] = self._newest(self.packages[name], chosen)
        return {name: chosen[name] for name in names}

    def archives(self, package: Package, version: str) -> list[Archive]:
        """Return the sources of a version that can be had, those of --sources first."""
        known = [archive for archive in package.archives if archive.version == version]
        given = [archive for archive in known if archive.file in self.host.sources]
        fetched = [archive for archive in known if archive.url or archive.git]
        return given if given or self.host.offline else fetched

    def archive(self, package: Package, version: str) -> Archive:
        """Return the best of them. Raises MissingError for a version that has none."""
        usable = self.archives(package, version)
        if not usable:
            known = [archive.file for archive in package.archives if archive.version == version]
            raise MissingError.of(
                "sources-missing", name=f"{package.id} {version}", files=", ".join(known)
            )
        return usable[0]

    def present(self, versions: Iterable[str]) -> set[str]:
        """Return all that a row can be about. A device is none: its library is, once it is
        there."""
        host = self.host
        fabrics = host.features - self.packages.keys()
        own = {*fabrics, *host.provided, *host.interfaces}
        return {*own, *versions, host.architecture, self.compiler}

    def patches(
        self, package: Package, version: str, present: set[str]
    ) -> tuple[list[PlannedPatch], list[Patch]]:
        """Return the patches that a version wants: those that can be had, and the others."""
        planned, missing = [], []
        for patch in package.patches:
            if not patch.suits(version, present):
                continue
            own = self.host.patches.get(patch.file, "")
            if own or (patch.url and not self.host.offline):
                planned.append(PlannedPatch(patch, patch.sha256 or own))
            else:
                missing.append(patch)
        return planned, missing

    def met(self, versions: Mapping[str, str]) -> list[Clash]:
        """Return the rows that hold for these versions, with what those bring along."""
        together = self.together(versions)
        present = self.present(versions)
        patches = {
            planned.patch.id
            for name, version in versions.items()
            for planned in self.patches(self.packages[name], version, present)[0]
        }
        rows = self.table.clashes
        return [row for row in rows if row.meets(together, present, patches)]

    def together(self, versions: Mapping[str, str]) -> dict[str, str]:
        """Versions with those that are offered, and those that a package builds for itself."""
        own = {name: offer.version for name, offer in self.host.provided.items()}
        known = own | dict(versions)
        for name, version in versions.items():
            for other, its in self.packages[name].brings(version).items():
                known.setdefault(other, its)
        return known

    def _newest(self, package: Package, chosen: Chosen) -> Version:
        """Return the newest version with sources that goes with those chosen before; the newest of
        all if none does, which is refused later with its reason."""
        usable = [v for v in package.versions if self.archives(package, v)]
        if not usable:
            files = ", ".join(archive.file for archive in package.archives)
            raise MissingError.of("sources-missing", name=package.id, files=files)
        before = {name: row.version for name, row in chosen.items()}
        ranked = sorted(
            usable, key=lambda version: _severity(self.met(before | {package.id: version}))
        )
        version = ranked[0]
        others = "" if version == usable[0] else " that goes with the others"
        return Version(version, f"the newest with known sources{others}")

    def _best_set(self, names: tuple[str, ...], wanted: Mapping[str, str]) -> VersionSet | None:
        """Find the set that names most packages of the chain, among those that match the request
        and whose sources are there; of equals the one with fewest known problems, then the
        first."""

        def usable(row: VersionSet) -> bool:
            return all(
                self.archives(self.packages[name], version)
                for name, version in row.versions
                if name in names
            )

        def rank(row: VersionSet) -> tuple[int, int, int, int]:
            versions = {name: v for name, v in row.versions if name in names} | dict(wanted)
            errors, warnings = _severity(self.met(versions))
            return errors, -bool(row.on), -len(versions), warnings

        suited = [row for row in self.table.sets if row.suits(self.host.features, wanted)]
        best = min(filter(usable, suited), key=rank, default=None)
        return None if best is None or rank(best)[0] else best


def _severity(rows: Iterable[Clash]) -> tuple[int, int]:
    """Return how many of them are errors, and how many warnings."""
    levels = [row.level for row in rows]
    return levels.count(Level.ERROR), levels.count(Level.WARNING)


def findings_of(choice: VersionChoice, versions: Mapping[str, str]) -> list[Finding]:
    """Return the known clashes of these versions. Raises CheckFailed for what cannot work."""
    findings = []
    for row in choice.met(versions):
        pair = [_named(choice, name, versions) for name in (row.package, row.other)]
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
    return findings


def _named(choice: VersionChoice, name: str, versions: Mapping[str, str]) -> str:
    """Return a package with its version, and where it comes from if the plan does not build it."""
    label = f"{name} {choice.together(versions)[name]}".rstrip()
    if name in versions:
        return label
    if name in choice.host.provided:
        by = choice.host.provided[name].by
        return label if by == ASSUMED else f"{label} of {by}"
    by = next(
        f"{other} {version}"
        for other, version in versions.items()
        if name in choice.packages[other].brings(version)
    )
    return f"{label}, which {by} brings,"

"""The rows of packages.toml and plans.toml as values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from mpigraft.core.model import Level
from mpigraft.knowledge import Range, version_numbers
from mpigraft.knowledge.reader import RowError, load_table, toml

PACKERS = ("upstream", "debian")
BLOCKS = ("ConfigureMake", "CMakeMake", "Tarball")
EVERY = Range()


@dataclass(frozen=True, slots=True)
class Archive:
    """The sources of one version, by who packed them. Those of a tag are packed by EasyBuild."""

    version: str
    by: str = field(metadata=toml(words=PACKERS))
    file: str
    sha256: str
    url: str = ""  # of the folder that has it; empty: it comes with --sources
    download: str = ""  # its name there, where that is another
    git: str = ""
    repository: str = ""
    tag: str = ""
    prepare: str = ""  # runs before configure
    tools: tuple[str, ...] = ()  # commands that this needs

    def __post_init__(self) -> None:
        if len(self.sha256) != 64 or set(self.sha256) - set("0123456789abcdef"):
            raise RowError("sha256", "is not one")
        if "/" in self.file or self.file.startswith("."):
            raise RowError("file", "is not the name of a file")
        if bool(self.git) is not bool(self.repository and self.tag):
            raise RowError("git", "needs repository and tag")


@dataclass(frozen=True, slots=True)
class Option:
    """What configure gets with another package in the plan, and without it."""

    package: str
    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # packages that it wants besides


@dataclass(frozen=True, slots=True)
class Package:
    """How one package is built."""

    id: str
    what: str
    easyblock: str = field(metadata=toml(words=BLOCKS))
    files: tuple[str, ...] = field(metadata=toml(nonempty=True))
    archives: tuple[Archive, ...] = field(metadata=toml("archive", nonempty=True))
    software: str = ""  # EasyBuild's name, where it is another
    spack: str = ""  # Spack's
    variants: tuple[str, ...] = ()
    module: str = "lib"  # its class of modules
    needs: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    configure: tuple[str, ...] = ()
    make: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()
    options: tuple[Option, ...] = field(default=(), metadata=toml("option"))

    @property
    def name(self) -> str:
        return self.software or self.id

    @property
    def versions(self) -> tuple[str, ...]:
        """All that sources are known of, the newest first."""
        known = {archive.version for archive in self.archives}
        return tuple(sorted(known, key=version_numbers, reverse=True))


@dataclass(frozen=True, slots=True)
class PackageTable:
    packages: tuple[Package, ...] = field(metadata=toml("package", nonempty=True))


@dataclass(frozen=True, slots=True)
class Provided:
    """A package of the machine, which is used where it is."""

    id: str
    what: str
    header: str
    prefixes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Part:
    package: str
    why: str
    on: str = ""  # a fabric or a provided package; empty: always


@dataclass(frozen=True, slots=True)
class Recipe:
    """A chain that ends with the package `root`."""

    id: str
    what: str
    root: str
    parts: tuple[Part, ...] = field(metadata=toml("part", nonempty=True))


@dataclass(frozen=True, slots=True)
class Unneeded:
    id: str
    why: str
    source: str


@dataclass(frozen=True, slots=True)
class VersionSet:
    """Versions that somebody has built and run together."""

    id: str
    what: str
    source: str
    versions: tuple[tuple[str, str], ...]
    on: str = ""  # only for machines with this

    def suits(self, features: Collection[str], wanted: Mapping[str, str]) -> bool:
        known = dict(self.versions)
        return (not self.on or self.on in features) and all(
            known.get(package, version) == version for package, version in wanted.items()
        )


@dataclass(frozen=True, slots=True)
class Clash:
    """Versions of two packages that do not work together."""

    id: str
    package: str
    other: str
    level: Level
    why: str
    fix: str
    source: str
    versions: Range = EVERY
    others: Range = EVERY
    on: tuple[str, ...] = ()

    def meets(self, versions: Mapping[str, str], features: Collection[str]) -> bool:
        mine, its = versions.get(self.package), versions.get(self.other)
        return (
            mine is not None
            and its is not None
            and version_numbers(mine) in self.versions
            and version_numbers(its) in self.others
            and (not self.on or bool(set(self.on) & (set(features) | set(versions))))
        )


@dataclass(frozen=True, slots=True)
class Compiler:
    id: str
    cc: str
    cxx: str
    fc: str
    checked: bool = False  # it was built with; the others are planned only


@dataclass(frozen=True, slots=True)
class PlanTable:
    provided: tuple[Provided, ...]
    recipes: tuple[Recipe, ...] = field(metadata=toml("recipe", nonempty=True))
    unneeded: tuple[Unneeded, ...]
    sets: tuple[VersionSet, ...] = field(metadata=toml("set"))
    clashes: tuple[Clash, ...] = field(metadata=toml("clash"))
    compilers: tuple[Compiler, ...] = field(metadata=toml("compiler", nonempty=True))


def packages() -> Mapping[str, Package]:
    """All packages, by id."""
    return {row.id: row for row in load_table(PackageTable, "builds/packages.toml").packages}


def plan_table() -> PlanTable:
    return load_table(PlanTable, "builds/plans.toml")

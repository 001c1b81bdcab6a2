"""The rows of packages.toml and plans.toml as values."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from mpigraft.core.model import Abi, Level
from mpigraft.knowledge.reader import RowError, load_rows, load_table, toml
from mpigraft.knowledge.sonames import binding_of
from mpigraft.knowledge.versions import Range, version_numbers

PACKERS = ("upstream", "debian")
BLOCKS = ("ConfigureMake", "CMakeMake", "Tarball")
EVERY = Range()


@dataclass(frozen=True, slots=True)
class Archive:
    """The sources of one version, by who packed them. Those of a tag are packed by EasyBuild."""

    version: str
    by: str = field(metadata=toml(words=PACKERS))
    file: str
    source: str  # who publishes this SHA-256, or names the commit
    sha256: str = ""  # empty of a commit alone, which proves the content
    url: str = ""  # of the folder that has it; empty: it comes with --sources
    download: str = ""  # its name there, where that is another
    git: str = ""
    repository: str = ""
    tag: str = ""
    commit: str = ""
    prepare: str = ""  # runs before configure
    tools: tuple[str, ...] = ()  # commands that this needs

    def __post_init__(self) -> None:
        _check_file(self.file, self.sha256 or ("0" * 64 if self.commit else ""))
        if bool(self.git) is not bool(self.repository and (self.tag or self.commit)):
            raise RowError("git", "needs repository, and tag or commit")


def _check_file(name: str, sha256: str) -> None:
    if len(sha256) != 64 or set(sha256) - set("0123456789abcdef"):
        raise RowError("sha256", "is not one")
    if "/" in name or name.startswith("."):
        raise RowError("file", "is not the name of a file")


@dataclass(frozen=True, slots=True)
class Patch:
    """A change of the sources that some versions want."""

    id: str
    file: str
    why: str
    source: str
    versions: Range = EVERY
    on: tuple[str, ...] = ()  # any of these: a fabric, a package, an architecture; none: always
    besides: tuple[str, ...] = ()  # and any of these
    sha256: str = ""  # empty: nobody publishes it, and only --sources can have the file
    url: str = ""  # of the folder that has it
    download: str = ""  # its name there

    def __post_init__(self) -> None:
        _check_file(self.file, self.sha256 or "0" * 64)
        if bool(self.url) is not bool(self.sha256):
            raise RowError("url", "and sha256 belong together")
        if not self.file.endswith(".patch"):
            raise RowError("file", "does not end with .patch")

    def suits(self, version: str, present: Collection[str]) -> bool:
        """Return whether a version wants it where all these are present."""
        return version_numbers(version) in self.versions and all(
            not some or not set(some).isdisjoint(present) for some in (self.on, self.besides)
        )


@dataclass(frozen=True, slots=True)
class Bundle:
    """Packages that a version brings along and builds for itself, where the plan has no other."""

    version: str
    source: str
    brings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Option:
    """What configure gets with another package in the plan, and without it."""

    package: str = ""  # or an interface; empty: with or without any
    beside: str = ""  # only where this is there too
    without: str = ""  # only where this is not
    versions: Range = EVERY  # of the package that has the option
    present: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()
    absent_variants: tuple[str, ...] = field(default=(), metadata=toml("absent-variants"))
    needs: tuple[str, ...] = ()  # packages that it wants besides

    def applies(self, present: Collection[str]) -> bool:
        """Return whether it applies where all these are present."""
        return (not self.beside or self.beside in present) and self.without not in present

    def words(self, present: Collection[str]) -> tuple[str, ...]:
        """Return the words for configure where all these are present."""
        return self.present if not self.package or self.package in present else self.absent


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
    work: float = 60.0  # seconds of one core to build it, about; for the time that is left
    needs: tuple[str, ...] = ()
    one_of: tuple[str, ...] = field(default=(), metadata=toml("one-of"))
    tools: tuple[str, ...] = ()
    configure: tuple[str, ...] = ()
    make: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    install: str = ""
    skip: tuple[str, ...] = ()
    options: tuple[Option, ...] = field(default=(), metadata=toml("option"))
    patches: tuple[Patch, ...] = field(default=(), metadata=toml("patch"))
    bundles: tuple[Bundle, ...] = field(default=(), metadata=toml("bundle"))
    from_stack: bool = field(default=False, metadata=toml("from-stack"))  # a stack's own will do

    @property
    def name(self) -> str:
        return self.software or self.id

    @property
    def versions(self) -> tuple[str, ...]:
        """All that sources are known of, the newest first."""
        known = {archive.version for archive in self.archives}
        return tuple(sorted(known, key=version_numbers, reverse=True))

    def options_of(self, version: str) -> tuple[Option, ...]:
        """Return the options that a version has."""
        numbers = version_numbers(version)
        return tuple(option for option in self.options if numbers in option.versions)

    def gives(self, interface: str, version: str, present: Collection[str]) -> bool:
        """Return whether a version can have an interface where all these are present."""
        options = self.options_of(version)
        return any(o.package == interface and o.applies(present) for o in options)

    def brings(self, version: str) -> Mapping[str, str]:
        """Return what a version builds for itself: package to version."""
        return {n: v for row in self.bundles if row.version == version for n, v in row.brings}


@dataclass(frozen=True, slots=True)
class Provided:
    """A package of the machine, which is used where it is."""

    id: str
    what: str
    header: str
    prefixes: tuple[str, ...]
    on: str = ""  # what a machine that has it has too: nvidia, amd, infiniband, slurm
    usual: str = ""  # where another machine that has `on` has it, as far as anybody knows


@dataclass(frozen=True, slots=True)
class BuildPart:
    package: str
    why: str
    on: str = ""  # a fabric, a device or a provided package; empty: always
    unless: str = ""  # only where this is not


@dataclass(frozen=True, slots=True)
class Recipe:
    """A chain that ends with the package `root`."""

    id: str
    what: str
    root: str
    abi: Abi
    parts: tuple[BuildPart, ...] = field(metadata=toml("part", nonempty=True))


@dataclass(frozen=True, slots=True)
class Interface:
    """What an MPI may have besides C's interface."""

    id: str
    what: str
    language: str  # of sonames.toml
    part: str = ""  # of the language; empty: any

    def sonames(self, needed: Iterable[str], abi: Abi) -> list[str]:
        """Return those of some sonames that are libraries of this interface, of one ABI."""
        return [
            soname
            for soname in needed
            if (binding := binding_of(soname)) is not None
            and (binding.abi, binding.language) == (abi, self.language)
            and self.part in ("", binding.part)
        ]


@dataclass(frozen=True, slots=True)
class Unneeded:
    id: str
    why: str
    source: str
    on: str = ""  # printed with plans that have this


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
    absent: str = ""  # only where this is not there
    patch: str = ""  # the patch that mends it

    def meets(
        self, versions: Mapping[str, str], features: Collection[str], patches: Collection[str] = ()
    ) -> bool:
        """Return whether it holds for these versions, empty where they are not known, on a machine
        with these features, and with these patches."""
        present = set(features) | set(versions)
        return (
            _within(versions.get(self.package), self.versions)
            and _within(versions.get(self.other), self.others)
            and (not self.on or bool(set(self.on) & present))
            and self.absent not in present
            and not (self.patch and self.patch in patches)
        )


def _within(version: str | None, span: Range) -> bool:
    return version is not None and (
        span == EVERY or (bool(version) and version_numbers(version) in span)
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
    interfaces: tuple[Interface, ...] = field(metadata=toml("interface", nonempty=True))
    unneeded: tuple[Unneeded, ...]
    sets: tuple[VersionSet, ...] = field(metadata=toml("set"))
    clashes: tuple[Clash, ...] = field(metadata=toml("clash"))
    compilers: tuple[Compiler, ...] = field(metadata=toml("compiler", nonempty=True))


def packages() -> Mapping[str, Package]:
    """Return all packages, by id."""
    return {row.id: row for row in load_rows(Package, "package", "builds/packages.toml")}


def plan_table() -> PlanTable:
    return load_table(PlanTable, "builds/plans.toml")

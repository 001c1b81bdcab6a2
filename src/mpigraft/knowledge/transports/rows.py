"""Rows of transports.toml and tells of families.toml as values, checked when they are read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from typing import Any

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Family, Kind, Peer, Sign
from mpigraft.knowledge.reader import Document, RowError, read_named, read_table, toml
from mpigraft.knowledge.transports.fabrics import fabrics
from mpigraft.knowledge.versions import Range

FACTS = ("interface", "lnx_cxi_links")  # what templates may name
WIRES = ("bytes", "none")
GPUS = ("nvidia", "amd")
COPIES = ("xpmem", "knem", "cma")
Pairs = tuple[tuple[str, str], ...]


def known_flags() -> tuple[str, ...]:
    """Return the conditions of a machine that `when` may name."""
    return (*(fabric.id for fabric in fabrics()), "loopback", "xpmem", *GPUS)


def _check_pattern(key: str, text: str) -> None:
    try:
        re.compile(text)
    except re.error as error:
        raise RowError(key, f"not a regular expression: {error}") from None


@dataclass(frozen=True, slots=True)
class Tell:
    """One kind of line that a family prints, with `{lane}` for what it names."""

    pattern: str
    says: str  # the same as text, a clause with `{lane}`
    lane: str
    source: str
    name: str = field(default="", metadata=toml(other=True))
    other: str = ""  # name in results of a lane that contradicts; empty: as printed
    peers: tuple[Peer, ...] = ()  # empty: those of the transport
    env: Pairs = ()

    def __post_init__(self) -> None:
        _check_pattern("pattern", self.pattern.replace("{lane}", "(?P<lane>x)"))
        _check_pattern("lane", self.lane)
        for key, text in (("pattern", self.pattern), ("says", self.says)):
            if text.count("{lane}") != 1:
                raise RowError(key, "{lane} must be in it once")

    def proof(self, expect: str, *, named: bool) -> str:
        """Return the line that names `expect`, in group `lane` if it is to be named in results."""
        return self._with(f"(?P<{'lane' if named else 'told'}>{expect})")

    def contradiction(self, expect: str | None) -> str:
        """Return the line that names anything else; None: that names anything at all."""
        tail = self.pattern.partition("{lane}")[2]
        but = "" if expect is None else f"(?!(?:{expect}){tail})"
        return self._with(f"{but}(?P<{'told' if self.other else 'lane'}>{self.lane})")

    def _with(self, lane: str) -> str:
        return self.pattern.replace("{lane}", lane)


@dataclass(frozen=True, slots=True)
class FamilyRow:
    like: str = ""  # the family whose tells it has too
    tells: tuple[tuple[str, Tell], ...] = ()


@dataclass(frozen=True, slots=True)
class When:
    """The MPIs and machines that a row is for."""

    mpi: Range | None = None
    libfabric: Range | None = None
    ucx: Range | None = None
    flags: tuple[tuple[str, bool], ...] = field(default=(), metadata=toml(rest=True))

    def __post_init__(self) -> None:
        for name, _ in self.flags:
            if name not in known_flags():
                raise RowError(name, "unknown key")

    def overlaps(self, other: When) -> bool:
        """Return whether both are for some MPI on some machine."""
        ranges = (
            (self.mpi, other.mpi),
            (self.libfabric, other.libfabric),
            (self.ucx, other.ucx),
        )
        for first, second in ranges:
            if first is not None and second is not None and not first.meets(second):
                return False
        flags, others = dict(self.flags), dict(other.flags)
        return all(flags[name] == others[name] for name in flags.keys() & others.keys())


@dataclass(frozen=True, slots=True)
class Needs:
    components: tuple[str, ...] = ()  # framework:name
    netmod: str = ""  # of MPICH's ch4
    providers: tuple[str, ...] = ()  # of libfabric
    tls: tuple[str, ...] = ()  # transports of UCX, by the beginning of their names
    fabric: str = ""  # a device of this kind, up
    gpu: str = field(default="", metadata=toml(words=GPUS))  # a GPU of this vendor
    copy: str = field(default="", metadata=toml(words=COPIES))  # means of copying between processes

    def __post_init__(self) -> None:
        for component in self.components:
            if component.count(":") != 1:
                raise RowError("components", f"{component!r} is not framework:name")
        names = [fabric.id for fabric in fabrics()]
        if self.fabric and self.fabric not in names:
            raise RowError("fabric", f"{self.fabric!r} is none of {', '.join(names)}")


@dataclass(frozen=True, slots=True)
class SignRow:
    """A sign as it is written: one tell, what it has to name, and for which traffic."""

    use: str = ""  # every sign of this group, and no other key
    tell: str = ""
    expect: str = ""
    also: str = ""
    words: str = ""
    lane: bool | str = False
    wire: str = field(default="", metadata=toml(words=WIRES))
    unrequested: bool = False
    absent: bool = False
    kinds: tuple[Kind, ...] = tuple(Kind)
    peers: tuple[Peer, ...] = ()

    def __post_init__(self) -> None:
        if self.use:
            return
        if not self.tell or not (self.expect or self.absent):
            raise RowError("expect" if self.tell else "tell", "missing")
        _check_pattern("expect", self.expect)
        _check_pattern("also", self.also)
        if not self.absent and not self.plain:
            raise RowError("words", f"missing: a person cannot read {self.expect!r}")
        if self.wire and not self.lane:
            raise RowError("wire", "only a sign that names the lane may claim the wire")

    @property
    def plain(self) -> str:
        """What it expects, as text."""
        return self.words or plain_words(self.expect)


@dataclass(frozen=True, slots=True)
class TransportRow:
    id: str
    name: str
    family: Family
    sources: tuple[str, ...]
    peers: tuple[Peer, ...] = field(metadata=toml(nonempty=True))
    when: When = When()
    needs: Needs = Needs()
    env: Pairs = ()
    launcher: Pairs = ()
    sign_rows: tuple[SignRow, ...] = field(default=(), metadata=toml("signs"))
    unreported: tuple[Kind, ...] = ()  # kinds that this MPI prints nothing about
    broken: str = ""
    variant: bool = False  # another way to have a row's lanes, used only if it is named
    historic: bool = False  # of machines that no longer exist
    modules: tuple[str, ...] = ()  # to load, and with a minus to unload, for an MPI so selected
    issues: tuple[str, ...] = ()
    signs: tuple[Sign, ...] = field(
        default=(), metadata=toml(other=True)
    )  # of `sign_rows` and their tells
    probe: Pairs = field(
        default=(), metadata=toml(other=True)
    )  # environment that makes the tells print

    def __post_init__(self) -> None:
        for key, pairs in (("env", self.env), ("launcher", self.launcher)):
            for name, value in pairs:
                _check_template(f"{key}.{name}", name, value)
        if not self.env and not self.modules:
            raise RowError("env", "nothing is forced, so another transport could run instead")
        if Kind.P2P in self.unreported:
            raise RowError("unreported", "messages must be reported")


@dataclass(frozen=True, slots=True)
class TransportTable:
    groups: tuple[tuple[str, tuple[SignRow, ...]], ...] = ()
    transport: tuple[TransportRow, ...] = ()


Tells = Mapping[Family, Mapping[str, Tell]]
Groups = Mapping[str, Sequence[SignRow]]


def read_tells(families: Document, file: str = "families.toml") -> Tells:
    """Read every family's tells by name. Raises UsageError for a wrong one."""
    tells: dict[Family, dict[str, Tell]] = {}
    for family, row in read_named(FamilyRow, families, file).items():
        if family not in set(Family):
            raise UsageError.of("transports-family-unknown", file=file, family=family)
        if row.like and row.like not in tells:
            raise UsageError.of("transports-like-unknown", file=file, family=family, like=row.like)
        inherited = tells[Family(row.like)] if row.like else {}
        tells[Family(family)] = inherited | {n: replace(tell, name=n) for n, tell in row.tells}
    return tells


def read_transports(
    transports: Document, tells: Tells, file: str = "transports.toml"
) -> tuple[TransportRow, ...]:
    """Read every row. Raises UsageError for a wrong row, for an id that is repeated, and for two
    rows of one name that could both be for some MPI on some machine."""
    tables = transports.get("transport", [])
    single = [one for number, table in enumerate(tables, 1) for one in _each(table, file, number)]
    document = read_table(TransportTable, {**transports, "transport": single}, file)
    groups = dict(document.groups)
    rows = tuple(
        _with_signs(row, groups, tells, f"{file}, row {row.id}") for row in document.transport
    )
    for first, second in combinations(rows, 2):
        named = (first.family, first.name) == (second.family, second.name)
        if named and first.when.overlaps(second.when):
            both = f"{first.id} and {second.id}"
            raise UsageError.of(
                "transports-ambiguous", file=file, both=both, family=first.family, name=first.name
            )
    return rows


def _each(table: Any, file: str, number: int) -> Iterator[Any]:
    """Yield a table, or one of it for each of `each`, whose words replace `<name>` in its texts."""
    if not isinstance(table, dict) or "each" not in table:
        yield table
        return
    where = f"{file}, row {table.get('id', number)}"
    if not isinstance(table["each"], list):
        raise UsageError.of("transports-each-not-list", where=where, value=table["each"])
    for n, words in enumerate(table["each"], 1):
        named = read_named(str, words, f"{where}, each {n}")
        rest = {key: value for key, value in table.items() if key != "each"}
        yield _filled(rest, named, where)


def _filled(value: Any, words: Mapping[str, str], where: str) -> Any:
    """Return a value of TOML with the words in its texts. Raises UsageError for a name without a
    word."""
    if isinstance(value, str):
        for name, word in words.items():
            value = value.replace(f"<{name}>", word)
        # (?P<lane>...) and (?<!...) are a pattern's own
        if unfilled := re.search(r"(?<![P?])<(\w+)>", value):
            raise UsageError.of("transports-each-unfilled", where=where, word=unfilled[0])
        return value
    if isinstance(value, dict):
        return {key: _filled(inner, words, where) for key, inner in value.items()}
    return [_filled(inner, words, where) for inner in value] if isinstance(value, list) else value


def _with_signs(row: TransportRow, groups: Groups, tells: Tells, where: str) -> TransportRow:
    """Return the row with the signs and the probe's environment of its tells."""
    known = tells.get(row.family, {})
    signs: list[Sign] = []
    probe: dict[str, str] = {}
    for sign in _expanded(row.sign_rows, groups, where):
        tell = known.get(sign.tell)
        if tell is None:
            raise UsageError.of(
                "transports-tell-unknown", where=where, family=row.family, tell=sign.tell
            )
        signs += _signs(sign, tell, row.peers)
        for name, value in tell.env:
            if probe.setdefault(name, value) != value:
                why = f"another tell of this row sets {name} differently"
                raise UsageError.of("transports-tell-invalid", where=where, problem=why)
    made = replace(row, signs=tuple(signs), probe=tuple(probe.items()))
    _refuse_unprovable(made, where)
    return made


def _expanded(rows: Sequence[SignRow], groups: Groups, where: str) -> Iterator[SignRow]:
    """Yield the signs with each `use` replaced by those of its group."""
    for row in rows:
        if row.use and row.use not in groups:
            raise UsageError.of("transports-group-unknown", where=where, use=row.use)
        if row.use:
            rest = {name: group for name, group in groups.items() if name != row.use}
            yield from _expanded(groups[row.use], rest, where)
        else:
            yield row


def _signs(row: SignRow, tell: Tell, peers: tuple[Peer, ...]) -> Iterator[Sign]:
    """Yield two signs for each kind and peer class: what proves the request, what contradicts
    it."""
    expect = None if row.absent else row.expect
    classes = row.peers or tell.peers or tuple(p for p in peers if p is not Peer.SELF)
    lane = row.lane if isinstance(row.lane, str) else tell.name if row.lane else ""
    for kind, peer in product(row.kinds, (p for p in classes if p in peers)):
        if expect is not None:
            pattern = tell.proof(expect, named=row.lane is True)
            yield Sign(
                kind, peer, pattern, lane, proves=True, wire=row.wire,
                unrequested=row.unrequested, says=tell.says, due=row.plain,
            )  # fmt: skip
        allowed = f"{expect}|{row.also}" if row.also else expect
        other = tell.other or tell.name
        yield Sign(kind, peer, tell.contradiction(allowed), other, False, says=tell.says)


def plain_words(expect: str) -> str:
    """Write `sm|rdma` as `sm or rdma`, `tcp(;ofi_rxm)?` as `tcp or tcp;ofi_rxm`; empty for an
    expression that is not a list of words."""
    text = re.sub(r"\\([+.])", r"\1", expect)
    if short := re.fullmatch(r"([\w;]+)\(([\w;]+)\)\?", text):
        return f"{short[1]} or {short[1]}{short[2]}"
    return " or ".join(text.split("|")) if re.fullmatch(r"[\w;:+. |-]+", text) else ""


def _check_template(key: str, name: str, value: str) -> None:
    """Refuse a fact that does not exist here, not at a launch."""
    for fact in re.findall(r"\{([^}]*)\}", value):
        if fact not in FACTS:
            raise RowError(key, f"unknown fact {fact!r}")
    if not re.fullmatch(r"[A-Z_][A-Za-z0-9_]*", name):
        raise RowError(key, "not a name of the environment")


def _refuse_unprovable(row: TransportRow, where: str) -> None:
    """Refuse a row that could not be proven: each kind and peer class that it serves, self left
    out, needs a sign that names the lane, unless the row says that this kind is never reported."""
    for kind, peer in product(Kind, (p for p in row.peers if p is not Peer.SELF)):
        named = [s for s in row.signs if (s.kind, s.peer) == (kind, peer) and s.proves and s.lane]
        if bool(named) is (kind in row.unreported):
            what = (
                "names the lane although unreported" if named else "has no sign that names the lane"
            )
            raise UsageError.of(
                "transports-signs-invalid", where=where, kind=kind, peer=peer, problem=what
            )

"""Rows of transports.toml and tells of families.toml as values, checked when they are read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any

from mpigraft.errors import UsageError
from mpigraft.knowledge.table import Document, Range, Table, version_range
from mpigraft.model import Family, Kind, Peer, Sign

FACTS = ("interface", "lnx_cxi_links")  # what templates may name
FLAGS = ("cxi", "mellanox", "loopback", "xpmem")  # what `when` may ask of the machine
WIRES = ("bytes", "none")
FABRICS = ("cxi", "verbs", "mellanox", "efa", "omnipath")  # of which `needs` may want a device
GPUS = ("nvidia", "amd")
COPIES = ("xpmem", "knem", "cma")


@dataclass(frozen=True, slots=True)
class Tell:
    """One kind of line that a family prints, with `{lane}` for what it tells."""

    name: str
    pattern: str
    says: str  # the same for a person, a clause with `{lane}`
    lane: str
    other: str  # name in results of what it tells against; empty: as told
    peers: tuple[Peer, ...]  # empty: those of the transport
    env: tuple[tuple[str, str], ...]
    source: str

    def proof(self, expect: str, *, named: bool) -> str:
        """The line that tells `expect`, in group `lane` if it is to be named in results."""
        return self._with(f"(?P<{'lane' if named else 'told'}>{expect})")

    def contradiction(self, expect: str | None) -> str:
        """The line that tells anything else; None: that tells anything at all."""
        tail = self.pattern.partition("{lane}")[2]
        but = "" if expect is None else f"(?!(?:{expect}){tail})"
        return self._with(f"{but}(?P<{'told' if self.other else 'lane'}>{self.lane})")

    def _with(self, lane: str) -> str:
        return self.pattern.replace("{lane}", lane)


@dataclass(frozen=True, slots=True)
class When:
    """What a row asks of an MPI and a machine before it is meant at all."""

    mpi: Range | None
    libfabric: Range | None
    ucx: Range | None
    flags: tuple[tuple[str, bool], ...]

    def overlaps(self, other: When) -> bool:
        """Whether some MPI on some machine is meant by both."""
        mine_and_theirs = (
            (self.mpi, other.mpi),
            (self.libfabric, other.libfabric),
            (self.ucx, other.ucx),
        )
        for one, two in mine_and_theirs:
            if one is not None and two is not None and not one.meets(two):
                return False
        mine, theirs = dict(self.flags), dict(other.flags)
        return all(mine[name] == theirs[name] for name in mine.keys() & theirs.keys())


@dataclass(frozen=True, slots=True)
class Needs:
    components: tuple[str, ...]  # framework:name
    netmod: str  # of MPICH's ch4
    providers: tuple[str, ...]  # of libfabric
    tls: tuple[str, ...]  # transports of UCX, by the beginning of their names
    fabric: str  # a device of this kind, up
    gpu: str  # a GPU of this vendor
    copy: str  # means of copying between processes


@dataclass(frozen=True, slots=True)
class Row:
    id: str
    name: str
    family: Family
    when: When
    needs: Needs
    peers: tuple[Peer, ...]
    env: tuple[tuple[str, str], ...]
    launcher: tuple[tuple[str, str], ...]
    probe: tuple[tuple[str, str], ...]
    signs: tuple[Sign, ...]
    untold: tuple[Kind, ...]  # kinds of which this MPI says nothing
    broken: str
    variant: bool  # another way to have a row's lanes, for who asks for it by name
    historic: bool  # of machines that are gone
    modules: tuple[str, ...]  # to load, and with a minus to unload, for an MPI that these choose
    issues: tuple[str, ...]
    sources: tuple[str, ...]


Tells = Mapping[Family, Mapping[str, Tell]]
Groups = Mapping[str, Sequence[Table]]


def read_tells(families: Document, file: str = "families.toml") -> Tells:
    """Every family's tells by name. Raises UsageError for a wrong one."""
    found: dict[Family, dict[str, Tell]] = {}
    for family, table in families.items():
        if family not in set(Family):
            raise UsageError(f"{file}: {family} is no family")
        whole = Table(f"{file}, {family}", table)
        rows, like = whole.table("tells"), whole.text("like", "")
        whole.done()
        if like and like not in found:
            raise whole.wrong("like", f"no family {like} stands before it")
        inherited = found[Family(like)] if like else {}
        found[Family(family)] = inherited | {name: _tell(rows, name) for name in rows.data}
    return found


def _tell(rows: Table, name: str) -> Tell:
    table = rows.table(name)
    pattern = table.pattern("pattern", sample="(?P<lane>x)")
    if pattern.count("{lane}") != 1:
        raise table.wrong("pattern", "{lane} must stand in it once")
    lane = table.pattern("lane")
    says = table.text("says")
    if says.count("{lane}") != 1:
        raise table.wrong("says", "{lane} must stand in it once")
    tell = Tell(
        name=name,
        pattern=pattern,
        says=says,
        lane=lane,
        other=table.text("other", ""),
        peers=_peers(table, "peers"),
        env=table.words("env"),
        source=table.text("source"),
    )
    table.done()
    return tell


def read_rows(transports: Document, tells: Tells, file: str = "transports.toml") -> tuple[Row, ...]:
    """Every row. Raises UsageError for a wrong row, for an id that stands twice, and for two rows
    of one name that some MPI on some machine could both be meant by."""
    top = Table(file, dict(transports))
    groups = {name: top.table("groups").tables(name) for name in top.table("groups").data}
    rows = []
    for table in top.tables("transport"):
        for single in _each(table):
            single.where = f"{file}, row {single.text('id')}"
            rows.append(_row(single, groups, tells))
    top.done()
    for one, two in combinations(rows, 2):
        if one.id == two.id:
            raise UsageError(f"{file}: two rows are called {one.id}")
        if (one.family, one.name) == (two.family, two.name) and one.when.overlaps(two.when):
            raise UsageError(
                f"{file}: rows {one.id} and {two.id} can both be meant by {one.family} {one.name}",
                why="exactly one row may match a wish on a machine",
            )
    return tuple(rows)


def _each(table: Table) -> Iterator[Table]:
    """A table, or one of it for each of `each`, whose words stand for `<name>` in its texts."""
    if "each" not in table.data:
        yield table
        return
    for number, one in enumerate(table.tables("each"), 1):
        words = dict(one.words_of_all())
        rest = {key: value for key, value in table.data.items() if key != "each"}
        yield Table(f"{table.where}, each {number}", _filled(table, rest, words))


def _filled(table: Table, value: Any, words: Mapping[str, str]) -> Any:
    """A value of TOML with the words in its texts; a place without a word is refused."""
    if isinstance(value, str):
        for name, word in words.items():
            value = value.replace(f"<{name}>", word)
        # (?P<lane>...) and (?<!...) are a pattern's own
        if left := re.search(r"(?<![P?])<(\w+)>", value):
            raise table.wrong("each", f"no word is given for {left[0]}")
        return value
    if isinstance(value, dict):
        return {key: _filled(table, inner, words) for key, inner in value.items()}
    return [_filled(table, inner, words) for inner in value] if isinstance(value, list) else value


def _row(table: Table, groups: Groups, tells: Tells) -> Row:
    family = Family(table.choice("family", tuple(Family)))
    peers = _peers(table, "peers")
    if not peers:
        raise table.wrong("peers", "missing")
    known = tells.get(family, {})
    signs: list[Sign] = []
    probe: dict[str, str] = {}
    for sign in _opened(table.tables("signs"), groups):
        tell = known.get(sign.text("tell"))
        if tell is None:
            raise sign.wrong("tell", f"{family} tells nothing called {sign.text('tell')}")
        signs += _signs(sign, tell, peers)
        for name, value in tell.env:
            if probe.setdefault(name, value) != value:
                raise sign.wrong("tell", f"another tell of this row sets {name} differently")
    row = Row(
        id=table.text("id"),
        name=table.text("name"),
        family=family,
        when=_when(table.table("when")),
        needs=_needs(table.table("needs")),
        peers=peers,
        env=_templates(table, "env"),
        launcher=_templates(table, "launcher"),
        probe=tuple(probe.items()),
        untold=_kinds(table, "untold", []),
        signs=tuple(signs),
        broken=table.text("broken", ""),
        variant=bool(table.flag("variant")),
        historic=bool(table.flag("historic")),
        modules=table.texts("modules", []),
        issues=table.texts("issues", []),
        sources=table.texts("sources"),
    )
    table.done()
    _provable(table, row)
    return row


def _opened(tables: Sequence[Table], groups: Groups) -> Iterator[Table]:
    """The sign tables with each `use` replaced by the signs of its group."""
    for table in tables:
        if "use" not in table.data:
            yield Table(table.where, table.data)  # fresh: a group's keys are taken by every user
            continue
        name = table.text("use")
        if name not in groups:
            raise table.wrong("use", f"no group is called {name}")
        yield from _opened(groups[name], {k: v for k, v in groups.items() if k != name})


def _signs(table: Table, tell: Tell, peers: tuple[Peer, ...]) -> Iterator[Sign]:
    """Two signs for each kind and peer class: what proves the wish, what contradicts it."""
    absent = bool(table.flag("absent"))
    expect = None if absent else table.pattern("expect")
    also = table.pattern("also", "")
    words = table.text("words", "") or plain_words(expect or "")
    label = table.label("lane")
    wire = table.choice("wire", WIRES, "")
    beside = bool(table.flag("beside"))
    kinds = _kinds(table, "kinds", list(Kind))
    wanted = _peers(table, "peers") or tell.peers or tuple(p for p in peers if p is not Peer.SELF)
    table.done()
    if expect is not None and not words:
        raise table.wrong("words", f"missing: a person cannot read {expect!r}")
    if wire and not label:
        raise table.wrong("wire", "only a sign that names the lane may claim the wire")
    lane = label if isinstance(label, str) else tell.name if label else ""
    for kind, peer in product(kinds, (p for p in wanted if p in peers)):
        if expect is not None:
            pattern = tell.proof(expect, named=label is True)
            told = (tell.says, words)
            yield Sign(kind, peer, pattern, lane, True, "any", wire, beside, *told)
        fine = f"{expect}|{also}" if also else expect
        other = tell.other or tell.name
        yield Sign(kind, peer, tell.contradiction(fine), other, False, says=tell.says)


def plain_words(expect: str) -> str:
    """`sm|rdma` -> `sm or rdma`, `tcp(;ofi_rxm)?` -> `tcp or tcp;ofi_rxm`; empty for an expression
    that is no list of words."""
    text = re.sub(r"\\([+.])", r"\1", expect)
    if short := re.fullmatch(r"([\w;]+)\(([\w;]+)\)\?", text):
        return f"{short[1]} or {short[1]}{short[2]}"
    return " or ".join(text.split("|")) if re.fullmatch(r"[\w;:+. |-]+", text) else ""


def _kinds(table: Table, key: str, default: Sequence[str]) -> tuple[Kind, ...]:
    names = table.texts(key, list(default))
    for name in names:
        if name not in set(Kind):
            raise table.wrong(key, f"{name!r} is none of {', '.join(Kind)}")
    return tuple(Kind(name) for name in names)


def _peers(table: Table, key: str) -> tuple[Peer, ...]:
    names = table.texts(key, [])
    for name in names:
        if name not in set(Peer):
            raise table.wrong(key, f"{name!r} is none of {', '.join(Peer)}")
    return tuple(Peer(name) for name in names)


def _when(table: Table) -> When:
    flags = [(name, table.flag(name)) for name in FLAGS]
    when = When(
        mpi=version_range(table, "mpi"),
        libfabric=version_range(table, "libfabric"),
        ucx=version_range(table, "ucx"),
        flags=tuple((name, flag) for name, flag in flags if flag is not None),
    )
    table.done()
    return when


def _needs(table: Table) -> Needs:
    needs = Needs(
        components=table.texts("components", []),
        netmod=table.text("netmod", ""),
        providers=table.texts("providers", []),
        tls=table.texts("tls", []),
        fabric=table.choice("fabric", FABRICS, ""),
        gpu=table.choice("gpu", GPUS, ""),
        copy=table.choice("copy", COPIES, ""),
    )
    for component in needs.components:
        if component.count(":") != 1:
            raise table.wrong("components", f"{component!r} is not framework:name")
    table.done()
    return needs


def _templates(table: Table, key: str) -> tuple[tuple[str, str], ...]:
    """Environment templates; a fact that nobody states is refused here, not at a launch."""
    rows = table.words(key)
    for name, value in rows:
        for fact in re.findall(r"\{([^}]*)\}", value):
            if fact not in FACTS:
                raise table.wrong(f"{key}.{name}", f"no fact is called {fact!r}")
        if not re.fullmatch(r"[A-Z_][A-Za-z0-9_]*", name):
            raise table.wrong(f"{key}.{name}", "not a name of the environment")
    return rows


def _provable(table: Table, row: Row) -> None:
    """Refuse a row that could not be proven: each kind and peer class that it serves, self left
    out, needs a sign that names the lane, unless the row says that this kind is never told."""
    if not row.env and not row.modules:
        raise table.wrong("env", "nothing is forced, so another transport could run instead")
    for kind, peer in product(Kind, (p for p in row.peers if p is not Peer.SELF)):
        named = [s for s in row.signs if (s.kind, s.peer) == (kind, peer) and s.proves and s.lane]
        if bool(named) is (kind in row.untold):
            what = "names the lane although untold" if named else "has no sign that names the lane"
            raise table.wrong("signs", f"{kind} {peer} {what}")
    if Kind.P2P in row.untold:
        raise table.wrong("untold", "messages must be told")

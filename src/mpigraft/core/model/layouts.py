"""The grammar of layouts: keys such as `2x8x7:l3cache-numa+gpus`, written and read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mpigraft.core.errors import UsageError

if TYPE_CHECKING:
    from mpigraft.core.model.nodes import Layout

MAP_BY = ("core", "l3cache", "numa", "socket", "node")
BIND_TO = ("core", "l3cache", "numa", "socket", "none")
LAYOUT_PATTERN = re.compile(
    r"(?P<nodes>\d{1,6})x(?P<ranks>\d{1,6})(?:x(?P<threads>\d{1,6}))?"
    r"(?::(?P<map>[a-z0-9]+))?(?:-(?P<bind>[a-z0-9]+))?(?P<gpus>\+gpus)?",
    re.ASCII,
)
EXAMPLE = "for example 2x8 (nodes x ranks per node), 2x8x7 with threads, 2x8x7:l3cache-numa+gpus"

MAX_COUNT = 999_999  # nodes, ranks and threads, each: what LAYOUT_PATTERN has room for


def parse_layout(text: str, cores: int) -> Layout:
    """Read a layout from its key: `2x8x7:l3cache-numa+gpus`. Where a mapping or a binding is
    written, launchers get the CPUs, of `2x8:core` and `2x8-core` too. More ranks times threads
    than `cores` of a node are not bound; raises UsageError where they were to be, and for other
    words."""
    from mpigraft.core.model.nodes import Layout

    match = LAYOUT_PATTERN.fullmatch(text)
    numbers = [int(match[name] or 1) for name in ("nodes", "ranks", "threads")] if match else [0]
    if match is None or 0 in numbers:
        near = _meant(text) if match is None else ""
        raise UsageError.of("layout-invalid", text=text, near=near, example=EXAMPLE)
    nodes, ranks, threads = numbers
    map_by, bind = match["map"] or "core", match["bind"] or ""
    _refuse_unknown(f"layout {text!r}: mapping", map_by, MAP_BY)
    _refuse_unknown(f"layout {text!r}: binding", bind or "core", BIND_TO)
    crowded = ranks * threads > cores
    if crowded and bind not in ("", "none"):
        raise UsageError.of(
            "layout-binds-too-much", text=text, ranks=ranks, each=count_cores(threads), total=cores
        )
    explicit, gpus = bool(match["map"] or bind), bool(match["gpus"])
    bind = "none" if crowded else bind or "core"
    usual = (map_by, bind) == ("core", "core") and not gpus  # else the key tells by itself
    return Layout(nodes, ranks, threads, bind, map_by, gpus, explicit=explicit and usual)


def layout_key(
    nodes: int,
    ranks_per_node: int,
    threads: int = 1,
    map_by: str = "",
    bind_to: str = "",
    gpus: bool = False,
) -> str:
    """Write the key that flags mean, for `parse_layout`: what was given, and no default for what
    was not. Raises UsageError, naming the flag."""
    numbers = {"--nodes": nodes, "--ranks-per-node": ranks_per_node, "--threads": threads}
    for flag, number in numbers.items():
        refuse_count(flag, number)
    _refuse_unknown("--map-by", map_by or "core", MAP_BY)
    _refuse_unknown("--bind-to", bind_to or "core", BIND_TO)
    words = f"{nodes}x{ranks_per_node}" + (f"x{threads}" if threads > 1 else "")
    words += (f":{map_by}" if map_by else "") + (f"-{bind_to}" if bind_to else "")
    return f"{words}{'+gpus' if gpus else ''}"


def refuse_count(flag: str, number: int) -> None:
    """Raise UsageError for an invalid number of nodes, ranks or threads."""
    if not 1 <= number <= MAX_COUNT:
        raise UsageError.of("number-invalid", flag=flag, value=number, most=MAX_COUNT)


def _refuse_unknown(what: str, word: str, known: tuple[str, ...]) -> None:
    if word not in known:
        raise UsageError.unknown("word-unknown", word, known, what=what)


def _meant(text: str) -> str:
    """Ask for the layout that a text with another sign, capitals or `+gpu` is nearest to."""
    key = re.sub(r"\+?gpus?$", "+gpus", re.sub("[*\u00d7]", "x", text.lower()))
    return f"did you mean {key}? " if LAYOUT_PATTERN.fullmatch(key) else ""


def count_cores(count: int) -> str:
    return "one core" if count == 1 else f"{count} cores"

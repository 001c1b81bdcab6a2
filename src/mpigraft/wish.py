"""What a person asked to be measured: from flags, from a TOML file, or from a stored plan.

All three have the same keys and go through `wish_from`, so a campaign file can say whatever the
flags can, and a stored plan can be read back.
"""

from __future__ import annotations

import dataclasses
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpigraft.env import SECRET_NAME
from mpigraft.errors import UsageError
from mpigraft.layouts import BIND_TO, MAP_BY
from mpigraft.layouts import MOST as MOST_COUNTED


@dataclass(frozen=True, slots=True)
class Wish:
    """Empty means every one that can run here, or the default of the kind of campaign."""

    name: str = ""
    mpi: tuple[str, ...] = ()
    transport: tuple[str, ...] = ()
    benchmark: tuple[str, ...] = ()
    layout: tuple[str, ...] = ()
    nodes: tuple[int, ...] = ()  # these six in the place of `layout`: each with each of the others
    ranks_per_node: tuple[int, ...] = ()
    threads: tuple[int, ...] = ()
    map_by: tuple[str, ...] = ()
    bind_to: tuple[str, ...] = ()
    gpus: bool = False
    launcher: tuple[str, ...] = ()  # own, srun, flux, pals, aprun
    modules: tuple[str, ...] = ()  # sets: A,B loads two, -C,D unloads one before
    set: tuple[str, ...] = ()  # NAME=VALUE, for every rank
    buffers: str = "host"
    baseline: str = ""
    rounds: int = 0
    looks: tuple[int, ...] = ()  # rounds after which it ends if every curve is called
    seed: int = 0  # 0: drawn when the campaign is planned
    min_size: int = 1  # bytes
    max_size: int = 4 * 1024 * 1024
    budget_ms: float = 0.0  # measured time per benchmark and size
    limit_s: float = 0.0  # one launch
    quick: bool = False
    validate: bool = True
    native_build: str = "prebuilt"
    like: str = "itself"  # or osu: how the benchmarks are timed and averaged
    image: str = ""  # a guest in which the benchmarks run too
    engine: str = ""
    guest: tuple[str, ...] = ()  # native, grafted, own: where; all three with an image

    @property
    def axes(self) -> bool:
        """Whether layouts are said by their axes."""
        return any(getattr(self, key) for key in AXES)

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """`set` as sorted (name, value) pairs; raises UsageError for a word without `=`."""
        pairs = {}
        for word in self.set:
            name, equals, value = word.partition("=")
            if not equals or not name.isidentifier():
                raise UsageError(f"--set {word!r} is not NAME=VALUE")
            if SECRET_NAME.search(name):
                raise UsageError(
                    f"--set {name}: the name looks like a secret's",
                    why="settings are part of a configuration and are stored with the results",
                    mend="give it to the program in another way",
                )
            pairs[name] = value
        return tuple(sorted(pairs.items()))


FIELDS = {f.name: f for f in dataclasses.fields(Wish)}
CHOICES = {
    "buffers": ("host", "cuda", "rocm"),
    "native_build": ("prebuilt", "mpicc"),
    "like": ("itself", "osu"),
}
LARGEST = 1 << 42  # bytes of a message that mpigraft-bench takes; memory is the limit before
SIZE = re.compile(r"(\d{1,18}) ?(?:([KMGT])(?:iB)?|B)?", re.ASCII)
SIZES = ("min_size", "max_size")
# The largest that is meant: beyond it a plan takes all memory, or the store has no place for it.
MOST = {
    "rounds": 10_000,
    "seed": 2**63 - 1,
    "min_size": LARGEST,
    "max_size": LARGEST,
    "budget_ms": 1_000_000,
    "limit_s": 1_000_000_000,
}
WHERE = ("native", "grafted", "own")  # on this machine, in the guest, on the guest's own MPI
COUNTS = ("nodes", "ranks_per_node", "threads")
AXES = (*COUNTS, "map_by", "bind_to", "gpus")
KNOWN = {"guest": WHERE, "map_by": MAP_BY, "bind_to": BIND_TO}  # what a list may have in it
COMMAND_LINE = "command line"
FLAGS = {  # whose names are not those of the keys
    "min_size": "min",
    "max_size": "max",
    "budget_ms": "budget",
    "limit_s": "limit",
    "native_build": "native-build",
    "ranks_per_node": "ranks-per-node",
    "map_by": "map-by",
    "bind_to": "bind-to",
}
KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
EXAMPLES = {
    "image": '"app.sif"',
    "engine": '"apptainer"',
    "guest": '["native", "grafted"]',
    "mpi": '["openmpi", "mpich@5.0.2"]',
    "transport": '["ofi-lnx", "ob1-sm"]',
    "benchmark": '["latency", "bibw"]',
    "layout": '["1x2"]',
    "nodes": "2",
    "ranks_per_node": "[8, 56]",
    "threads": "[1, 7]",
    "map_by": '"l3cache"',
    "bind_to": '"numa"',
    "gpus": "true",
    "launcher": '["own", "srun"]',
    "modules": '["craype-network-ofi,cray-mpich"]',
    "set": '["FI_TCP_IFACE=lo"]',
    "buffers": '"host"',
    "native_build": '"prebuilt"',
    "like": '"osu"',
    "baseline": '"mpich@5.0.2/ucx"',
    "name": '"night"',
    "rounds": "10",
    "looks": "[9, 14, 20]",
    "seed": "7",
    "min_size": "1",
    "max_size": '"4MiB"',
    "budget_ms": "20",
    "limit_s": "60",
    "quick": "true",
    "validate": "false",
}


def wish_from(table: Mapping[str, Any], source: str) -> Wish:
    """A wish from a table whose keys are those of Wish; `source` names it in errors.

    0 stands for a default here, as in a stored plan; whoever asks for 0 is refused before.
    """
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in FIELDS:
            known = ", ".join(sorted(FIELDS))
            raise UsageError(f"{source}: unknown key {key!r}", mend=f"known keys: {known}")
        values[key] = _typed(key, value, _place(source, key))
    if axis := _beside_layout(table):
        raise UsageError(
            f"{_place(source, axis)} beside {_place(source, 'layout').rpartition(' ')[2]}: "
            "both say layouts",
            mend="write it into the layout, 2x8x7:l3cache-numa+gpus, or leave the layout out",
        )
    return Wish(**values)


def _beside_layout(table: Mapping[str, Any]) -> str:
    """An axis that is said though whole layouts are; empty where there is none."""
    return next((key for key in AXES if table.get(key)), "") if table.get("layout") else ""


def _typed(key: str, value: Any, place: str) -> Any:
    default = FIELDS[key].default
    if key in (*COUNTS, "looks"):
        return _counts(key, value, place)
    if isinstance(default, tuple):
        return _words(key, value, place)
    if key in SIZES and isinstance(value, str):
        value = _bytes(key, value, place)
    wanted: Any = (int, float) if isinstance(default, float) else type(default)
    if not isinstance(value, wanted) or isinstance(value, bool) is not isinstance(default, bool):
        raise _refused(f"{place} must be {KINDS[type(default)]}, not {_toml(value)}", key)
    if key in MOST and not 0 <= value <= MOST[key]:  # also of nan, which is in no range
        raise UsageError(
            f"{place} is {_toml(value)}", mend=f"give a number above 0, at most {MOST[key]:,}"
        )
    if key in CHOICES and value not in CHOICES[key]:
        raise UsageError(f"{place} is {value!r}", mend=f"one of {', '.join(CHOICES[key])}")
    return value


def _bytes(key: str, text: str, place: str) -> int:
    """Bytes of `4194304`, `4M` or `4MiB`: K, M, G and T are powers of 1024."""
    match = SIZE.fullmatch(text)
    if match is None:
        raise _refused(f"{place} is {_toml(text)}, not a number of bytes", key)
    size = int(match[1]) << 10 * " KMGT".index(match[2] or " ")
    if size == 0:
        raise _zero(place)
    return size


def _words(key: str, value: Any, place: str) -> tuple[str, ...]:
    """A list of texts; one text is a list of one, and settings may be a table."""
    if key == "set" and isinstance(value, dict):
        for name, setting in value.items():
            if isinstance(setting, bool) or not isinstance(setting, (str, int, float)):
                raise UsageError(
                    f"{place}.{name} must be a text or a number, not {_toml(setting)}",
                    mend=f'write what the ranks shall see: {name} = "1"',
                )
        return tuple(f"{name}={setting}" for name, setting in value.items())
    words = [value] if isinstance(value, str) else value
    if isinstance(words, (list, tuple)) and all(isinstance(w, str) for w in words):
        if key in KNOWN and (wrong := [w for w in words if w not in KNOWN[key]]):
            raise UsageError(f"{place} is {wrong[0]!r}", mend=f"one of {', '.join(KNOWN[key])}")
        return tuple(words)
    raise _refused(f"{place} must be a text or a list of texts, not {_toml(value)}", key)


def _counts(key: str, value: Any, place: str) -> tuple[int, ...]:
    """A list of numbers; one number is a list of one."""
    counts = list(value) if isinstance(value, (list, tuple)) else [value]
    for count in counts:
        if type(count) is not int:
            raise _refused(f"{place} must be a whole number or several, not {_toml(value)}", key)
        if not 1 <= count <= MOST_COUNTED:
            raise UsageError(
                f"{place} is {_toml(count)}", mend=f"give a number, 1 to {MOST_COUNTED:,}"
            )
    return tuple(counts)


def _refused(seen: str, key: str) -> UsageError:
    return UsageError(seen, mend=f"for example {key} = {EXAMPLES[key]}")


def _toml(value: Any) -> str:
    """A value as its file has it, the beginning if it is long."""
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


def refuse_zeros(table: Mapping[str, Any], source: str) -> None:
    """Raise UsageError for a 0 that somebody wrote where 0 is nothing that can be measured."""
    for key, value in table.items():
        if key in MOST and key != "seed" and type(value) in (int, float) and value == 0:
            raise _zero(_place(source, key))


def _zero(place: str) -> UsageError:
    return UsageError(
        f"{place} is 0", mend="give a number above 0, or leave it out for the default"
    )


def _place(source: str, key: str) -> str:
    return f"--{FLAGS.get(key, key)}" if source == COMMAND_LINE else f"{source}: {key}"


def read_wish(path: Path) -> Wish:
    """The wish in a TOML campaign file. Raises UsageError with file and line."""
    try:
        text = path.read_text(encoding="utf-8")
        table = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise UsageError(f"{path}: not a TOML file: {error}") from error
    for key, value in table.items():
        line = line_of(key, text)
        refuse_zeros({key: value}, f"{path}:{line}")
        if key == "set" and isinstance(value, dict):
            for name, setting in value.items():
                below = line_of(name, text, "set", line)
                wish_from({"set": {name: setting}}, f"{path}:{below}")
        wish_from({key: value}, f"{path}:{line}")
    axis = _beside_layout(table)
    return wish_from(table, f"{path}:{line_of(axis, text)}" if axis else str(path))


def line_of(key: str, text: str, table: str = "", after: int = 1) -> int:
    """The line, from 1, on which a key of a TOML file stands, at the top or in a `table` that
    begins on line `after`; that line where it is not found. tomllib keeps none."""
    within = rf"(?:{re.escape(table)}\s*\.\s*)?" if table else ""
    pattern = re.compile(rf"""\s*\[*\s*{within}["']?{re.escape(key)}["']?\s*[].=]""")
    lines = text.splitlines()
    found = (n for n, line in enumerate(lines, 1) if n >= after and pattern.match(line))
    return next(found, after)


def given(flags: Mapping[str, Any]) -> dict[str, Any]:
    """The flags that were given: None, and a list without a word, is not."""
    return {name: value for name, value in flags.items() if value not in (None, [], ())}


def merged(file: Wish, flags: Mapping[str, Any]) -> Wish:
    """A campaign file's wish with the flags that were given laid over it. Layouts that flags say
    whole take the place of axes in the file, and the other way round."""
    laid = given(flags)
    refuse_zeros(laid, COMMAND_LINE)
    wish = wish_from(laid, COMMAND_LINE)
    if any(laid.get(key) for key in AXES):
        file = dataclasses.replace(file, layout=())
    elif wish.layout:
        none = Wish()
        file = dataclasses.replace(file, **{key: getattr(none, key) for key in AXES})
    return dataclasses.replace(file, **{name: getattr(wish, name) for name in laid})

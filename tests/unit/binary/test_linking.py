"""Linking against the real loader, which tells what it lacks when it is asked to bind at once."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.binary.elf import reader, tables
from mpigraft.binary.elf.reader import Elf, ElfError, VersionNeed
from mpigraft.binary.elf.tables import Symbol
from mpigraft.binary.loader import dependencies
from mpigraft.binary.loader import symbols as linking
from mpigraft.core.process import command
from tests.builders.elf import OLD_AND_NEW, compiled, program
from tests.oracles.loader import LOADER, rpath

needs_loader = pytest.mark.skipif(not Path(LOADER).exists(), reason="needs glibc's loader")

TWO = "V_1 { global: *; }; V_2 { } V_1;"
CALLS = """
extern int first(void), second(void), gone(void);
extern int feeble(void) __attribute__((weak));
int use(void) { return first() + second() + gone() + (feeble ? feeble() : 0); }
"""


def library(path: Path, source: str, nodes: str = "") -> Path:
    """`nodes` is its version script. Without one it uses the C library, as all real ones do: of a
    library without any table of versions the loader asserts that no one asks for a version."""
    script = path.with_suffix(".nodes")
    path.parent.mkdir(parents=True, exist_ok=True)
    script.write_text(nodes)
    flags = (f"-Wl,--version-script={script}",) if nodes else ("-lc",)
    source = (
        source if nodes else f"{source} int getpid(void); int tick(void) {{ return getpid(); }}"
    )
    return compiled(path, source, soname=path.name, flags=flags)


def caller(folder: Path, *needs: Path) -> Path:
    """A program that needs a library with CALLS, which was linked with `needs`: a program itself
    may not be linked while it lacks something."""
    user = compiled(folder / "lib/user.so", CALLS, soname="user.so", needs=needs)
    return program(folder / "p", needs=[user], flags=rpath(folder / "lib"))


def told(path: Path) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    """(symbols, version nodes) that the loader misses, each with the file that wants it."""
    wish = {"LD_TRACE_LOADED_OBJECTS": "1", "LD_WARN": "yes", "LD_BIND_NOW": "yes"}
    text = command.run_command([str(path)], env=wish).text()
    rows = re.findall(r"undefined symbol: (\S+?)(?:, version (\S+))?\t\((.*)\)", text)
    symbols = {(f"{name}@{version}" if version else name, by) for name, version, by in rows}
    nodes = re.findall(r": version [`'](.*)' not found \(required by (.*)\)", text)
    return symbols, set(nodes)


def found(path: Path) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    rows = [r for r in dependencies.closure(path, environment={}) if r.elf]
    objects = [reader.read_elf(path), *(r.elf for r in rows if r.elf)]
    lacking = linking.unmet_versions(objects, [path.name, *(r.name for r in rows)])
    symbols = {(x.symbol, x.by) for x in linking.unbound_symbols(objects)}
    return symbols, {(x.node, x.by) for x in lacking}


AS_BUILT = (OLD_AND_NEW, TWO)
RUN_WITH = {
    "as it was built": AS_BUILT,
    "without versions": (OLD_AND_NEW.replace("__asm__", "//"), ""),
    "without versions, symbols gone": ("int other;", ""),
    "a node less": ("int first(void) { return 1; } int data[7];", "V_1 { global: *; };"),
    "other nodes": (OLD_AND_NEW.replace("V_", "W_"), TWO.replace("V_", "W_")),
    "a symbol under another node": (
        "int first(void) { return 1; } int second(void) { return 1; }",
        "V_1 { global: second; }; V_2 { global: first; } V_1;",
    ),
    "symbols outside of any node": (
        "int first(void) { return 1; } int second(void) { return 1; }\n"
        '__asm__(".symver third_one, third@@V_2"); int third_one(void) { return 1; }',
        "V_1 { }; V_2 { } V_1;",
    ),
}


@needs_loader
@pytest.mark.parametrize("late", RUN_WITH)
@pytest.mark.parametrize("early", ["as it was built", "without versions"])
def test_a_library_that_is_replaced(early: str, late: str, tmp_path: Path) -> None:
    a = library(tmp_path / "lib/a.so", *RUN_WITH[early])
    path = caller(tmp_path, a)
    library(a, *RUN_WITH[late])
    assert found(path) == told(path)
    assert ("gone", f"{tmp_path}/lib/user.so") in found(path)[0]
    assert not any("feeble" in symbol for symbol, _ in found(path)[0])


@needs_loader
def test_a_reference_without_version_binds_to_the_default_or_the_first_node(tmp_path: Path) -> None:
    """Not to a node that came later and is not the default."""
    a = library(tmp_path / "lib/a.so", *RUN_WITH["without versions"])
    path = caller(tmp_path, a)
    for first, second, lacking in (("@@V_2", "@V_1", set()), ("@V_2", "@V_1", {"first"})):
        source = (
            f'__asm__(".symver one, first{first}"); int one(void) {{ return 1; }}\n'
            f'__asm__(".symver two, second{second}"); int two(void) {{ return 1; }}'
        )
        library(a, source, TWO)
        assert found(path) == told(path)
        assert {symbol for symbol, _ in found(path)[0]} == {"gone", *lacking}


@needs_loader
@pytest.mark.parametrize("late", RUN_WITH)
@pytest.mark.parametrize("early", ["as it was built", "without versions"])
def test_a_programs_copy_of_a_variable_needs_it(early: str, late: str, tmp_path: Path) -> None:
    """ompi_mpi_comm_world, say, of a program that is not position-independent."""
    a = library(tmp_path / "lib/a.so", *RUN_WITH[early])
    source = "extern int data[7]; int own = 3; int use(void) { return data[0] + own; }"
    flags = ("-no-pie", "-fno-pie", "-rdynamic", *rpath(tmp_path / "lib"))
    path = program(tmp_path / "p", source, needs=[a], flags=flags)
    assert [symbol.name for symbol in reader.read_elf(path).copied] == ["data"]
    library(a, *RUN_WITH[late])
    assert found(path) == told(path)


@needs_loader
def test_any_object_of_the_scope_will_do(tmp_path: Path) -> None:
    """What a library calls may stand in the program, or in a library that it does not need."""
    a = library(tmp_path / "lib/a.so", "int second(void) { return 1; }")
    b = library(tmp_path / "lib/b.so", CALLS)
    source, flags = "int gone(void) { return 1; }", ("-rdynamic", *rpath(tmp_path / "lib"))
    path = program(tmp_path / "p", source, needs=[b, a], flags=flags)
    assert found(path) == told(path)
    assert found(path)[0] == {("first", str(b))}


def test_only_the_asked_for_are_looked_at(tmp_path: Path) -> None:
    plugin = reader.read_elf(compiled(tmp_path / "plugin.so", CALLS))
    main = reader.read_elf(compiled(tmp_path / "main.so",
                       "int first(void) { return 1; } int lost(void);"
                             "int (*use)(void) = lost;"))  # fmt: skip
    assert {x.symbol for x in linking.unbound_symbols([main, plugin], of=[plugin])} == {
        "gone",
        "second",
    }
    assert {x.symbol for x in linking.unbound_symbols([main, plugin])} == {"gone", "second", "lost"}


# ------------------------------------------------------------------ versions, by hand


def test_a_scope_has_no_more_symbols_than_memory_can_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [reader.read_elf(compiled(tmp_path / f"{i}.so", CALLS)) for i in range(3)]
    each = files[0].symbols
    monkeypatch.setattr(linking, "MAX_SCOPE", 2 * each)
    assert linking.unbound_symbols(files[:2])
    with pytest.raises(ElfError, match=r"2\.so: with it, .* more than \d+ symbols"):
        linking.unbound_symbols(files)


def test_a_scope_does_not_miss_more_symbols_than_can_be_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is compared, sorted and described for each host MPI: a million took minutes."""
    files = [reader.read_elf(compiled(tmp_path / f"{i}.so", CALLS)) for i in range(3)]
    each = len(linking.unbound_symbols(files[:1]))
    assert each
    monkeypatch.setattr(linking, "MAX_UNBOUND", 2 * each)
    assert len(linking.unbound_symbols(files[:2])) == 2 * each
    for of in (None, files):
        with pytest.raises(ElfError, match=rf"2\.so: with it, .* miss more than {2 * each} sym"):
            linking.unbound_symbols(files, of=of)


def test_symbols_that_are_not_kept_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read again and again, and each time all names of the file may be."""
    monkeypatch.setattr(tables, "MAX_NAMES", 0)
    path = sys.executable
    file, kept = reader.read_elf(path), reader.read_elf(path).exported
    assert kept
    for _ in range(2 * (tables.MAX_OVERLAP + 1)):
        assert tuple(file.each_exported()) == kept
    assert "exported" not in vars(file)


def made(name: str, *, needs: tuple[VersionNeed, ...] = (), nodes: tuple[str, ...] = ()) -> Elf:
    return Elf(name, "x86_64", 64, "little", "dyn", 0, soname=name, needs=needs, version_defs=nodes)


@pytest.mark.parametrize(
    ("need", "nodes", "lacking"),
    [
        (VersionNeed("a.so", "V_2", weak=False), ("V_1",), True),
        (VersionNeed("a.so", "V_2", weak=True), ("V_1",), False),
        (VersionNeed("a.so", "V_2", weak=False), (), False),  # only a warning
        (VersionNeed("a.so", "V_1", weak=False), ("V_0", "V_1"), False),
        (VersionNeed("a.so", "a.so", weak=False), ("V_1",), False),  # its base definition
        (VersionNeed("c.so", "V_1", weak=False), ("V_1",), False),  # not there at all
        (VersionNeed("other-name.so", "V_2", weak=False), ("V_1",), True),
    ],
)
def test_what_the_loader_refuses(need: VersionNeed, nodes: tuple[str, ...], lacking: bool) -> None:
    main, a = made("main", needs=(need, need)), made("a.so", nodes=nodes)
    rows = linking.unmet_versions([main, a], ["main", "other-name.so"])
    assert rows == (
        (linking.UnmetVersion("main", need.library, need.node, "a.so"),) if lacking else ()
    )


# ------------------------------------------------------------------ the rules, said another way

VERSIONS = st.sampled_from([None, "V_1", "V_2", "V_3"])
NAMES = st.sampled_from(["f", "g", "h"])


@st.composite
def objects(draw: st.DrawFn) -> Elf:
    """An object with nodes V_1 to V_3 in this order, or none; its symbols follow from that."""
    nodes = draw(st.sampled_from([(), ("V_1",), ("V_1", "V_2", "V_3")]))
    file = made(draw(NAMES), nodes=nodes)
    defined = draw(st.lists(st.tuples(NAMES, VERSIONS, st.booleans()), max_size=4))
    wanted = draw(st.lists(st.tuples(NAMES, VERSIONS, st.booleans()), max_size=4))
    file.__dict__["exported"] = tuple(
        Symbol(n, v, None, default or v is None, "func", False, 0)
        for n, v, default in defined
        if v is None or v in nodes
    )
    file.__dict__["imported"] = tuple(
        Symbol(n, v, v and "a.so", False, "func", weak, 0) for n, v, weak in wanted
    )
    return file


def matches(wanted: Symbol, file: Elf, there: Symbol) -> bool:
    """check_match of glibc 2.36, statement by statement."""
    if wanted.name != there.name:
        return False
    if not file.version_defs:  # no DT_VERSYM
        return True
    index = 1 if there.version is None else 2 + file.version_defs.index(there.version)
    hidden = not there.default
    if wanted.version is not None:
        return there.version == wanted.version or (there.version is None and not hidden)
    return index < 3 or not hidden


@given(st.lists(objects(), max_size=4))
def test_unbound_symbols_follow_the_loaders_rules_of_versions(scope: list[Elf]) -> None:
    expected = {
        (file.name, f"{s.name}@{s.version}" if s.version else s.name)
        for file in scope
        for s in file.imported
        if not s.weak and not any(matches(s, o, there) for o in scope for there in o.exported)
    }
    assert {(x.by, x.symbol) for x in linking.unbound_symbols(scope)} == expected

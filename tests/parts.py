"""Which parts of the long tests a change can have broken, by digest.

A part is a test module with long tests. Its inputs are the module, what it imports of `tests`,
`testbed` and `mpigraft` however far down, the data beside those files, the tools that they name,
the locked requirements, the MPIs, the images, the versions of Debian's packages and the kernel.
What a part that passed was made of is kept in the tests' cache. `pytest --parts=changed` runs the
parts whose inputs are others since, and without a record the covering subset: the tests marked
`covering`. `--parts=all` runs all.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from testbed.kept import only_one, recipe

PROJECT = Path(__file__).resolve().parents[1]
TESTS, TESTBED, TOOLS = PROJECT / "tests", PROJECT / "testbed", PROJECT / "tools"
RECORD = "long-passes.json"
LONG = ("long", "daily", "hypothesis")  # markers; hypothesis itself gives the last one
FROM = re.compile(
    r"^\s*from\s+((?:tests|testbed|mpigraft)[\w.]*)\s+import\s+(\([^)]*\)|[^\n#]+)", re.M
)
# What a string names: a program of `python -c`, -m mpigraft.cli.main.
NAMED = re.compile(r"\b(?:tests|testbed|mpigraft)(?:\.\w+)+")
TOOL = re.compile(r"\btools[./]([\w-]+)")  # what it is, or the folder that it is in
TYPES = re.compile(r"^if TYPE_CHECKING:\n(?:    .*\n)+", re.M)  # what mypy alone imports
PROGRAM = re.compile(r"bin.{1,12}mpigraft(?![\w-])")
WORD = re.compile(r"\w+")
DATA_WORD = re.compile(r"[\w.-]+")


# ------------------------------------------------------------------ inputs of a part


def _base(name: str) -> Path:
    return PROJECT / ("src" if name.startswith("mpigraft") else "") / name.replace(".", "/")


@cache
def _files(name: str) -> frozenset[Path]:
    """The file of a module, or of the name that a room exports. A room is no more than its
    `__init__.py`, which imports nothing by itself; the commands are all of them."""
    base = _base(name)
    if name == "mpigraft.cli":
        return frozenset(base.rglob("*.py"))
    for file in (base.with_suffix(".py"), base / "__init__.py"):
        if file.is_file():
            return frozenset([file])
    room, _, exported = name.rpartition(".")
    if (door := _base(room) / "__init__.py").is_file():
        found = re.search(rf"from ([\w.]+) import {exported} as", door.read_text(encoding="utf-8"))
        return _files(found[1]) if found else frozenset()
    return frozenset()


def _counts(path: Path) -> bool:
    return path.is_file() and not {"__pycache__", "prebuilt"} & {*path.parts}


def _imported(text: str, *, of_tests: bool) -> Iterator[str]:
    """Modules that a file imports; one of the tests starts others by their names."""
    for module, names in FROM.findall(text):
        yield module
        yield from (f"{module}.{name}" for name in WORD.findall(names))
    if of_tests:
        yield from NAMED.findall(text)
        if PROGRAM.search(text):
            yield "mpigraft.cli"


@cache
def _data(folder: Path) -> frozenset[Path]:
    if folder == TESTS:
        return frozenset()
    return frozenset(path for path in folder.rglob("*") if _counts(path) and path.suffix != ".py")


def _tools(text: str) -> frozenset[Path]:
    """The tools that a text names; those of a folder use each other, and its templates."""
    named = {found for name in TOOL.findall(text) for found in TOOLS.glob(f"{name}*")}
    return frozenset(
        path
        for one in named
        for path in (one.rglob("*") if one.is_dir() else [one])
        if _counts(path)
    )


def _names(data: Path, below: Path) -> set[str]:
    """By which a test may mean a file: its own name, or a folder's that it is in."""
    return {data.name, data.stem, *data.relative_to(below).parts[:-1]}


@cache
def _next(file: Path) -> frozenset[Path]:
    """The files that one imports or names, data of the tests among them."""
    if file.suffix != ".py" or file == Path(__file__):  # which decides no outcome
        return frozenset()
    found: set[Path] = set()
    text = TYPES.sub("", file.read_text(encoding="utf-8"))
    of_tests = not file.is_relative_to(PROJECT / "src")
    for name in _imported(text, of_tests=of_tests):
        parts = name.split(".")
        for length in range(1, len(parts) + 1):
            found |= _files(".".join(parts[:length]))
    if not of_tests:
        found |= {data for data in file.parent.iterdir() if _counts(data) and data.suffix != ".py"}
    else:
        named = {*DATA_WORD.findall(text)}
        found |= _tools(text)
        for folder in (file.parent, TESTS / "data", TESTBED):
            found |= {data for data in _data(folder) if named & _names(data, folder)}
    return frozenset(found)


def inputs(module: Path) -> list[Path]:
    """All files of this tree that the outcome of a test module may depend on, sorted."""
    found = {module}
    for folder in module.parents:
        if (conftest := folder / "conftest.py").exists():
            found.add(conftest)
        if folder.name == "tests":
            break
    new = set(found)
    while new:
        new = {file for one in new for file in _next(one)} - found
        found |= new
    return sorted(found)


@cache
def surroundings(cache_folder: Path) -> str:
    """What every part depends on besides: requirements, MPIs, images, packages, the kernel."""
    lists = sorted((PROJECT / "tests").glob("debian-packages*"))
    names = [line.split("#")[0].strip() for f in lists for line in f.read_text().splitlines()]
    asked = ["dpkg-query", "--show", *filter(None, names)]
    try:  # it fails when one of them is not there, and shows the others
        packages = subprocess.run(asked, capture_output=True, text=True).stdout
    except OSError:  # not Debian
        packages = ""
    mpis = sorted(path.name for path in cache_folder.glob("home*/mpi/*"))
    images = [path.read_text() for path in sorted(cache_folder.glob("*.made"))]
    return recipe(
        platform.release(), packages, *mpis, *images, *sorted(PROJECT.glob("requirements*.txt"))
    )


def digest(module: Path, cache_folder: Path) -> str:
    files = inputs(module)
    names = (str(file.relative_to(PROJECT)) for file in files)
    return recipe(surroundings(cache_folder), *names, *files)


# ------------------------------------------------------------------ the plugin


def is_long(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in LONG)


def part_of(item: pytest.Item) -> str:
    return item.nodeid.partition("::")[0]


def read(file: Path) -> dict[str, str]:
    """The record; {} where there is none, or none that can be read."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


class Parts:
    """Chooses long tests, by the record if `changed`, and keeps it: a part passed if all its long
    tests did."""

    def __init__(self, cache_folder: Path, *, changed: bool) -> None:
        self.cache, self.changed = cache_folder, changed
        self.file = cache_folder / RECORD
        self.record = read(self.file)
        self.keeps = not changed or bool(self.record)  # a covering subset is no pass
        self.digests: dict[str, str] = {}
        self.due: dict[str, set[str]] = {}  # of each part, its long tests
        self.passed: dict[str, set[str]] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Iterator[None]:
        everything = list(items)
        yield  # hypothesis marks its tests, and -k and -m choose
        for item in filter(is_long, everything):
            self.due.setdefault(part_of(item), set()).add(item.nodeid)
        for item in items:
            if is_long(item) and (part := part_of(item)) not in self.digests:
                self.digests[part] = digest(PROJECT / part, self.cache)
        chosen = [item for item in items if is_long(item) and self._chosen(item)]
        left = {*items} - {*chosen}
        if left:
            config.hook.pytest_deselected(items=[item for item in items if item in left])
        items[:] = chosen
        if any("::" in argument for argument in config.args):
            self.keeps = False  # others of the part were not even collected

    def _chosen(self, item: pytest.Item) -> bool:
        if not self.changed:
            return True
        if not self.record:
            return item.get_closest_marker("covering") is not None
        return self.record.get(part_of(item)) != self.digests[part_of(item)]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        part = report.nodeid.partition("::")[0]
        if report.failed:
            self.due.pop(part, None)
        elif report.when == "teardown":
            self.passed.setdefault(part, set()).add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Note the parts that passed whole."""
        new = {
            part: self.digests[part]
            for part, due in self.due.items()
            if due <= self.passed.get(part, set())
        }
        if not (new and self.keeps):
            return
        with only_one(self.file.with_suffix(".lock")):
            together = {**read(self.file), **new}
            temporary = self.file.with_suffix(f".{os.getpid()}")
            temporary.write_text(json.dumps(together, indent=1, sort_keys=True), encoding="utf-8")
            temporary.rename(self.file)

"""Rooms: packages that others enter by their door alone, and what a door is."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parents[3] / "src/mpigraft"
CORE_DOORS = {"core.model", "core.process"}  # core, the ground, is entered by its modules
OF_A_ROOM = ("Takes", "Knows nothing", "The command", "What every room")


def dotted(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {dotted(path): path for path in sorted(SOURCE.rglob("*.py"))}
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}


def exported(package: str) -> dict[str, str]:
    """{name: module} of a door as type checkers read it."""
    tree = ast.parse(MODULES[package].read_text())
    return {
        alias.name: node.module or ""
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


DOORS = {package: names for package in sorted(PACKAGES) if (names := exported(package))}
CORE = {name for name in MODULES if name.startswith("core.") and name.count(".") == 1}
FLOORS = {name for name in PACKAGES if name and "." not in name}
ROOMS = FLOORS | CORE_DOORS | CORE


def room_of(module: str) -> str:
    """The innermost room that a module stands in."""
    parts = module.split(".")
    names = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next(name for name in names if name in ROOMS)


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """(module below mpigraft, line) of each import: the module, where a name of one is taken."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mpigraft":
            base = (node.module or "").partition(".")[2]
            for alias in node.names:
                whole = f"{base}.{alias.name}".lstrip(".")
                yield (whole if whole in MODULES else base), node.lineno
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "mpigraft":
                    yield alias.name.partition(".")[2], node.lineno


def strangers(module: str, path: Path) -> list[str]:
    """Imports of another room's module, past its door."""
    here = room_of(module) if module else ""
    return [
        f"{path.relative_to(SOURCE.parent)}:{line} imports {other}, a module of {room_of(other)}"
        for other, line in imported(path)
        if other and other not in ROOMS and room_of(other) != here
    ]


def test_nothing_but_rooms_stands_in_the_package() -> None:
    files = {p.name for p in SOURCE.iterdir() if p.is_file()}
    assert files <= {"__init__.py", "__main__.py", "py.typed"}


def test_a_room_is_entered_by_its_door() -> None:
    rooms = {module: path for module, path in MODULES.items() if module != "__main__"}
    found = [one for module, path in rooms.items() for one in strangers(module, path)]
    assert not found


def test_an_import_past_a_door_is_noticed(tmp_path: Path) -> None:
    wrong = SOURCE / "report" / "contents.py"
    text = "from mpigraft.store.file import Database\nfrom mpigraft.analysis import comparison\n"
    copy = tmp_path / "contents.py"
    copy.write_text(text)
    found = [other for other, _ in imported(copy)]
    assert found == ["store.file", "analysis.comparison"]
    assert all(name not in ROOMS for name in found)
    assert room_of(dotted(wrong)) == "report"


@pytest.mark.parametrize("package", DOORS)
def test_a_door_gives_what_type_checkers_see(package: str) -> None:
    door = import_module(f"mpigraft.{package}")
    for name, module in DOORS[package].items():
        assert getattr(door, name) is getattr(import_module(module), name)
        assert f"{package}.{name}" not in MODULES, f"{package}: {name} is also a module"


def test_a_door_gives_nothing_else() -> None:
    for package in set(DOORS) - {"core.model"}:
        with pytest.raises(AttributeError, match="exports no 'nothing'"):
            import_module(f"mpigraft.{package}").nothing  # noqa: B018


def test_doors_stand_at_top_rooms_only() -> None:
    assert set(DOORS) <= FLOORS | CORE_DOORS


def test_a_room_says_what_it_takes_and_makes() -> None:
    for package in FLOORS | set(DOORS):
        if package != "core.model":
            text = ast.get_docstring(ast.parse(MODULES[package].read_text())) or ""
            assert any(word in text for word in OF_A_ROOM), package
            assert len(text.splitlines()) <= 6, package


def test_a_door_imports_nothing_until_it_is_used() -> None:
    code = f"import sys\nfor p in {sorted(DOORS)!r}: __import__('mpigraft.' + p)\n"
    code += "print(*(m for m in sys.modules if m.startswith('mpigraft.')))"
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    loaded = {name.removeprefix("mpigraft.") for name in ended.stdout.decode().split()}
    assert {m for m in loaded if not m.startswith("core.model")} <= PACKAGES | {"core.lazy_exports"}


def test_doors_list_what_other_rooms_use_and_nothing_else() -> None:
    tool = [sys.executable, str(SOURCE.parents[1] / "tools/write_doors.py"), "--check"]
    ended = subprocess.run(tool, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, f"run tools/write_doors.py:\n{ended.stdout}{ended.stderr}"


def forbidden() -> dict[str, Any]:
    text = (SOURCE.parents[1] / "pyproject.toml").read_text()
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    (contract,) = [one for one in contracts if one["type"] == "forbidden"]
    return dict(contract)


@pytest.mark.parametrize(
    ("room", "other"),
    [("", ""), *product(forbidden()["source_modules"], forbidden()["forbidden_modules"])],
)
def test_requests_and_launches_in_what_judges_are_noticed(
    tmp_path: Path, room: str, other: str
) -> None:
    rule = forbidden()
    for name in ("mpigraft", *rule["source_modules"], *rule["forbidden_modules"]):
        folder = tmp_path / name.replace(".", "/")
        folder.mkdir()
        (folder / "__init__.py").write_text(f"import {other}\n" if name == room else "")
    lines = "".join(f"{key} =\n  " + "\n  ".join(rule[key]) + "\n" for key in rule if "mod" in key)
    head = "[importlinter]\nroot_package = mpigraft\n[importlinter:contract:1]\n"
    (tmp_path / "rules.ini").write_text(f"{head}name = rule\ntype = forbidden\n{lines}")
    words = "from importlinter.cli import lint_imports; import sys;"
    words += "sys.exit(lint_imports(config_filename='rules.ini', no_cache=True))"
    ended = subprocess.run(
        [sys.executable, "-c", words], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)},
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert ("1 broken" if room else "0 broken") in ended.stdout, ended.stderr
    assert bool(ended.returncode) is bool(room)

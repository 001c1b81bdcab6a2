"""docs/explanation/architecture.md and its picture name the rooms and functions that exist."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "src/mpigraft"
PAGE = (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8")
PICTURE = (ROOT / "docs/pictures/rooms.svg").read_text(encoding="utf-8")


def layers() -> list[str]:
    """Every room from the top down, as import-linter checks them."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = config["tool"]["importlinter"]["contracts"][0]
    return [room.strip() for layer in contract["layers"] for room in layer.split("|")]


def test_table_lists_every_room_once() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted(layers())


def test_picture_stacks_the_rooms_in_import_order() -> None:
    boxes = re.findall(r'font-family="ui-monospace, monospace"[^>]*>([^<]+)<', PICTURE)
    assert [room.strip() for box in boxes for room in box.split("·")] == layers()


@pytest.mark.parametrize(
    ("module", "function"), sorted(set(re.findall(r"`([\w/]+\.py): (\w+)`", PAGE)))
)
def test_named_function_stands_in_the_named_file(module: str, function: str) -> None:
    tree = ast.parse((SOURCE / module).read_text(encoding="utf-8"))
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`([\w/]+(?:\.py|\.toml|\.c|/))`", PAGE))))
def test_named_file_exists(path: str) -> None:
    assert (SOURCE / path).exists()


@pytest.mark.parametrize(
    ("room", "name"),
    sorted({
        (match[1].replace(".", "/"), match[2])
        for match in re.finditer(r"`((?:\w+\.)*\w+)\.(\w+)`", PAGE)
        if (SOURCE / match[1].replace(".", "/") / "__init__.py").exists()
        and not (SOURCE / f"{match[1].replace('.', '/')}/{match[2]}").exists()
    }),
)  # fmt: skip
def test_named_function_or_value_is_one_of_its_room(room: str, name: str) -> None:
    defined = re.compile(rf"^(?:def |class )?{name}\b", re.MULTILINE)
    assert any(
        defined.search(path.read_text(encoding="utf-8")) for path in (SOURCE / room).rglob("*.py")
    )

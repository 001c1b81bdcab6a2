"""Values: a class name stands for one class."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3] / "src/mpigraft"
NAMED_TWICE = {"Budget", "Cell", "Form", "Row", "Scope", "Source", "Started", "Table", "_Reader"}


def trees() -> Iterable[ast.Module]:
    return [ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))]


def named_twice(modules: Iterable[ast.Module]) -> set[str]:
    count: dict[str, int] = defaultdict(int)
    for module in modules:
        for node in ast.walk(module):
            count[node.name if isinstance(node, ast.ClassDef) else ""] += 1
    return {name for name, number in count.items() if name and number > 1}


def test_a_class_name_is_used_once() -> None:
    assert named_twice(trees()) <= NAMED_TWICE, "name a class for what it is in its room"


def test_a_class_name_that_is_used_twice_is_noticed() -> None:
    modules = [ast.parse("class A: pass\nclass B: pass\n"), ast.parse("def f():\n  class A: ...\n")]
    assert named_twice(modules) == {"A"}
    assert named_twice(modules[:1]) == set()

"""Values: a class name stands for one class, and what goes from one function to the next has a
name: few parameters, and no long rows of positional values."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3] / "src/mpigraft"
NAMED_TWICE = {"Cell", "Form", "Row", "Table"}
MOST_PARAMETERS = 6
MOST_POSITIONAL = 7


@cache
def trees() -> Iterable[ast.Module]:
    return [ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))]


def named_twice(modules: Iterable[ast.Module]) -> set[str]:
    count: dict[str, int] = defaultdict(int)
    for module in modules:
        for node in ast.walk(module):
            count[node.name if isinstance(node, ast.ClassDef) else ""] += 1
    return {name for name, number in count.items() if name and number > 1}


def wide(modules: Iterable[ast.Module]) -> Iterator[str]:
    """Yield functions with many parameters. A command has one for each of its options."""
    for node in (node for module in modules for node in ast.walk(module)):
        if isinstance(node, ast.FunctionDef) and node.name != "command":
            names = [one.arg for one in (*node.args.args, *node.args.kwonlyargs)]
            if len(set(names) - {"self", "cls"}) > MOST_PARAMETERS:
                yield node.name


def long(modules: Iterable[ast.Module]) -> Iterator[str]:
    """Yield classes that are called with many positional values."""
    for node in (node for module in modules for node in ast.walk(module)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name[:1].isupper() and len(node.args) > MOST_POSITIONAL:
                yield name


def test_a_class_name_is_used_once() -> None:
    assert named_twice(trees()) <= NAMED_TWICE, "name a class for what it is in its room"


def test_a_class_name_that_is_used_twice_is_noticed() -> None:
    modules = [ast.parse("class A: pass\nclass B: pass\n"), ast.parse("def f():\n  class A: ...\n")]
    assert named_twice(modules) == {"A"}
    assert named_twice(modules[:1]) == set()


def test_functions_take_few_values() -> None:
    assert not set(wide(trees())), "make a value of what belongs together"


def test_a_function_that_takes_many_values_is_noticed() -> None:
    text = "def f(self, a, b, c, *, d, e, g): ...\ndef h(a, b, c, *, d, e, g, i): ...\n"
    assert list(wide([ast.parse(text + "def command(a, b, c, d, e, f, g, h): ...\n")])) == ["h"]


def test_values_are_made_by_name() -> None:
    assert not set(long(trees())), "name the values of this call"


def test_a_long_row_of_values_is_noticed() -> None:
    text = "f(1, 2, 3, 4, 5, 6, 7, 8)\nm.A(1, 2, 3, 4, 5, 6, 7, 8)\nB(1, 2, 3, 4, 5, 6, 7, h=8)\n"
    assert list(long([ast.parse(text)])) == ["A"]


def test_schemas_are_what_the_values_say() -> None:
    tool = [sys.executable, str(SOURCE.parents[1] / "tools/write_schemas.py"), "--check"]
    assert subprocess.run(tool, check=False).returncode == 0, "run tools/write_schemas.py"

"""Write the names that each room exports into its `__init__.py`, from what other rooms import.

    tools/write_doors.py [--check]

`--check` writes nothing, and ends with 1 if a door lists other names. A door lists what
others use of a room: import what you need from it, as in
`from mpigraft.launch import find_allocation`, and run this.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src/mpigraft"
BEGIN = "TYPE_CHECKING = False\n"
SELF = "exports"  # what makes a door
EXPORTS = f"__getattr__ = {SELF}("


def dotted(path: Path) -> str:
    """`bench.pipeline` of a module's path, `bench` of its package's."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(module below mpigraft, name) of each name that is imported from one."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mpigraft"):
            for alias in node.names:
                yield (node.module or "").removeprefix("mpigraft").lstrip("."), alias.name


def used_names(trees: Mapping[str, ast.AST], rooms: set[str]) -> dict[str, set[str]]:
    """{room: names that others use}: imported by name, or taken from the imported room."""
    used: dict[str, set[str]] = defaultdict(set)
    for tree in trees.values():
        whole = {}
        for module, name in imports(tree):
            if module in rooms and f"{module}.{name}" not in trees:
                used[module].add(name)
            if (room := f"{module}.{name}".lstrip(".")) in rooms:
                whole[name] = room
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                room = whole.get(node.value.id, "")
                if room and f"{room}.{node.attr}" not in trees:
                    used[room].add(node.attr)
    return used


def defined(tree: ast.Module) -> set[str]:
    """Names that a module defines itself."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {x.id for t in targets for x in ast.walk(t) if isinstance(x, ast.Name)}
    return names


def door(room: str, where: Mapping[str, set[str]]) -> str:
    """A room's names by module, as Python."""
    lines = [BEGIN + "if TYPE_CHECKING:"]
    for module, names in sorted(where.items()):
        lines += [f"    from mpigraft.{room}.{module} import {n} as {n}" for n in sorted(names)]
    lines += ["else:", "    __getattr__ = exports(__name__)", ""]
    return "\n".join(lines)


def homes_of(room: str, names: set[str], trees: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    """{module of a room: names that it defines}; of two modules the one that the door has now."""
    rooms = {name for name, tree in trees.items() if name and EXPORTS in ast.unparse(tree)}
    deeper = tuple(f"{other}." for other in rooms if other.startswith(f"{room}."))
    inside = [m for m in trees if m.startswith(f"{room}.") and not f"{m}.".startswith(deeper)]
    now = {name: module for module, name in imports(trees[room])}
    homes: dict[str, set[str]] = defaultdict(set)
    for name in names:
        known = [module for module in inside if name in defined(trees[module])]
        if len(known) > 1:
            known = [module for module in known if module == now.get(name)]
        if len(known) != 1:
            raise SystemExit(f"{room}: no one module defines {name}")
        homes[known[0].removeprefix(f"{room}.")].add(name)
    return homes


def main(check: bool) -> int:
    paths = {dotted(path): path for path in SOURCE.rglob("*.py")}
    trees = {name: ast.parse(path.read_text()) for name, path in paths.items()}
    doors = {n for n, p in paths.items() if p.name == "__init__.py" and BEGIN in p.read_text()}
    used = used_names(trees, doors)
    changed = [
        room
        for room in sorted(doors)
        if used[room] != {n for _, n in imports(trees[room])} - {SELF}
    ]
    for room in changed:
        sys.stdout.write(f"{room}: {', '.join(sorted(used[room]))}\n")
        if not check:
            head = paths[room].read_text().split(BEGIN)[0]
            paths[room].write_text(head + door(room, homes_of(room, used[room], trees)))
    if changed and not check:
        for words in (["check", "--fix", "--select", "I"], ["format"]):
            subprocess.run([sys.executable, "-m", "ruff", *words, "-q", SOURCE], check=True)
    return bool(check and changed)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))

"""Find the launchers of MPI that a Python script starts, by its syntax tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from mpigraft.core.parsers import parse_python
from mpigraft.graft.guest.scripts.shell_syntax import UNKNOWN
from mpigraft.graft.guest.scripts.starters import ScriptCall

MAX_NODES = 200_000
MAX_DEPTH = 20  # of expressions in expressions
MAX_TEXT = 1 << 16  # characters of a command
CALLS = frozenset({
    "run", "call", "check_call", "check_output", "Popen", "system", "popen", "getoutput",
    "getstatusoutput", "create_subprocess_exec", "create_subprocess_shell",
    *(f"{kind}{end}" for kind in ("exec", "spawn", "posix_spawn")
      for end in ("v", "ve", "vp", "vpe", "l", "le", "lp", "lpe", "")),
})  # fmt: skip
MODULES = frozenset({"os", "subprocess", "asyncio", "sp", "commands", ""})
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def python_calls(source: bytes, arguments: Sequence[str]) -> tuple[ScriptCall, ...]:
    """Find the calls of a script that start programs; of functions, those that it calls."""
    try:
        tree = parse_python(source)
    except (SyntaxError, ValueError):
        return ()
    reader = _ScriptReader(arguments)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            reader.functions[node.name] = node
    with suppress(RecursionError):  # what is nested deeper starts nothing that is known
        reader.walk(tree.body, certain=True)
    return tuple(reader.calls)


@dataclass(slots=True)
class _ScriptReader:
    arguments: Sequence[str]
    calls: list[ScriptCall] = field(default_factory=list)
    values: dict[str, ast.expr] = field(default_factory=dict)
    functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=dict)
    nodes: int = 0
    entered: set[str] = field(default_factory=set)

    def walk(self, body: Sequence[ast.AST], *, certain: bool) -> None:
        for node in body:
            self.nodes += 1
            if self.nodes > MAX_NODES:
                return
            self.visit(node, certain)

    def visit(self, node: ast.AST, certain: bool) -> None:
        match node:
            case ast.If(test=test, body=body, orelse=other):
                self.walk([test], certain=certain)
                self.walk(body, certain=certain and _is_main(test))
                self.walk(other, certain=False)
            case ast.ExceptHandler() | ast.IfExp() | ast.Match():
                self.walk(list(ast.iter_child_nodes(node)), certain=False)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                self.walk([value], certain=certain)
                self.values[name] = value
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add(), value=value):
                before = self.values.get(name, ast.Name(id="?", ctx=ast.Load()))
                self.values[name] = ast.BinOp(before, ast.Add(), value)
            case ast.Call():
                self.call(node, certain)
                self.walk(list(ast.iter_child_nodes(node)), certain=certain)
            case _ if not isinstance(node, SCOPES):
                self.walk(list(ast.iter_child_nodes(node)), certain=certain)

    def call(self, node: ast.Call, certain: bool) -> None:
        match node.func:
            case ast.Name(id=name) if name in self.functions and name not in self.entered:
                self.entered.add(name)
                self.walk(self.functions[name].body, certain=certain)
                return
            case ast.Name(id=name):
                owner = ""
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                pass
            case _:
                return
        if name not in CALLS or owner not in MODULES or not (node.args or node.keywords):
            return
        given = list(node.args)
        if name.startswith(("spawn", "posix_spawn")) and name != "posix_spawn":
            given = given[1:]  # a mode comes first
        if name.startswith("exec") and "v" in name:
            given = given[1:]  # the program's path, and its words with it
        elif name.startswith(("exec", "spawn")) and "l" in name[4:]:
            given = [ast.List(given[1:], ast.Load())]
        elif name == "create_subprocess_exec":
            given = [ast.List(given, ast.Load())]
        argument = next(iter(given), None) or _keyword(node, "args")
        if argument is None:
            return
        words = self.words(argument)
        text = self.text(argument) if words is None else ""
        if words or text:
            self.calls.append(ScriptCall(node.lineno, words or (), text[:MAX_TEXT], certain))

    def words(self, node: ast.expr, depth: int = 0) -> tuple[str, ...] | None:
        """Give the words of a list; None: it is no list."""
        if depth > MAX_DEPTH:
            return None
        match node:
            case ast.List(elts=several) | ast.Tuple(elts=several):
                return tuple(word for one in several for word in self.fields(one, depth))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                first = self.words(left, depth + 1)
                if first is None:
                    return None
                rest = self.words(right, depth + 1)
                return (*first, *(rest if rest is not None else (UNKNOWN,)))
            case ast.Call(func=ast.Attribute(attr="split", value=owner), args=arguments):
                text = self.text(next(iter(arguments), owner), depth + 1)
                return tuple(text.split()) if text else None
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id="sys"), attr="argv"),
                slice=ast.Slice(lower=ast.Constant(value=1), upper=None),
            ):
                return tuple(self.arguments)
            case ast.Name(id=name) if name in self.values:
                return self.words(self.values[name], depth + 1)
        return None

    def fields(self, node: ast.expr, depth: int) -> Iterator[str]:
        if isinstance(node, ast.Starred):
            several = self.words(node.value, depth + 1)
            yield from several if several is not None else (UNKNOWN,)
        else:
            yield self.text(node, depth + 1)

    def text(self, node: ast.expr, depth: int = 0) -> str:
        """Give a text, with UNKNOWN for what is not literal."""
        if depth > MAX_DEPTH:
            return UNKNOWN
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Constant(value=int(number)):
                return str(number)
            case ast.JoinedStr(values=parts):
                return "".join(self.text(part, depth + 1) for part in parts)
            case ast.FormattedValue(value=value) | ast.Call(func=ast.Name(id="str"), args=[value]):
                return self.text(value, depth + 1)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self.text(left, depth + 1) + self.text(right, depth + 1)
            case ast.BinOp(left=ast.Constant(value=str(form)), op=ast.Mod()):
                return _filled(form)
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(form)), attr="format")):
                return _braced(form)
            case ast.Name(id=name) if name in self.values:
                return self.text(self.values[name], depth + 1)
        return UNKNOWN


def _filled(form: str) -> str:
    return re.sub(r"%[-+ #0-9.]*[sdrif]", UNKNOWN, form)


def _braced(form: str) -> str:
    return re.sub(r"\{[^{}]*\}", UNKNOWN, form)


def _keyword(node: ast.Call, name: str) -> ast.expr | None:
    return next((k.value for k in node.keywords if k.arg == name), None)


def _is_main(test: ast.expr) -> bool:
    match test:
        case ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()]):
            return True
        case ast.Constant(value=value):
            return bool(value)
    return False

"""A small mutator: does a change of the code make a check fail?

`survivors` changes one thing at a time in the source of a module (a comparison, a sign, a
number, low for high), runs the changed code in the module's own place, and tells the changes
that no check noticed. Only functions and constants that are asked for are changed: verdicts and
proof, not text.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import signal
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, ModuleType

LIMIT_S = 2.0  # of CPU time; a check that takes longer has met a loop without end

Check = Callable[[], object]

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.RShift: ast.LShift, ast.FloorDiv: ast.Mult,
}  # fmt: skip
WORDS = (
    ("low", "high"), ("lows", "highs"), ("below", "above"), ("mine", "base"), ("old", "new"),
    ("min", "max"), ("minimum", "maximum"), ("any", "all"), ("FASTER", "SLOWER"),
    ("LOWER", "HIGHER"), ("margin", "limit"), ("first", "second"), ("lower", "upper"),
    ("True", "False"), ("PROVEN", "CONTRADICTED"), ("NO_EVIDENCE", "PROVEN"),
    ("NOT_EXERCISED", "PROVEN"),
)  # fmt: skip
ONE_WAY = {"median": "mean", "medians": "deviations", "nanmedian": "nanmean"}
SWAPS = {a: b for one, other in WORDS for a, b in ((one, other), (other, one))} | ONE_WAY


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change. `name` tells it apart from the others: function, line of code, what became."""

    name: str
    tree: ast.Module


def mutants(source: str, only: Collection[str]) -> Iterator[Mutant]:
    """Every single change in the functions, methods (`Class.method`) and constants named."""
    tree = ast.parse(source)
    met: Counter[str] = Counter()
    for owner, part in _parts(tree):
        if owner not in only:
            continue
        for number, node in enumerate(_code(part)):
            for variant in range(_count(node)):
                changed = copy.deepcopy(part)
                at = next(n for k, n in enumerate(_code(changed)) if k == number)
                before = ast.unparse(at).splitlines()[0]
                after = _mutate(at, variant)
                name = f"{owner}: {before} -> {after} in {_line(source, node)}"
                met[name] += 1
                name += f" #{met[name]}" if met[name] > 1 else ""
                yield Mutant(name, _with(tree, part, changed))


def checks(tests: ModuleType) -> list[Check]:
    """The tests of a module that need neither fixtures nor many examples, one call for each set
    of parameters."""
    found: list[Check] = []
    for name, test in inspect.getmembers(tests, inspect.isfunction):
        if name.startswith("test_") and not hasattr(test, "hypothesis"):
            found += [functools.partial(test, **given) for given in _parameters(test)]
    return found


def _parameters(test: Callable[..., object]) -> list[dict[str, object]]:
    """Arguments of each call, for at most one `parametrize`; none for a test of fixtures."""
    marks = [m for m in getattr(test, "pytestmark", ()) if m.name == "parametrize"]
    wanted = set(inspect.signature(test).parameters)
    if not marks:
        return [] if wanted else [{}]
    names, rows = marks[0].args[:2]
    names = [n.strip() for n in names.split(",")] if isinstance(names, str) else list(names)
    if wanted != set(names):
        return []
    return [dict(zip(names, row if len(names) > 1 else (row,), strict=True)) for row in rows]


def survivors(module: ModuleType, only: Collection[str], checks: Collection[Check]) -> list[str]:
    """Names of the mutants that every check passed. Raises AssertionError when there was none
    to try, or when the checks fail on the module as it is."""
    assert module.__file__
    source = Path(module.__file__).read_text()
    order = list(checks)
    assert not _caught(order), "the checks fail without a change"
    alive, tried = [], 0
    original = dict(vars(module))
    try:
        for mutant in mutants(source, only):
            tried += 1
            if _loads(mutant, module) and not _caught(order):
                alive.append(mutant.name)
            vars(module).update(original)
    finally:
        vars(module).update(original)
    assert tried, f"nothing named {sorted(only)} in {module.__name__}"
    return alive


def _loads(mutant: Mutant, module: ModuleType) -> bool:
    """Put the changed code in the module's place; False when it does not even load."""
    code = compile(ast.fix_missing_locations(mutant.tree), str(module.__file__), "exec")
    return not _caught([lambda: exec(code, vars(module))])


def _caught(checks: list[Check]) -> bool:
    """Whether any check fails, in whatever way, or takes longer than LIMIT_S. The one that did
    comes first from then on: it is likely to catch the next mutant, which is on the same line."""
    for place, check in enumerate(checks):
        try:
            with _limit():
                check()
        except KeyboardInterrupt:
            raise
        except BaseException:  # pytest's failures are no Exception
            checks.insert(0, checks.pop(place))
            return True
    return False


@contextmanager
def _limit() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _parts(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            yield node.targets[0].id, node


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it that is run and decides: no annotations, decorators, text, nor
    `strict=True`, whose change only loosens a check of the code itself."""
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.keyword) and child.arg == "strict":
                continue
            if isinstance(child, ast.AST):
                yield from _code(child)


def _with(tree: ast.Module, part: ast.stmt, changed: ast.stmt) -> ast.Module:
    """The module with one part replaced; nothing else is copied."""

    def body(nodes: list[ast.stmt]) -> list[ast.stmt]:
        out = []
        for node in nodes:
            if node is part:
                out.append(changed)
            elif isinstance(node, ast.ClassDef) and part in node.body:
                fields = {name: getattr(node, name) for name in node._fields}
                out.append(
                    ast.copy_location(type(node)(**fields | {"body": body(node.body)}), node)
                )
            else:
                out.append(node)
        return out

    return ast.Module(body(tree.body), tree.type_ignores)


def _line(source: str, node: ast.AST) -> str:
    number = getattr(node, "lineno", 0)
    return source.splitlines()[number - 1].strip() if number else ""


def _count(node: ast.AST) -> int:
    """How many ways there are to change this node."""
    match node:
        case ast.Compare(ops=[op]):
            return len(COMPARISONS.get(type(op), ()))
        case ast.BinOp(op=op):
            return int(type(op) in OPERATORS)
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert()):
            return 1
        case ast.BoolOp():
            return 1
        case ast.If() | ast.IfExp() | ast.While():
            return 2
        case ast.Constant(value=bool()):
            return 1
        case ast.Constant(value=int() | float()):
            return 1
        case ast.Name(id=word, ctx=ast.Load()) | ast.Attribute(attr=word):
            return int(word in SWAPS)
    return 0


def _mutate(node: ast.AST, variant: int) -> str:
    """Change the node in place; returns its new text."""
    match node:
        case ast.Compare(ops=[op]):
            node.ops = [COMPARISONS[type(op)][variant]()]
        case ast.BinOp(op=op):
            node.op = OPERATORS[type(op)]()
        case ast.UnaryOp(op=ast.Not()):
            node.op = ast.UAdd()
            node.operand = ast.Call(ast.Name("bool", ast.Load()), [node.operand], [])
        case ast.UnaryOp():
            node.op = ast.UAdd()
        case ast.BoolOp(op=op):
            node.op = ast.Or() if isinstance(op, ast.And) else ast.And()
        case ast.While():
            node.test = ast.Constant(bool(variant))
            return f"while {bool(variant)}"
        case ast.If() | ast.IfExp():
            node.test = ast.Constant(bool(variant))
            return f"if {bool(variant)}"
        case ast.Constant(value=bool(value)):
            node.value = not value
        case ast.Constant(value=int(value)):
            node.value = value + 1
        case ast.Constant(value=float(value)):
            node.value = value * 1.5 if value else 1.0
        case ast.Name(id=word):
            node.id = SWAPS[word]
        case ast.Attribute(attr=word):
            node.attr = SWAPS[word]
    return ast.unparse(node)

"""A small mutator: does a change of the code make a check fail?

`survivors` changes one thing at a time in the source of a module (a comparison, a sign, a
number, low for high, a condition or a finding left out), puts the changed code into the function
that everyone has imported, and tells the changes that no check noticed. Only functions and
constants that are asked for are changed: verdicts and proof, not text. A check is held against a
change of a function only if it calls that function.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import inspect
import os
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from tests.hang import limit_cpu
from tests.mutation.checks import Check

LIMIT_S = 2.0  # of CPU time; a check that takes longer has met a loop without end

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
    ("low", "high"), ("lows", "highs"), ("below", "above"), ("old", "new"),
    ("candidate", "baseline"),
    ("min", "max"), ("minimum", "maximum"), ("any", "all"), ("FASTER", "SLOWER"),
    ("LOWER", "HIGHER"), ("margin", "limit"), ("first", "second"), ("lower", "upper"),
    ("True", "False"), ("PROVEN", "CONTRADICTED"), ("NO_EVIDENCE", "PROVEN"),
    ("NOT_EXERCISED", "PROVEN"), ("CARRIED", "QUIET"), ("SPLIT", "UNCLEAR"),
    ("ERROR", "WARNING"), ("ON_NODE", "OFF_NODE"), ("OK", "FAILED"),
)  # fmt: skip
ONE_WAY = {
    "median": "mean", "medians": "deviations", "nanmedian": "nanmean", "UNREAD": "QUIET",
    "MISMATCH": "OK", "TIMEOUT": "FAILED", "P2P": "COLLECTIVE", "ONE_SIDED": "P2P",
}  # fmt: skip
SWAPS = {a: b for one, other in WORDS for a, b in ((one, other), (other, one))} | ONE_WAY


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change. `name` tells it apart from the others: function, line of code, what became;
    `part` is the function or constant of `owner` with the change in it."""

    name: str
    owner: str
    part: ast.stmt


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
                yield Mutant(name, owner, changed)


def every(module: ModuleType, but: Collection[str] = ()) -> Collection[str]:
    """The functions, methods and constants of a module that can be changed, without `but`."""
    assert module.__file__
    parts = _parts(ast.parse(Path(module.__file__).read_text()))
    known = {owner for owner, part in parts if any(_count(node) for node in _code(part))}
    assert known >= {*but}, f"unknown among {but}"
    return known - {*but}


def name_of(module: ModuleType) -> str:
    """The last part of its name, which tells a test's modules apart."""
    return module.__name__.rpartition(".")[2]


def survivors(module: ModuleType, only: Collection[str], checks: Collection[Check]) -> list[str]:
    """Names of the mutants that every check passed. Raises AssertionError when there was none
    to try, or when the checks fail on the module as it is. Each core tries its share, in a fork
    of this process, which has the checks already."""
    assert module.__file__
    tried = list(mutants(Path(module.__file__).read_text(), only))
    missing = set(only) - {mutant.owner for mutant in tried}
    assert not missing, f"nothing to change in {sorted(missing)} of {module.__name__}"
    calls = _ordered(checks, module)
    cores = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(cores, get_context("fork"), _begin, (module, calls)) as pool:
        parts = pool.map(_alive, [tried[core::cores] for core in range(cores)])
        alive = {mutant for part in parts for mutant in part}
    return [mutant.name for mutant in tried if mutant.name in alive]


def assert_noticed(
    module: ModuleType, only: Collection[str], checks: Collection[Check], same: Mapping[str, str]
) -> None:
    """Fail for a change that no check noticed, unless `same` has the beginning of its name, with
    the reason why it changes nothing; and for a reason that fits no such change any more."""
    alive = survivors(module, only, checks)
    unexpected = [name for name in alive if not name.startswith(tuple(same))]
    assert not unexpected, "\n".join(["nothing noticed:", *unexpected])
    stale = [known for known in same if not any(name.startswith(known) for name in alive)]
    assert not stale, "\n".join(["noticed, so no excuse is needed:", *stale])


_SHARED: list[Any] = []  # what a fork was given


def _begin(*given: Any) -> None:
    _SHARED[:] = given


def _alive(tried: list[Mutant]) -> list[str]:
    """Names of those of the mutants that live, tried in this process."""
    module, calls = _SHARED
    orders: dict[str, list[Check]] = {}
    alive = []
    for mutant in tried:
        owner = mutant.owner
        if owner not in orders:
            constant = isinstance(mutant.part, ast.Assign)
            orders[owner] = [check for check, names in calls if constant or names[owner]]
        with contextlib.suppress(SyntaxError), _changed(module, mutant):
            if not _caught(orders[owner]):
                alive.append(mutant.name)
    return alive


def _ordered(checks: Collection[Check], module: ModuleType) -> list[Any]:
    """The checks and what each calls: one case of every test first, then another of every test,
    the quickest first. A thousand cases of one test catch much the same."""
    cases: Counter[object] = Counter()
    rows = []
    for check in checks:
        began = time.process_time()
        names = _entered(check, module)
        test = check.args[0] if isinstance(check, functools.partial) else check
        rows.append(((cases[test], time.process_time() - began), check, names))
        cases[test] += 1
    return [(check, names) for _, check, names in sorted(rows, key=lambda row: row[0])]


def _entered(check: Check, module: ModuleType) -> Counter[str]:
    """How often a check that has to pass calls each function of the module."""
    names: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename == module.__file__:
            names[frame.f_code.co_qualname] += 1

    _forget(module)
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        check()
    finally:
        sys.setprofile(before)
    return names


@contextmanager
def _changed(module: ModuleType, mutant: Mutant) -> Iterator[None]:
    """The module with one change: a function keeps its identity and gets other code, since other
    modules and tests hold it by name; a constant is set anew. Classes stay as they are, so a
    value made before the change still equals one made after it."""
    part = ast.fix_missing_locations(ast.Module([mutant.part], []))
    before = dict(vars(module))
    if isinstance(mutant.part, ast.FunctionDef):
        mutant.part.decorator_list = []
    scratch = dict(before)
    code = compile(part, str(module.__file__), "exec")
    _forget(module)
    try:
        if isinstance(mutant.part, ast.FunctionDef):
            exec(code, scratch)
            with _swapped(_function(module, mutant.owner), scratch[mutant.part.name]):
                yield
        else:
            exec(code, vars(module))
            yield
    finally:
        vars(module).update(before)
        _forget(module)


@contextmanager
def _swapped(old: FunctionType, new: FunctionType) -> Iterator[None]:
    def put(code: CodeType, defaults: Any, by_name: Any) -> None:
        old.__code__, old.__defaults__, old.__kwdefaults__ = code, defaults, by_name

    before = (old.__code__, old.__defaults__, old.__kwdefaults__)
    try:
        put(new.__code__, new.__defaults__, new.__kwdefaults__)
        yield
    finally:
        put(*before)


def _function(module: ModuleType, owner: str) -> FunctionType:
    found: Any = module
    for name in owner.split("."):
        found = inspect.getattr_static(found, name)
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, functools.cached_property):
        found = found.func
    found = inspect.unwrap(found)
    assert isinstance(found, FunctionType)
    return found


def _forget(module: ModuleType) -> None:
    """Empty the module's caches: what other code computed is no result of this one."""
    for value in vars(module).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()


def _caught(checks: list[Check]) -> bool:
    """Whether any check fails, in whatever way, or takes longer than LIMIT_S. The one that did
    comes first from then on: it is likely to catch the next mutant, which is on the same line."""
    for place, check in enumerate(checks):
        try:
            with limit_cpu(LIMIT_S):
                check()
        except KeyboardInterrupt:
            raise
        except BaseException:  # pytest's failures are no Exception
            checks.insert(0, checks.pop(place))
            return True
    return False


def _parts(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner
        elif isinstance(node, ast.Assign):  # `A, B = 1, 2` is called `A, B`
            yield ast.unparse(node.targets[0]).strip("()"), node


def _code(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all below it that is run and decides: no annotations, decorators, text, fields
    of a message, nor `strict=True`, whose change only loosens a check of the code itself."""
    yield node
    func = node.func if isinstance(node, ast.Call) else None
    texts = isinstance(func, ast.Attribute) and func.attr == "of"  # Finding.of("its-code", x=1)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list") or isinstance(node, ast.JoinedStr):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.keyword) and child.arg == "strict":
                continue
            if texts and isinstance(child, ast.keyword) and child.arg not in ("level", "evidence"):
                continue
            if isinstance(child, ast.AST):
                yield from _code(child)


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
        case ast.BoolOp(values=values):
            return 1 + len(values)
        case ast.List(elts=several, ctx=ast.Load()) | ast.Tuple(elts=several, ctx=ast.Load()):
            return len(several) if any(isinstance(one, ast.Starred) for one in several) else 0
        case ast.comprehension(ifs=conditions):
            return len(conditions)
        case ast.AugAssign(op=ast.Add()):
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
        case ast.BoolOp(op=op) if variant == 0:
            node.op = ast.Or() if isinstance(op, ast.And) else ast.And()
        case ast.BoolOp(op=op, values=several):
            several[variant - 1] = ast.Constant(True if isinstance(op, ast.And) else None)
        case ast.comprehension(ifs=several):
            several.pop(variant)
        case ast.List(elts=several) | ast.Tuple(elts=several):
            several.pop(variant)
        case ast.AugAssign():
            node.op, node.value = ast.Mult(), ast.Constant(1)  # changes neither number nor list
        case ast.While():
            node.test = ast.Constant(bool(variant))
            return f"while {bool(variant)}"
        case ast.If() | ast.IfExp():
            node.test = ast.Constant(bool(variant))
            return f"if {bool(variant)}"
        case _:
            _mutate_word(node)
    return ast.unparse(node)


def _mutate_word(node: ast.AST) -> None:
    match node:
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

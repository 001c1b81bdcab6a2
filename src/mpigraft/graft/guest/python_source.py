"""Read what one Python source imports, by its syntax tree; nothing of it is run."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from mpigraft.core.parsers import parse_python

MAX_NODES = 2_000_000  # of one file; a megabyte of source has some hundred thousand
MAX_MANAGER = 100  # nodes of a context manager that are looked at
CATCHES = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
LOADERS = frozenset({"import_module", "__import__"})  # with a literal they are imports
OPENERS = frozenset({
    "CDLL", "PyDLL", "LoadLibrary", "load_library", "dlopen", "exec", "execfile", "run_path",
    "run_module", "spec_from_file_location", "load_source", "load_dynamic", "SourceFileLoader",
    "ExtensionFileLoader", "entry_points", "iter_entry_points", "walk_packages", "iter_modules",
})  # fmt: skip
STARTERS = frozenset({
    "system", "popen", "Popen", "run", "call", "check_call", "check_output", "getoutput",
    "posix_spawn", "posix_spawnp", "fork", "create_subprocess_exec", "create_subprocess_shell",
    *(f"{kind}{end}" for kind in ("exec", "spawn") for end in ("v", "ve", "vp", "vpe", "l", "lp")),
})  # fmt: skip
PROCESSES = frozenset({"os", "subprocess", "asyncio", "sh"})  # whose `run` starts a program
LINE = re.compile(
    rb"^[ \t]*+(?:from[ \t]++([\w.]*+)[ \t]++import[ \t]++(?:([\w, \t]+|\*)|\(([^)]{0,8192})\))"
    rb"|import[ \t]++([\w., \t]+))",
    re.MULTILINE,
)
# A statement without any of these words on its lines is skipped.
TELLING = re.compile(
    rb"\b(?:import|__all__|cdll|%s)\b"
    % b"|".join(sorted(word.encode() for word in LOADERS | OPENERS | STARTERS))
)
OPENING = re.compile(rb"\b(%s)\(" % b"|".join(sorted(word.encode() for word in OPENERS | LOADERS)))


@dataclass(frozen=True, slots=True)
class Import:
    """One import. `certain`: it is carried out whenever the module is."""

    module: str  # without leading dots
    level: int  # dots: 0 for an absolute one
    names: tuple[str, ...]  # of `from`; ("*",); empty for a plain import
    certain: bool


@dataclass(frozen=True, slots=True)
class PythonSource:
    """What one file imports, opens and starts."""

    imports: tuple[Import, ...] = ()
    everything: tuple[str, ...] = ()  # __all__
    binds: tuple[str, ...] = ()  # its own names: of these `from` imports no submodule
    opens: tuple[str, ...] = ()  # what cannot be followed: "line 7: CDLL"
    starts: tuple[str, ...] = ()  # other programs: "line 9: system"
    unparsed: str = ""  # why the file could not be parsed


def read_source(data: bytes, *, main: bool = False) -> PythonSource:
    """Read the imports of a source file, in its own encoding. `main`: it runs as `__main__`.

    A file that this Python cannot parse is skimmed, and all of it is uncertain.
    """
    try:
        tree = parse_python(data)
    except (SyntaxError, ValueError) as error:
        return PythonSource(tuple(_by_lines(data)), unparsed=str(error))
    reader = _SourceReader(main, _telling_lines(data))
    reader.read(tree.body)
    return PythonSource(
        tuple(dict.fromkeys(reader.imports)),
        tuple(reader.everything),
        tuple(_bound(tree.body)),
        tuple(reader.opens),
        tuple(reader.starts),
    )


def skim_source(data: bytes) -> PythonSource:
    """Read the imports by patterns on the lines: ten times faster, and all of it uncertain. Text in
    a string may match too."""
    opens = tuple(dict.fromkeys(hit.decode("ascii") for hit in OPENING.findall(data)))
    return PythonSource(tuple(dict.fromkeys(_by_lines(data))), opens=opens)


def _telling_lines(data: bytes) -> list[int]:
    """List numbers of lines with a word that matters, ascending. Lines end as in Python."""
    if b"\0" in data or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return []
    lines = re.split(rb"\r\n|\r|\n", data)
    return [number for number, line in enumerate(lines, 1) if TELLING.search(line)]


def _by_lines(data: bytes) -> Iterator[Import]:
    for whence, bare_names, listed, plain in LINE.findall(data):
        names = bare_names or re.sub(rb"#.*", b"", listed)
        if plain:
            for word in plain.decode("ascii", "replace").split(","):
                if word.split():
                    yield Import(word.split()[0], 0, (), certain=False)
        else:
            module = whence.decode("ascii", "replace")
            bare = module.lstrip(".")
            words = (w.split() for w in names.decode("ascii", "replace").split(","))
            taken = tuple(w[0] for w in words if w)
            yield Import(bare, len(module) - len(bare), taken, certain=False)


@dataclass(slots=True)
class _SourceReader:
    """Statements, outermost first, without recursion: a tree may be as deep as its writer likes."""

    main: bool
    lines: list[int]  # that have a word that matters
    imports: list[Import] = field(default_factory=list)
    everything: list[str] = field(default_factory=list)
    opens: list[str] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)

    def read(self, body: Iterable[ast.AST]) -> None:
        rest: list[tuple[ast.AST, bool]] = [(node, True) for node in body][::-1]
        for _ in range(MAX_NODES):
            if not rest:
                return
            node, certain = rest.pop()
            if isinstance(node, ast.stmt | ast.ExceptHandler) and not self._tells(node):
                continue
            rest += list(self._below(node, certain))[::-1]
        self.opens.append("a file without end")

    def _tells(self, node: ast.stmt | ast.ExceptHandler) -> bool:
        place = bisect_left(self.lines, node.lineno)
        last = node.end_lineno or node.lineno
        return place < len(self.lines) and self.lines[place] <= last

    def _below(self, node: ast.AST, certain: bool) -> Iterator[tuple[ast.AST, bool]]:
        """Yield the nodes below a node, with whether they run whenever the module does."""
        match node:
            case ast.Import(names=names):
                self.imports += [Import(alias.name, 0, (), certain) for alias in names]
            case ast.ImportFrom(module=module, names=names, level=level):
                taken = tuple(alias.name for alias in names)
                self.imports.append(Import(module or "", level, taken, certain))
            case ast.If(test=test, body=body, orelse=other):
                yield (test, certain)
                sure, skip = self._condition(test)
                if not skip:
                    yield from ((n, certain and sure) for n in body)
                yield from ((n, certain and skip) for n in other)
            case ast.Try() | ast.TryStar():
                yield from _of_try(node, certain)
            case ast.With(items=items, body=body) | ast.AsyncWith(items=items, body=body):
                yield from ((n, certain) for n in items)
                sure = not any(_suppresses(item.context_expr) for item in items)
                yield from ((n, certain and sure) for n in body)
            case (
                ast.FunctionDef()
                | ast.AsyncFunctionDef()
                | ast.Lambda()
                | ast.For()
                | ast.AsyncFor()
                | ast.While()
                | ast.Match()
                | ast.IfExp()
                | ast.BoolOp()
            ):
                yield from ((n, False) for n in ast.iter_child_nodes(node))
            case ast.Assign(targets=[ast.Name(id="__all__")], value=value):
                self.everything += _literals(value)
            case ast.Call():
                self._call(node, certain)
                yield from ((n, certain) for n in ast.iter_child_nodes(node))
            case _:
                yield from ((n, certain) for n in ast.iter_child_nodes(node))

    def _condition(self, test: ast.expr) -> tuple[bool, bool]:
        """Give (whether the body of an `if` surely runs, whether it surely does not)."""
        match test:
            case ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"):
                return False, True
            case ast.Compare(
                left=ast.Name(id="__name__"),
                ops=[ast.Eq()],
                comparators=[ast.Constant(value="__main__")],
            ):
                return self.main, not self.main
        return False, False

    def _call(self, call: ast.Call, certain: bool) -> None:
        match call.func:
            case ast.Name(id=name):
                owner = ""
            case ast.Attribute(value=ast.Name(id=owner), attr=name):
                pass
            case ast.Attribute(attr=name):
                owner = "?"
            case _:
                return
        place = f"line {call.lineno}: {name}"
        if name in LOADERS:
            match call.args:
                case [ast.Constant(value=str(module)), *_] if module and not module.startswith("."):
                    self.imports.append(Import(module, 0, (), certain and name == "__import__"))
                case _:
                    self.opens.append(place)
        elif name in OPENERS and not (name == "exec" and owner):
            self.opens.append(place)
        elif owner == "cdll" or (name in STARTERS and (owner in PROCESSES or name == "Popen")):
            (self.opens if owner == "cdll" else self.starts).append(place)


def _of_try(node: ast.Try | ast.TryStar, certain: bool) -> Iterator[tuple[ast.AST, bool]]:
    """Yield the nodes of a `try`: what an ImportError may skip is uncertain, as is its handler."""
    caught = any(_catches(handler.type) for handler in node.handlers)
    yield from ((n, certain and not caught) for n in (*node.body, *node.orelse))
    yield from ((n, False) for n in node.handlers)
    yield from ((n, certain) for n in node.finalbody)


def _suppresses(manager: ast.expr) -> bool:
    """Return whether a context manager is named as those that catch errors are."""
    nodes = islice(ast.walk(manager), MAX_MANAGER)
    return any(
        isinstance(node, ast.Name | ast.Attribute)
        and "suppress" in (node.id if isinstance(node, ast.Name) else node.attr)
        for node in nodes
    )


def _catches(kind: ast.expr | None) -> bool:
    match kind:
        case None:
            return True
        case ast.Tuple(elts=several):
            return any(map(_catches, several))
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in CATCHES
    return True  # something computed


def _bound(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield names that a module may bind at import, in a `try` or an `if` too."""
    rest: list[ast.AST] = [*body]
    while rest:
        node = rest.pop()
        match node:
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((alias.asname or alias.name).partition(".")[0] for alias in names)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Assign(targets=targets):
                rest += targets
            case ast.AnnAssign(target=target, value=ast.expr()):
                rest.append(target)
            case ast.Expr() | ast.AugAssign() | ast.Return() | ast.Assert() | ast.Raise():
                pass  # the bulk of a large file
            case _:
                rest += ast.iter_child_nodes(node)


def _literals(value: ast.expr) -> list[str]:
    if not isinstance(value, ast.List | ast.Tuple):
        return []
    return [
        element.value
        for element in value.elts
        if isinstance(element, ast.Constant) and isinstance(element.value, str)
    ]

"""Read what a script starts: the launchers of MPI in it, in any language."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mpigraft.binary import Root, RootError
from mpigraft.graft.guest.scripts.calls import foreign_calls, is_language
from mpigraft.graft.guest.scripts.cshell import as_shell, is_cshell
from mpigraft.graft.guest.scripts.launches import InnerLaunch
from mpigraft.graft.guest.scripts.python import python_calls
from mpigraft.graft.guest.scripts.r_source import is_r, named_packages
from mpigraft.graft.guest.scripts.shell import ShellScript
from mpigraft.graft.guest.scripts.shell_flow import ShellBudget
from mpigraft.graft.guest.scripts.shell_syntax import UNKNOWN
from mpigraft.graft.guest.scripts.shell_values import Fields, Values, Variables
from mpigraft.graft.guest.scripts.starters import SHELLS, ScriptCall

MAX_SCRIPT = 1 << 20  # bytes
MAX_SCRIPTS = 8  # that start each other
Find = Callable[[str, Mapping[str, str], str], str]  # (word, environment, folder) -> path; or ""


@dataclass(frozen=True, slots=True)
class ScriptReading:
    """The launchers that a script starts, its other commands, and the files that this was read
    from."""

    launches: tuple[InnerLaunch, ...] = ()
    started: tuple[ScriptCall, ...] = ()
    sources: tuple[str, ...] = ()
    packages: tuple[tuple[str, bool], ...] = ()  # of R: (name, whether loaded in any case)
    r: str = ""  # the R that runs it, as it is spelled


@dataclass(frozen=True, slots=True)
class ScriptSource:
    """A script: what runs it, its path as it was started, its text, and how it is started."""

    interpreter: str
    path: str
    data: bytes
    arguments: Fields
    environment: Mapping[str, str]
    cwd: str
    files: Mapping[str, str] = field(default_factory=dict)  # written by what started it

    def variables(self) -> Variables:
        """Give the variables that the script begins with."""
        values: dict[str, Values] = {name: ((text,),) for name, text in self.environment.items()}
        return Variables(values, self.arguments, self.path, self.cwd, dict(self.files))


class ScriptReader:
    """Reads scripts of a root, and those that they start. `find` names the file of a word."""

    def __init__(self, root: Root, find: Find, cwd: str) -> None:
        self.root, self.find, self.cwd = root, find, cwd
        self.sources: list[str] = []
        self.started: list[ScriptCall] = []
        self.packages: dict[str, bool] = {}
        self.r = ""
        self.open: list[str] = []  # scripts that start each other
        self.budget = ShellBudget()

    def read(
        self, interpreter: str, path: str, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> ScriptReading:
        """Read a script file that this interpreter runs, as it was started by `path`."""
        path = posixpath.normpath(path)
        source = ScriptSource(
            interpreter, path, self._data(path), tuple(arguments), environment, self.cwd
        )
        return self._reading(self._source(source))

    def read_code(
        self,
        interpreter: str,
        code: bytes,
        arguments: Sequence[str],
        environment: Mapping[str, str],
    ) -> ScriptReading:
        """Read what is behind `-c` of an interpreter."""
        name = f"{interpreter.rpartition('/')[2]} -c"
        source = ScriptSource(interpreter, name, code, tuple(arguments), environment, self.cwd)
        return self._reading(self._source(source))

    def _reading(self, launches: Sequence[InnerLaunch]) -> ScriptReading:
        known = tuple(replace(x, cwd="" if x.cwd == self.cwd else x.cwd) for x in launches)
        sources = tuple(dict.fromkeys(self.sources))
        packages = tuple(self.packages.items())
        return ScriptReading(known, tuple(self.started), sources, packages, self.r)

    def _data(self, path: str) -> bytes:
        """Read a script; empty: it is none, or cannot be read."""
        entry = self.root.find(path)
        self.sources.append(entry.path if entry is not None else path)  # it may come to be
        if entry is None or entry.kind != "file" or entry.size > MAX_SCRIPT:
            return b""
        try:
            return self.root.read(entry.path, MAX_SCRIPT)
        except RootError:
            return b""

    def _text(self, path: str) -> str:
        return self._data(path).decode("utf-8", "surrogateescape")

    def _source(self, source: ScriptSource) -> tuple[InnerLaunch, ...]:
        name = source.interpreter.rpartition("/")[2]
        if not source.data:
            return ()
        text = source.data.decode("utf-8", "surrogateescape")
        calls: Sequence[ScriptCall] = ()
        if name in SHELLS or is_cshell(name):
            reading = self._script(source)
            reading.read(text if name in SHELLS else as_shell(text))
            self.started += reading.started
            return tuple(reading.launches)
        if name.startswith("python"):
            calls = python_calls(source.data, source.arguments)
        elif is_language(name):
            calls = foreign_calls(text, name)
            if is_r(name) and not self.open:
                self.packages, self.r = named_packages(text), source.interpreter
        return tuple(launch for call in calls for launch in self._called(call, source))

    def _script(self, source: ScriptSource) -> ShellScript:
        variables = source.variables()
        return ShellScript(source.path, variables, self._follow, self._text, self.budget)

    def _called(self, call: ScriptCall, source: ScriptSource) -> tuple[InnerLaunch, ...]:
        """Give what a call of a script in another language starts."""
        reading = self._script(source)
        if call.text:
            reading.text(call.text, None)
        elif call.words:
            reading.fields(call.words, call.line)
        certain = [replace(x, certain=x.certain and call.certain) for x in reading.started]
        self.started += certain
        return tuple(
            replace(one, line=call.line, certain=one.certain and call.certain)
            for one in reading.launches
        )

    def _follow(
        self, words: Fields, settings: Mapping[str, str], cwd: str, files: Mapping[str, str]
    ) -> tuple[InnerLaunch, ...] | None:
        """Read a script that a script starts, or that it has written (`files`). None: it is none
        of a shell."""
        if UNKNOWN in words[0] + cwd:
            return None
        name = words[0].rpartition("/")[2]
        interpreter, rest = "", words
        if name in SHELLS or is_language(name) or name.startswith("python"):
            place = next((n for n, w in enumerate(words[1:], 1) if not w.startswith("-")), 0)
            interpreter, rest = (words[0] if place else ""), words[place:]
        if not rest or UNKNOWN in rest[0]:
            return None
        path = posixpath.normpath(posixpath.join(cwd, rest[0]))
        if not (interpreter or "/" in rest[0]):
            path = self.find(rest[0], settings, cwd)
        written = files[path].encode("utf-8", "surrogateescape") if path in files else b""
        interpreter = interpreter or (
            interpreter_of(written) or "sh" if written else self._interpreter(path)
        )
        if not interpreter:
            return None
        if len(self.open) >= MAX_SCRIPTS or self.open.count(path) > 1:
            return ()  # it is read already
        data = written or self._data(path)
        self.open.append(path)
        launches = self._source(
            ScriptSource(interpreter, path, data, rest[1:], settings, cwd, files)
        )
        self.open.pop()
        return launches if launches or interpreter.rpartition("/")[2] in SHELLS else None

    def _interpreter(self, path: str) -> str:
        entry = self.root.find(path) if path else None
        if entry is None and path:
            self.sources.append(path)  # it may come to be
        if entry is None or entry.kind != "file":
            return ""
        try:
            return interpreter_of(self.root.read(entry.path, 256))
        except RootError:
            return ""


def interpreter_of(head: bytes) -> str:
    """Give the program that runs a script by its first line; empty: it has none."""
    if not head.startswith(b"#!") or head[32:42] == b"SIF_MAGIC\0":
        return ""
    words = head[2:].split(b"\n")[0].decode("utf-8", "replace").split()
    if words and words[0].rpartition("/")[2] == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else ""

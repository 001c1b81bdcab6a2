"""Follow a shell script as far as reading shows: which launchers of MPI it starts, and whether
always. Nothing is run."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mpigraft.graft.guest.scripts.launches import InnerLaunch, launch_of
from mpigraft.graft.guest.scripts.shell_syntax import (
    Branches,
    Chain,
    Command,
    Function,
    Loop,
    Node,
    parse_shell,
)
from mpigraft.graft.guest.scripts.shell_values import (
    MOST,
    UNKNOWN,
    Fields,
    Variables,
    expand,
    expand_text,
)

MAX_STEPS = 5000  # commands that are followed; functions and loops repeat some
MAX_CALLS = 20  # functions in functions
SHELLS = frozenset({"sh", "ash", "bash", "dash", "ksh", "mksh", "zsh", "rbash"})
# They start the program that follows their options.
STARTERS = frozenset({
    "exec", "command", "builtin", "time", "nohup", "env", "nice", "ionice", "timeout", "setsid",
    "stdbuf", "numactl", "taskset", "strace", "ltrace", "perf", "catchsegv", "unbuffer", "sudo",
    "chrt", "prlimit", "unshare", "setarch", "eatmydata", "xvfb-run", "script", "flock", "coproc",
})  # fmt: skip
TESTS = frozenset({"[", "[[", "((", "test", "command", "which", "type", "hash", "grep", "false"})
DECLARATIONS = frozenset({"export", "declare", "typeset", "local", "readonly"})
# A variable of a rank: a script that looks at one may be meant to be started by a launcher.
RANK = re.compile(r"\b(OMPI_COMM_WORLD|PMI_|PMIX_|PALS_|MV2_COMM_WORLD|SLURM_(PROC|LOCAL)ID|ALPS_)")
SETTING = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True)
class Started:
    """A command that a script starts and that is no launcher. `certain`: whenever it runs."""

    words: Fields
    cwd: str
    certain: bool = True


@dataclass(slots=True)
class ShellScript:
    """A script that is followed. `follow` answers for a script that this one starts, with its
    launches; `started` are its other commands."""

    script: str
    variables: Variables
    follow: Callable[[Fields, Mapping[str, str], str], tuple[InnerLaunch, ...]]
    text_of: Callable[[str], str]  # of a file; empty: it cannot be read
    launches: list[InnerLaunch] = field(default_factory=list)
    started: list[Started] = field(default_factory=list)
    functions: dict[str, tuple[Node, ...]] = field(default_factory=dict)
    steps: int = 0
    calls: int = 0
    ended: bool = False  # what follows does not run
    replaced: bool = False  # it ended by the start of another program
    may_end: bool = False  # a rank may have ended before

    def read(self, text: str) -> None:
        """Follow the text of the script."""
        nodes, whole = parse_shell(text)
        self.walk(nodes)
        if not whole:
            self.launches = [replace(one, certain=False) for one in self.launches]

    def walk(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self.steps += 1
            if self.ended or self.steps > MAX_STEPS:
                return
            match node:
                case Command():
                    self.command(node)
                case Function(name=name, body=body):
                    self.functions[name] = body
                case Branches(tests=tests, lists=lists, whole=whole):
                    self.walk(tests)
                    self.branches(tests, lists, whole)
                case Chain(first=first, operator=operator, second=second):
                    self.walk(first)
                    if operator == "&&" and not _is_test(first):
                        self.walk(second)
                    else:
                        self.branches(first, (second,), whole=False)
                case Loop():
                    self.loop(node)

    def branches(self, tests: Sequence[Node], lists: Sequence[Sequence[Node]], whole: bool) -> None:
        """Follow lists of which one runs, each from the same variables."""
        before, kept, found, ended = self.variables, self.launches, [], []
        after = []
        of_rank = RANK.search(repr(tests)) is not None
        for nodes in lists:
            self.variables, self.launches, self.ended = before.copy(), [], False
            self.replaced, others = False, len(self.started)
            self.walk(nodes)
            starts_other = any(_is_own(one.words[0]) for one in self.started[others:])
            beside = self.replaced or starts_other  # it runs a program without a launcher
            if self.ended and not self.launches:
                self.may_end = self.may_end or of_rank or beside
            self.started[others:] = [replace(x, certain=False) for x in self.started[others:]]
            found.append((self.launches, self.ended and not beside))
            ended.append(self.ended)
            if not self.ended:
                after.append(self.variables)
        self.variables, self.launches, self.ended = before, kept, False
        passing = [launches for launches, stopped in found if launches or not stopped]
        every = whole and all(any(one.certain for one in few) for few in passing)
        for launches, _ in found:
            self.launches += [replace(x, certain=x.certain and every) for x in launches]
        self.ended = whole and all(ended)
        self.variables.merge([*after, *([] if whole and after else [before.copy()])])

    def loop(self, loop: Loop) -> None:
        self.walk(loop.tests)
        names: Sequence[str] = ()
        if loop.name and loop.words is None:
            names = self.variables.arguments or (UNKNOWN,)
        elif loop.name:
            names = next(iter(expand(loop.words or (), self.variables)), ())
        if not loop.name:
            self.walk(loop.body)
        for name in names[:MOST]:
            self.variables.values[loop.name] = (name,)
            self.walk(loop.body)

    # -------------------------------------------------------------- commands

    def command(self, command: Command) -> None:
        variables = self.variables
        for name, word in command.settings:
            variables.values[name] = (
                (word,) if name.endswith("[@]") else expand_text(word, variables)
            )
        if not command.words:
            return
        several = expand(command.words, variables)
        found: list[list[InnerLaunch]] = []
        kept, others = self.launches, len(self.started)
        for fields in several:
            self.launches = []
            self.fields(fields, command.line)
            found.append(self.launches)
        if len(several) > 1:
            self.started[others:] = [replace(x, certain=False) for x in self.started[others:]]
        every = all(any(one.certain for one in few) for few in found)
        self.launches = kept
        for launches in found:
            self.launches += [replace(x, certain=x.certain and every) for x in launches]

    def fields(self, fields: Fields, line: int) -> None:
        """Follow a command whose words are expanded."""
        if not fields:
            return
        head, rest = fields[0], fields[1:]
        if head in self.functions and self.calls < MAX_CALLS:
            self.call(head, rest)
        elif head in DECLARATIONS:
            for word in rest:
                name, equals, value = word.partition("=")
                if equals:
                    self.variables.values[name] = (value,)
        elif head in ("exit", "return"):
            self.ended = head == "exit" or not self.calls
        elif head in ("cd", "pushd"):
            self.enter(rest)
        elif head == "shift":
            self.shift(rest)
        elif head == "set" and "--" in rest:
            self.variables.arguments = rest[rest.index("--") + 1 :]
        elif head in (".", "source") and rest:
            self.source(rest[0])
        elif head == "eval":
            self.text(" ".join(rest), self.variables.arguments)
        else:
            self.start(fields, line)

    def call(self, name: str, arguments: Fields) -> None:
        outer = self.variables.arguments
        self.variables.arguments = arguments
        self.calls += 1
        self.walk(self.functions[name])
        self.calls -= 1
        self.variables.arguments = outer

    def enter(self, rest: Fields) -> None:
        folder = rest[0] if rest else UNKNOWN
        known = UNKNOWN not in folder + self.variables.cwd and folder != "-"
        joined = posixpath.normpath(posixpath.join(self.variables.cwd, folder))
        self.variables.cwd = joined if known else UNKNOWN

    def shift(self, rest: Fields) -> None:
        count = rest[0] if rest else "1"
        arguments = self.variables.arguments
        known = arguments is not None and count.isdigit()
        self.variables.arguments = arguments[int(count) :] if known and arguments else arguments
        if not known:
            self.variables.arguments = None

    def source(self, word: str) -> None:
        """Follow a script that runs in this one; those of the system set up no launcher."""
        path = posixpath.normpath(posixpath.join(self.variables.cwd, word))
        if UNKNOWN not in path and not path.startswith(("/etc/", "/usr/")):
            self.text(self.text_of(path), self.variables.arguments)

    def text(self, text: str, arguments: Fields | None) -> None:
        """Follow text that is run as a script: of eval, or behind -c."""
        if UNKNOWN in text:
            text = text.replace(UNKNOWN, "'\0'")
        outer = self.variables.arguments
        self.variables.arguments = arguments
        self.calls += 1
        if self.calls < MAX_CALLS:
            self.walk(parse_shell(text)[0])
        self.calls -= 1
        self.variables.arguments = outer

    def start(self, fields: Fields, line: int) -> None:
        """Note what a command starts."""
        words, replaces = behind_starters(fields)
        if not words:
            return
        if (found := launch_of(words)) is not None:
            cwd = self.variables.cwd
            self.launches.append(
                InnerLaunch(found[0], words, self.script, line, cwd, not self.may_end, found[1].own)
            )
        elif code := shell_code(words):
            text, arguments = code
            self.text(text, arguments)
        else:
            settings = {n: v[0] for n, v in self.variables.values.items() if len(v) == 1}
            inner = self.follow(words, settings, self.variables.cwd)
            self.launches += [replace(x, certain=x.certain and not self.may_end) for x in inner]
            if not inner:
                self.started.append(Started(words, self.variables.cwd, not self.may_end))
        self.ended, self.replaced = self.ended or replaces, self.replaced or replaces


def behind_starters(fields: Fields) -> tuple[Fields, bool]:
    """Strip programs that start the one behind them: (its words, whether it replaces the shell).
    The launcher counts that is the first word behind their options."""
    words, replaces = fields, False
    while words and words[0].rpartition("/")[2] in STARTERS:
        if words[0] == "command" and words[1:2] in (("-v",), ("-V",)):
            return (), False
        replaces = replaces or words[0] == "exec"
        rest = words[1:]
        if words[0] == "exec" and not rest:
            return (), False  # redirections alone
        options = [n for n, w in enumerate(rest) if w.startswith("-") or SETTING.match(w)]
        start = 0
        while start in options:
            start += 1
        known = [n for n in range(start, len(rest)) if launch_of(rest[n:])]
        # An option of numactl or timeout may have a value, and `timeout 60` has one of its own.
        plain = words[0] in ("exec", "command", "builtin", "nohup", "setsid", "time")
        if known and not plain:
            start = known[0]
        words = rest[start:]
    return words, replaces


def shell_code(words: Fields) -> tuple[str, Fields] | None:
    """Split `sh -c CODE NAME ARGUMENT...`: (the code, its arguments)."""
    if words[0].rpartition("/")[2] not in SHELLS:
        return None
    for place, word in enumerate(words[1:], 1):
        if not word.startswith("-") or word.startswith("--"):
            return None
        if word.endswith("c") and place + 1 < len(words):
            return words[place + 1], words[place + 3 :]
    return None


def shell_script(words: Fields) -> int:
    """Find the script in `bash [-x] SCRIPT`: its place among the words; 0: none."""
    if words[0].rpartition("/")[2] not in SHELLS or shell_code(words):
        return 0
    for place, word in enumerate(words[1:], 1):
        if not word.startswith("-"):
            return place
    return 0


def _is_test(nodes: Sequence[Node]) -> bool:
    last = nodes[-1] if nodes else None
    match last:
        case Command(words=words):
            return not words or words[0].rpartition("/")[2] in TESTS
        case Chain(first=first, second=second):
            return _is_test(first) or _is_test(second)
    return False


def _is_own(word: str) -> bool:
    """Whether a program is one of the user's: named by a path, and not of the system."""
    return "/" in word and not word.startswith(("/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/"))

"""Parse a shell script into commands, loops and branches; words stay as they are written.

The grammar is POSIX's, with bash's `[[`, `((`, `function` and here-strings. What a shell would
refuse ends the parse: the commands before it are kept.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from mpigraft.graft.guest.scripts.shell_tokens import (
    REDIRECTIONS,
    Lexer,
    ShellSyntaxError,
    Token,
)

MAX_DEPTH = 60  # of commands in commands
CASE_ENDS = frozenset({";;", ";&", ";;&"})
SETTING = re.compile(r"([A-Za-z_]\w*)\+?=(.*)", re.DOTALL)
NAME = re.compile(r"[A-Za-z_][\w.:-]*")


@dataclass(frozen=True, slots=True)
class Command:
    """A command without parts: settings before it, and its words."""

    settings: tuple[tuple[str, str], ...]
    words: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Branches:
    """Lists of which at most one runs; exactly one if `whole`."""

    tests: tuple[Node, ...]
    lists: tuple[tuple[Node, ...], ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class Loop:
    """A list that is repeated: for each of `words`, or (with no `name`) while `tests` hold."""

    name: str
    words: tuple[str, ...] | None  # None: the script's own arguments
    tests: tuple[Node, ...]
    body: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """`first && second` or `first || second`."""

    first: tuple[Node, ...]
    operator: str
    second: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Function:
    """The definition of a function."""

    name: str
    body: tuple[Node, ...]


Node = Command | Branches | Loop | Chain | Function


def parse_shell(text: str) -> tuple[tuple[Node, ...], bool]:
    """Parse a script: (its commands, whether all of it could be parsed)."""
    tokens: list[Token] = []
    nodes: list[Node] = []
    whole = True
    try:
        for token in Lexer(text).tokens():
            tokens.append(token)  # one by one: those before an error are kept
    except ShellSyntaxError:
        whole = False
    parser = _Parser([*tokens, Token("\n", 0, operator=True)])
    try:
        while parser.place < len(parser.tokens):
            nodes += parser.lines((), 0, nodes)
            if parser.place < len(parser.tokens):
                raise ShellSyntaxError(parser.tokens[parser.place].text)
    except ShellSyntaxError:
        whole = False
    return tuple(nodes), whole


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self.tokens, self.place = tokens, 0

    def peek(self, *texts: str, operator: bool = True) -> bool:
        if self.place >= len(self.tokens):
            return False
        token = self.tokens[self.place]
        return token.operator is operator and (not texts or token.text in texts)

    def word(self, *texts: str) -> bool:
        return self.peek(*texts, operator=False)

    def take(self) -> Token:
        if self.place >= len(self.tokens):
            raise ShellSyntaxError("end")
        self.place += 1
        return self.tokens[self.place - 1]

    def want(self, text: str) -> None:
        if self.take().text != text:
            raise ShellSyntaxError(text)

    def lines(
        self, ends: Collection[str], depth: int, into: list[Node] | None = None
    ) -> list[Node]:
        """Parse commands up to one of the words or operators `ends`. `into` also gets them as they
        come, for what is known before an error."""
        if depth > MAX_DEPTH:
            raise ShellSyntaxError("too deep")
        nodes: list[Node] = []
        while self.place < len(self.tokens):
            if self.peek(";", "&", "\n"):
                self.take()
            elif self.tokens[self.place].text in ends or self.peek(")", *CASE_ENDS):
                break
            else:
                try:
                    nodes += self.chain(depth + 1)
                except ShellSyntaxError:
                    if into is not None:
                        into += nodes
                    raise
        return nodes

    def chain(self, depth: int) -> list[Node]:
        nodes = self.pipeline(depth)
        while self.peek("&&", "||"):
            operator = self.take().text
            self.newlines()
            nodes = [Chain(tuple(nodes), operator, tuple(self.pipeline(depth)))]
        return nodes

    def newlines(self) -> None:
        while self.peek("\n"):
            self.take()

    def pipeline(self, depth: int) -> list[Node]:
        while self.word("!", "time", "coproc"):
            self.take()
            while self.word("-p"):
                self.take()
        nodes = self.command(depth)
        while self.peek("|", "|&"):
            self.take()
            self.newlines()
            nodes += self.command(depth)
        return nodes

    def command(self, depth: int) -> list[Node]:
        if depth > 2 * MAX_DEPTH:
            raise ShellSyntaxError("too deep")
        if self.peek("("):
            self.take()
            nodes = self.lines((")",), depth)
            self.want(")")
        elif self.word("{"):
            self.take()
            nodes = self.until("}", depth)
        elif self.word("if"):
            nodes = [self.branches(depth)]
        elif self.word("while", "until"):
            self.take()
            tests = self.until("do", depth)
            nodes = [Loop("", (), tuple(tests), tuple(self.until("done", depth)))]
        elif self.word("for", "select"):
            nodes = [self.loop(depth)]
        elif self.word("case"):
            nodes = [self.case(depth)]
        elif self.word("function"):
            self.take()
            nodes = [self.function(depth)]
        elif self.word() and self.place + 2 < len(self.tokens) and self.is_function():
            nodes = [self.function(depth)]
        else:
            return [self.simple()]
        self.redirections()
        return nodes

    def until(self, end: str, depth: int) -> list[Node]:
        nodes = self.lines((end,), depth)
        self.want(end)
        return nodes

    def is_function(self) -> bool:
        first, opening, closing = self.tokens[self.place : self.place + 3]
        brackets = opening.operator and closing.operator and opening.text + closing.text == "()"
        return brackets and NAME.fullmatch(first.text) is not None

    def function(self, depth: int) -> Function:
        name = self.take().text
        if self.peek("("):
            self.take()
            self.want(")")
        self.newlines()
        return Function(name, tuple(self.command(depth + 1)))

    def branches(self, depth: int) -> Branches:
        tests: list[Node] = []
        lists: list[tuple[Node, ...]] = []
        word = self.take().text
        while word in ("if", "elif"):
            tests += self.until("then", depth)
            lists.append(tuple(self.lines(("elif", "else", "fi"), depth)))
            word = self.take().text
        if word == "else":
            lists.append(tuple(self.until("fi", depth)))
        return Branches(tuple(tests), tuple(lists), word == "else")

    def loop(self, depth: int) -> Loop:
        self.take()
        name = self.take().text
        self.newlines()
        words: tuple[str, ...] | None = None
        if name == "((":
            name, words = "", ()
        elif self.word("in"):
            self.take()
            words = tuple(self.words())
        while self.peek(";", "\n"):
            self.take()
        end = "}" if self.word("{") else "done"
        self.take()
        return Loop(name, words, (), tuple(self.until(end, depth)))

    def words(self) -> Iterator[str]:
        while self.word():
            yield self.take().text

    def case(self, depth: int) -> Branches:
        self.take()
        self.take()
        self.newlines()
        self.want("in")
        lists: list[tuple[Node, ...]] = []
        whole = False
        while True:
            while self.peek("\n", *CASE_ENDS):
                self.take()
            if self.word("esac"):
                break
            while not self.peek(")"):
                whole = whole or self.take().text == "*"
            self.take()
            lists.append(tuple(self.lines(("esac",), depth)))
        self.take()
        return Branches((), tuple(lists), whole)

    def redirections(self) -> None:
        while self.peek(*REDIRECTIONS):
            self.take()
            self.take()

    def simple(self) -> Command:
        settings: list[tuple[str, str]] = []
        words: list[str] = []
        if self.place >= len(self.tokens):
            raise ShellSyntaxError("end")
        line = self.tokens[self.place].line
        while True:
            self.redirections()
            if not self.word():
                break
            text = self.take().text
            setting = SETTING.fullmatch(text) if not words else None
            if setting and self.peek("(") and not setting[2]:  # an array of bash's
                self.take()
                values = [t.text for t in self.array()]
                settings.append((f"{setting[1]}[@]", " ".join(values)))
            elif setting:
                settings.append((setting[1], setting[2]))
            else:
                words.append(text)
        nothing = not words and not settings and self.place < len(self.tokens)
        if nothing and not self.peek("\n", ";", "&"):
            raise ShellSyntaxError(self.tokens[self.place].text)
        return Command(tuple(settings), tuple(words), line)

    def array(self) -> Iterator[Token]:
        while not self.peek(")"):
            token = self.take()
            if not token.operator:
                yield token
        self.take()

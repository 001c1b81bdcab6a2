"""Split a shell script into words and operators; here-documents and comments are left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_DEPTH = 60  # of substitutions in words
OPERATORS = (";;&", "<<-", "<<<", "&>>", ";;", ";&", "&&", "||", "|&", "&>", ">>", "<<", ">&", "<&",
             "<>", ">|", ";", "&", "|", "(", ")", "<", ">", "\n")  # fmt: skip
REDIRECTIONS = frozenset({"<", ">", ">>", "<<", "<<-", "<<<", "<&", ">&", "<>", ">|", "&>", "&>>"})
OPENING = frozenset({
    "then", "do", "else", "elif", "{", "!", "if", "while", "until", "time", "for",
})  # fmt: skip
BRACKETS = re.compile(r"\[\[\s(.*?)\s\]\](?=[\s;&|)]|$)", re.DOTALL)  # of bash, a command


class ShellSyntaxError(ValueError):
    """A script is not what a shell takes."""


@dataclass(frozen=True, slots=True)
class Token:
    """A word as it is written, or an operator."""

    text: str
    line: int
    operator: bool = False


@dataclass(slots=True)
class Lexer:
    """Reads the tokens of a script, one after the other."""

    text: str
    place: int = 0
    line: int = 1
    begins: bool = True  # a command begins here
    delimiter: str = ""  # the operator of a here-document whose delimiter comes next
    documents: list[tuple[str, bool]] = field(default_factory=list)  # (delimiter, tabs stripped)

    def tokens(self) -> Iterator[Token]:
        """Yield all tokens. Raises ShellSyntaxError where a quotation has no end."""
        while self.place < len(self.text):
            yield from self._next()

    def _next(self) -> Iterator[Token]:
        text, place = self.text, self.place
        if text[place] in " \t\r":
            self.place += 1
        elif text.startswith("\\\n", place):
            self._move(place + 2)
        elif text[place] == "#":
            self.place = _line_end(text, place)
        elif self.begins and text.startswith("((", place):
            yield self._word("((", _after(text, "))", place + 2))
        elif self.begins and (match := BRACKETS.match(text, place)):
            yield Token("[[", self.line)
            yield self._word(match[1].strip(), match.end())
        elif text.startswith(("<(", ">("), place):  # bash's: a process in the place of a file
            end = _closed(text, place + 2, ")", 0)
            yield self._word(text[place:end], end)
        elif operator := next((o for o in OPERATORS if text.startswith(o, place)), ""):
            yield self._operator(operator)
        else:
            end = word_end(text, place)
            word = text[place:end]
            if word.isdigit() and text[end : end + 1] in ("<", ">"):
                self._move(end)  # the number of a redirected descriptor
            else:
                yield self._word(word, end)

    def _move(self, end: int) -> None:
        self.line += self.text.count("\n", self.place, end)
        self.place = end

    def _word(self, word: str, end: int) -> Token:
        token = Token(word, self.line)
        self._move(end)
        if self.delimiter:
            self.documents.append((re.sub(r"[\\'\"]", "", word), self.delimiter == "<<-"))
            self.delimiter = ""
        self.begins = word in OPENING
        return token

    def _operator(self, operator: str) -> Token:
        token = Token(operator, self.line, operator=True)
        self._move(self.place + len(operator))
        self.delimiter = operator if operator in ("<<", "<<-") else ""
        self.begins = operator not in REDIRECTIONS
        if operator == "\n":
            self._skip_documents()
        return token

    def _skip_documents(self) -> None:
        """Skip the here-documents that begin at this line."""
        while self.documents:
            delimiter, stripped = self.documents.pop(0)
            while self.place < len(self.text):
                end = _line_end(self.text, self.place)
                row = self.text[self.place : end]
                self._move(min(end + 1, len(self.text)))
                if (row.lstrip("\t") if stripped else row) == delimiter:
                    break


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def word_end(text: str, place: int, depth: int = 0) -> int:
    """Find the end of the word that begins at `place`. Raises ShellSyntaxError for an
    open quotation."""
    while place < len(text) and text[place] not in " \t\r\n;&|()<>":
        place = part_end(text, place, depth)
    return place


def part_end(text: str, place: int, depth: int = 0) -> int:
    """Find the end of the character, quotation or substitution that begins at `place`."""
    if depth > MAX_DEPTH:
        raise ShellSyntaxError("too deep")
    match text[place]:
        case "\\":
            return min(place + 2, len(text))
        case "'":
            return _after(text, "'", place + 1)
        case '"':
            return _closed(text, place + 1, '"', depth)
        case "`":
            return _closed(text, place + 1, "`", depth)
        case "$" if text.startswith("$'", place):
            return _closed(text, place + 2, "'", depth)
        case "$" if text.startswith("$((", place) and "))" in text[place:]:
            return _after(text, "))", place + 3)
        case "$" if text.startswith("$(", place):
            return _closed(text, place + 2, ")", depth)
        case "$" if text.startswith("${", place):
            return _closed(text, place + 2, "}", depth)
    return place + 1


def _after(text: str, end: str, place: int) -> int:
    found = text.find(end, place)
    if found < 0:
        raise ShellSyntaxError(end)
    return found + len(end)


def _closed(text: str, place: int, end: str, depth: int) -> int:
    """Find what is behind the closing `end`, over quotations and substitutions within."""
    raw = end in "`'"
    while place < len(text):
        character = text[place]
        if character == end:
            return place + 1
        if character == "\\":
            place += 2
        elif raw or (end == '"' and character not in "$`"):
            place += 1
        elif end == ")" and character == "(":
            place = _closed(text, place + 1, ")", depth + 1)
        elif end == ")" and character == "#" and text[place - 1] in " \t\n":
            place = _line_end(text, place)
        else:
            place = part_end(text, place, depth + 1)
    raise ShellSyntaxError(end)

"""A small mutator for C: which single changes of some functions does no check notice?

It works on the text: comparisons, signs, logic, numbers, the words of WORDS and whole statements,
in the functions and constants that are named. Operators are found by the spaces around them, as
the sources are written; what does not compile is no mutant.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

OPERATORS = {
    " < ": (" <= ", " >= "), " <= ": (" < ", " > "), " > ": (" >= ", " <= "),
    " >= ": (" > ", " < "), " == ": (" != ",), " != ": (" == ",), " && ": (" || ",),
    " || ": (" && ",), " + ": (" - ",), " - ": (" + ",), " * ": (" / ",), " / ": (" * ",),
    " += ": (" -= ",), " *= ": (" += ",), "!": ("",),
}  # fmt: skip
WORDS = {
    "smaller": "larger", "larger": "smaller", "true": "false", "false": "true",
    "MPI_SUM": "MPI_MAX", "MPI_MAX": "MPI_MIN", "MPI_MIN": "MPI_MAX", "median_of": "mean_of",
    "mean_of": "median_of", "clock.cost": "clock.resolution", "PAIRS": "PAIR",
    "LATENCY": "BANDWIDTH", "EVERYONE": "PAIRS",
}  # fmt: skip
NUMBER = re.compile(r"(?<![\w.])(\d+\.\d*(?:e-?\d+)?|\d+e-?\d+|\d+)(?![\w.])")
WORD = re.compile(r"\b(?:" + "|".join(map(re.escape, WORDS)) + r")\b")
OPERATOR = re.compile("|".join(re.escape(o) for o in sorted(OPERATORS, key=len, reverse=True)))
CONDITION = re.compile(r"\b(if|while) \(")
STATEMENT = re.compile(r"^ +(?:OK\(.*\)|\w+\(.*\)|[\w.>\[\]-]+ [+*/-]?= .*|break|return false);$")


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str  # function, line, what became of it
    text: str  # of the whole file


def mutants(source: str, only: Collection[str]) -> Iterator[Mutant]:
    """Every single change within the functions, enumerators and constants of `only`. Raises
    AssertionError for one that is not there."""
    lines = source.splitlines(keepends=True)
    for owner in only:
        rows = list(_rows(lines, owner))
        assert rows, f"there is no {owner}"
        for row in rows:
            for changed in _changes(lines[row].rstrip("\n")):
                text = "".join([*lines[:row], changed + "\n", *lines[row + 1 :]])
                yield Mutant(f"{owner}: {lines[row].strip()} -> {changed.strip()}", text)


def _rows(lines: list[str], owner: str) -> Iterator[int]:
    """Lines of the body of a function; the line on which a constant gets its value."""
    inside = False
    for row, line in enumerate(lines):
        if re.match(rf"(?:static .*\b|    ){re.escape(owner)} = ", line):
            yield row
        if re.match(rf"\w.*\b{re.escape(owner)}\([^;]*$", line):
            inside = True
        elif line.startswith("}"):
            inside = False
        elif inside and not line.startswith(("{", "static")):
            yield row


def _changes(line: str) -> Iterator[str]:
    code = line.partition("/*")[0].rstrip()
    if code.strip().startswith("*") or not code.strip():
        return
    rest = line[len(code) :]
    for found in OPERATOR.finditer(code):
        for other in OPERATORS[found[0]]:
            yield code[: found.start()] + other + code[found.end() :] + rest
    for found in WORD.finditer(code):
        yield code[: found.start()] + WORDS[found[0]] + code[found.end() :] + rest
    for found in NUMBER.finditer(code):
        yield code[: found.start()] + _other(found[0]) + code[found.end() :] + rest
    for found in CONDITION.finditer(code):
        yield code[: found.end()] + "true || " + code[found.end() :] + rest
        yield code[: found.end()] + "false && " + code[found.end() :] + rest
    if STATEMENT.match(code):
        yield code[: len(code) - len(code.lstrip())] + ";"


def _other(number: str) -> str:
    if number.isdigit():
        return str(int(number) + 1)
    return repr(float(number) * 2)

"""Find the commands that scripts of Perl, R, Julia, Ruby, Tcl and awk hand to a shell, by patterns.

Only literal texts are read. A call within braces, or on a condition behind it, is not certain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpigraft.graft.guest.scripts.shell_syntax import UNKNOWN
from mpigraft.graft.guest.scripts.starters import ScriptCall

LANGUAGES = frozenset(
    {"perl", "Rscript", "R", "littler", "r", "julia", "ruby", "tclsh", "awk", "lua"}
)
VERSION = re.compile(r"[\d.]+$")
DOCUMENTS = re.compile(r"^=(?!cut\b)\w+.*?(^=cut\b.*?$|\Z)|^__(END|DATA)__$.*\Z", re.M | re.S)
COMMENT = re.compile(r"(?<![\\$\w'\"&])#(?![{!]).*")
VARIABLE = re.compile(
    r"^\s*(?:my |our |local |const |let )?[$]?(\w+)\s*(?:=|<-)\s*(['\"])(.*?)\2\s*;?\s*$"
)
QUOTED = r"(?P<quote>['\"`])(?P<text>(?:\\.|(?!(?P=quote)).)*)(?P=quote)"
CALL = re.compile(
    rf"\b(?P<name>system2?|exec|run|popen|spawn|os\.execute)\b\s*\(?\s*(?P<paste>paste0?\s*\(\s*)?{QUOTED}(?P<rest>[^;\n]*)"
)
BACKQUOTES = re.compile(r"(?:qx\s*[({{/]|(?<![\w$])`)\s*(?P<text>[^`)}\n]*)")
ELEMENT = re.compile(r"['\"]((?:\\.|[^'\"\\])*)['\"]|([@$]\w+|\b\w+\b)")
INTERPOLATED = re.compile(r"[$@]\{?(\w+)\}?(\([^()]*\))?(\[[^]]*\])?")
BEFORE = re.compile(r"\b(if|unless|and|or|while)\b|\|\||&&")  # conditions of a call
BEHIND = re.compile(r"\b(if|unless|while)\b")


def is_language(interpreter: str) -> bool:
    """Return whether scripts of an interpreter of this name are read here."""
    return VERSION.sub("", interpreter.rpartition("/")[2]) in LANGUAGES


def foreign_calls(source: str, interpreter: str) -> tuple[ScriptCall, ...]:
    """Find the calls of a script that start programs."""
    perl = interpreter.rpartition("/")[2].startswith(("perl", "ruby"))
    text = DOCUMENTS.sub(lambda m: "\n" * m[0].count("\n"), source)
    values: dict[str, str] = {}
    calls: list[ScriptCall] = []
    depth = 0
    for number, line in enumerate(text.splitlines(), 1):
        code = COMMENT.sub("", line)
        if setting := VARIABLE.match(code):
            values[setting[1]] = _interpolate(setting[3], setting[2], values)
        for match in CALL.finditer(code):
            certain = depth == 0 and _is_certain(code[: match.start()], match["rest"])
            calls.append(_call(match, number, values, certain))
        variable = re.search(r"\b(?:system|exec)\b\s*\(?\s*[$]?(\w+)\s*[;)\n]", code + "\n")
        if variable and variable[1] in values:
            certain = depth == 0 and _is_certain(code, "")
            calls.append(ScriptCall(number, (), values[variable[1]], certain))
        if perl:
            for match in BACKQUOTES.finditer(code):
                calls.append(
                    ScriptCall(number, (), _interpolate(match["text"], '"', values), depth == 0)
                )
        bare = re.sub(r"'(\\.|[^'\\])*'|\"(\\.|[^\"\\])*\"|[$@%]\{", "", code)
        depth = max(0, depth + bare.count("{") - bare.count("}"))
    return tuple(call for call in calls if call.words or call.text.strip())


def _is_certain(before: str, behind: str) -> bool:
    return not BEFORE.search(before) and not BEHIND.search(behind)


def _call(match: re.Match[str], line: int, values: dict[str, str], certain: bool) -> ScriptCall:
    first = _interpolate(match["text"], match["quote"], values)
    rest = match["rest"].lstrip()
    if match["paste"]:
        return ScriptCall(line, (), " ".join((first, *_elements(rest, values))), certain)
    if match["quote"] == "`" or not rest.startswith(",") or "intern" in rest:
        return ScriptCall(line, (), first, certain)
    return ScriptCall(line, (first, *_elements(rest, values)), "", certain)


def _elements(text: str, values: dict[str, str]) -> Iterator[str]:
    """Yield the literal elements of a list: of Perl's system, of R's `c(...)`."""
    for match in ELEMENT.finditer(text):
        name = match[2] or ""
        if match[1] is not None:
            yield _interpolate(match[1], '"', values)
        elif name.startswith(("$", "@")):
            yield values.get(name[1:], UNKNOWN)
        elif name.isdigit():
            yield name
        elif name not in ("c", "sep", "collapse", "TRUE", "FALSE", "wait"):
            yield UNKNOWN


def _interpolate(text: str, quote: str, values: dict[str, str]) -> str:
    if quote == "'":
        return text
    return INTERPOLATED.sub(lambda m: UNKNOWN if m[2] or m[3] else values.get(m[1], UNKNOWN), text)

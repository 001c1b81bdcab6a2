"""Write docs/reference/findings.md: every error and finding by its code, and what to do.

    tools/document_findings.py [--check]

`--check` writes nothing and ends with 1 if the page is not what the data says.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src/mpigraft"
sys.path.insert(0, str(ROOT / "src"))

from mpigraft.core import errors  # noqa: E402
from mpigraft.core.messages import FOLDER, Message  # noqa: E402

PAGE = ROOT / "docs/reference/findings.md"
EXIT_CODES = {
    name: kind.exit_code
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, errors.MpigraftError)
}
OF_UNKNOWN = {"word", "near", "known"}  # made for every row of `UsageError.unknown`
FIELD = re.compile(r"(?<!\{)\{(\w+)[^}]*\}")
TITLES = {
    "core": "Of several rooms",
    "advice": "Diagnosing",
    "analysis": "Comparing",
    "bench": "Measuring, submitting and importing",
    "binary": "Reading images and programs",
    "build": "Building MPIs",
    "cli": "Options and files of commands",
    "discovery": "Finding and fetching MPIs",
    "evidence": "Proving what ran",
    "graft": "Checking and grafting",
    "knowledge": "The tool's own tables",
    "launch": "Launchers, schedulers, nodes and layouts",
    "native": "The C programs",
    "reframe": "ReFrame",
    "report": "Reporting",
    "request": "What was requested",
    "run": "Running a job",
    "store": "The store",
    "trace": "Profiles and traces",
}
INTRO = """\
# Errors and findings

This page lists every error and finding by its code: what mpigraft saw, why it matters and what to
do. An error ends the command with the exit code that is given here. A finding is a row of a
report, of `check` or of a `--json` document; its level is info, warning or error. Findings that a
known issue explains have the issue's id instead, such as LNX-02: [transports](transports.md) lists
them. The message has values in place of the words in «».

`tools/document_findings.py` writes this page from `src/mpigraft/knowledge/findings/`; change the
data, not this page.
"""


class Use(NamedTuple):
    """One place of the sources that makes an error or a finding by its code."""

    path: Path
    line: int
    kind: str  # the class
    code: str
    fields: frozenset[str]


def rooms() -> dict[str, dict[str, Message]]:
    """Read every row, by room and code."""
    return {
        path.stem: {
            code: Message(**row) for code, row in tomllib.loads(path.read_text("utf-8")).items()
        }
        for path in sorted(FOLDER.glob("*.toml"))
    }


def uses() -> Iterator[Use]:
    """Find each `XError.of("code", field=...)`, `Finding.of(...)` and `UsageError.unknown(...)` of
    the sources. A conditional between two codes counts for both; one in a variable is not found."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id=kind), attr="of" | "unknown" as maker),
                    args=[first, *_],
                ) if kind == "Finding" or kind in EXIT_CODES:
                    given = {word.arg or "**" for word in node.keywords} - {"level", "evidence"}
                    given |= OF_UNKNOWN if maker == "unknown" else set()
                    for code in _codes(first):
                        yield Use(path, node.lineno, kind, code, frozenset(given))


def _codes(node: ast.expr) -> list[str]:
    match node:
        case ast.Constant(value=str(code)):
            return [code]
        case ast.IfExp(body=body, orelse=orelse):
            return [*_codes(body), *_codes(orelse)]
    return []


def page() -> str:
    """Make the page, room by room."""
    exits: dict[str, set[int]] = {}
    for use in uses():
        if use.kind in EXIT_CODES:
            exits.setdefault(use.code, set()).add(EXIT_CODES[use.kind])
    parts = [INTRO]
    for room, rows in sorted(rooms().items(), key=lambda item: [*TITLES].index(item[0])):
        parts.append(f"## {TITLES[room]}\n")
        parts += [_entry(code, row, sorted(exits.get(code, ()))) for code, row in rows.items()]
    return "\n".join(parts)


def _entry(code: str, row: Message, exits: list[int]) -> str:
    ends = f"exit code {' or '.join(map(str, exits))}" if exits else ""
    kind = ", ".join(filter(None, (row.level, ends)))
    lines = [f"### {code}\n", f"*{kind}*: {_readable(row.message)}\n"]
    if row.why:
        lines.append(f"Why it matters: {_readable(row.why)}\n")
    if row.fix:
        lines.append(f"What to do: {_readable(row.fix)}\n")
    return "\n".join(lines)


def _readable(template: str) -> str:
    """Show fields as «field», and keep Markdown from taking a star or a less-than for its own."""
    text = FIELD.sub(lambda match: f"«{match[1].replace('_', ' ')}»", template)
    text = text.replace("{{", "{").replace("}}", "}")
    return re.sub(r"([*<\\])", r"\\\1", text)


def main(words: list[str]) -> int:
    text = page()
    if words == ["--check"]:
        return int(PAGE.read_text(encoding="utf-8") != text)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

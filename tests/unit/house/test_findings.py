"""Errors and findings are data: each code has one row, and each row what its makers give it."""

from __future__ import annotations

import ast
import errno
import os
import re
import string
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mpigraft.core import messages
from mpigraft.core.errors import UsageError
from mpigraft.core.messages import FOLDER, message_of
from mpigraft.core.model import Finding, Level
from mpigraft.knowledge import cause_table
from tools.document_findings import EXIT_CODES, OF_UNKNOWN, ROOT, SOURCE, rooms, uses

ROWS = {code: row for rows in rooms().values() for code, row in rows.items()}
USES = list(uses())
# Codes that stand in a variable where the finding is made: of a table, or of another's output.
BY_TABLE = {
    "host-over-guest", "guest-serves", "private-copy",  # of check/shared_libraries.py
    "cxx-symbols", "fortran-symbols",
    "out-of-mem", "time-out", "int-overflow",  # IMB's own words
    "values-twice", "values-odd", "overlap-none",
    "rounds-dropped", "slow-down-bounded", "verdict-withheld",  # analysis/disturbance.py
}  # fmt: skip
# Who may make one without a row: where rows are read, and where a kept one is copied.
DIRECT = {"core/errors.py", "core/model/vocabulary.py", "evidence/runner.py"}


def fields(code: str) -> set[str]:
    templates = ROWS[code][:3]
    return {
        name.partition(".")[0]
        for template in templates
        for _, name, _, _ in string.Formatter().parse(template)
        if name is not None
    }


def test_a_code_stands_in_one_room_alone() -> None:
    codes = [code for rows in rooms().values() for code in rows]
    assert sorted(codes) == sorted(set(codes))
    assert len(codes) > 400


def test_a_finding_is_made_with_the_fields_of_its_row() -> None:
    assert not [use for use in USES if use.code not in ROWS]
    assert not [(use, fields(use.code)) for use in USES if fields(use.code) - use.fields]
    assert not [use for use in USES if use.fields - fields(use.code) - OF_UNKNOWN]


def test_each_row_is_used() -> None:
    causes = {row.finding for row in cause_table().cause}
    used = {use.code for use in USES} | {row.stack for row in ROWS.values()} - {""}
    assert set(ROWS) - used == BY_TABLE | (causes - used)


def test_the_advice_for_a_stack_needs_no_values() -> None:
    rows = [ROWS[row.stack] for row in ROWS.values() if row.stack]
    assert rows
    assert all(row.message == "{text}" and "{" not in row.why + row.fix for row in rows)


def _constants(node: ast.expr) -> list[str]:
    """The texts of a literal: one, or a tuple, set or frozenset of them."""
    values = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
    return [value for value in values if isinstance(value, str)]


def _compared() -> dict[str, str]:
    """{code that a finding's or an error's `code` is compared with: where}."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")}
    named = {
        target.id: node.value
        for tree in trees.values()
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    where: dict[str, str] = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Compare) and getattr(node.left, "attr", "") == "code"):
                continue
            (other,) = node.comparators
            value = named.get(other.id) if isinstance(other, ast.Name) else other
            if isinstance(value, ast.Constant | ast.Tuple | ast.Set | ast.Call):
                where |= dict.fromkeys(_constants(value), f"{path}:{node.lineno}")
    return where


def test_a_code_that_is_looked_for_is_one_of_a_row() -> None:
    compared = _compared()
    assert {"wire-unclear", "programs-not-known", "config-files"} <= set(compared)
    of_old_stores = {"lane-beside"}
    assert set(compared) - set(ROWS) == of_old_stores, compared


def test_an_error_has_no_level_and_a_finding_has_one() -> None:
    for use in USES:
        level = ROWS[use.code].level
        assert (use.kind in EXIT_CODES) == (not level), use
        assert not level or Level(level)


def test_nothing_is_made_without_a_row() -> None:
    names = {"Finding", *EXIT_CODES}
    for path in sorted(SOURCE.rglob("*.py")):
        if str(path.relative_to(SOURCE)) in DIRECT:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in names, f"{path}:{node.lineno} has no code"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_rows_are_sorted_and_named_in_lower_case(path: Path) -> None:
    codes = list(tomllib.loads(path.read_text(encoding="utf-8")))
    assert codes == sorted(codes)
    assert [c for c in codes if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", c)] in (
        [],
        ["LCH-01"],  # a known issue's id
    )
    assert all(len(line) <= 100 for line in path.read_text(encoding="utf-8").splitlines())


def test_a_row_read_alone_is_the_row_of_the_whole_file() -> None:
    assert {code: message_of(code) for code in ROWS} == ROWS


def test_other_peoples_braces_are_text() -> None:
    error = UsageError.of("margin-invalid", text="{0.__class__}{text}")
    assert error.message == "invalid margin '{0.__class__}{text}'"


def test_a_missing_field_or_an_unknown_code_is_an_error() -> None:
    with pytest.raises(KeyError):
        UsageError.of("margin-invalid")
    with pytest.raises(KeyError):
        Finding.of("no-such-code")


def test_without_a_file_to_open_the_code_has_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: object) -> list[str]:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "listdir", full)
    messages._row.cache_clear()
    assert UsageError.of("margin-invalid", text="x").message.startswith("margin-invalid (its text")
    finding = Finding.of("store-file-unreadable", path="p", error="e")
    assert (finding.level, finding.code) == (Level.ERROR, "store-file-unreadable")


def test_an_amended_error_keeps_its_code_and_kind() -> None:
    error = UsageError.of("margin-invalid", text="x").amended(fix="none")
    assert isinstance(error, UsageError)
    assert (error.code, error.fix, error.message) == (
        "margin-invalid",
        "none",
        "invalid margin 'x'",
    )


def test_the_page_is_what_the_data_says() -> None:
    tool = [sys.executable, str(ROOT / "tools/document_findings.py"), "--check"]
    assert subprocess.run(tool, check=False).returncode == 0, "run tools/document_findings.py"

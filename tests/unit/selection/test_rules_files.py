"""Rules files of Open MPI: what is taken, and what is refused with its line."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.errors import UsageError
from mpigraft.core.model import SettingFile
from mpigraft.selection.rules_files import VARIABLE, refuse_rules
from tests.builders.configuration import an_mpi
from tests.builders.messages import matches

OLD, NEW, NEXT = (an_mpi(f"openmpi@{version}") for version in ("4.1.4", "5.0.11", "6.0.0"))
# Allreduce (2) on 8 ranks: algorithm 3 from 0 B, 4 from 64 KiB.
CLASSIC = "1  # one collective\n2\n1\n8 2\n0 3 0 0\n65536 4 0 0\n"
SECOND = "rule-file-version-2\n1\n2\n1\n8 1\n0 3 0 0 0\n"
JSON = '{"rule_file_version": 3}'


def rules(text: str) -> SettingFile:
    return SettingFile(VARIABLE, "/r", text)


@pytest.mark.parametrize(
    ("text", "mpi"),
    [(CLASSIC, OLD), (CLASSIC, NEW), (SECOND, NEW), (SECOND, NEXT), (JSON, NEXT), ("0\n", OLD)],
)
def test_what_this_version_reads_is_taken(text: str, mpi: object) -> None:
    refuse_rules(rules(text), mpi)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "mpi", "line"),
    [
        (SECOND, OLD, 1),  # 2 needs 5.0.7
        (JSON, NEW, 1),
        ("# first\n" + SECOND, NEW, 2),  # nothing may come before the version
        ("[rule-file-version-2]\n0\n", NEW, 1),
        ("", NEW, 1),
        (CLASSIC.replace("65536 4 0 0", "65536 4 0"), NEW, 6),
        (CLASSIC.replace("0 3 0 0\n", "1 3 0 0\n"), NEW, 5),
        (CLASSIC.replace("65536", "0"), NEW, 6),
        (CLASSIC.replace("8 2", "8 1"), NEW, 6),
        (CLASSIC.replace("8 2", "8 x"), NEW, 4),
        (CLASSIC.replace("8 2", "8 0"), NEW, 4),
        (CLASSIC.replace("\n2\n1\n", "\n22\n1\n"), NEW, 2),
        (CLASSIC.replace("\n2\n1\n", "\n-2\n1\n"), NEW, 2),
        (CLASSIC + "7\n", NEW, 7),
    ],
)
def test_what_it_would_ignore_is_refused_with_its_line(text: str, mpi: object, line: int) -> None:
    with pytest.raises(UsageError) as caught:
        refuse_rules(rules(text), mpi)  # type: ignore[arg-type]
    assert matches(caught.value, "setting-rules-invalid", place=f"/r:{line}")


def test_other_files_and_families_are_not_looked_at() -> None:
    refuse_rules(SettingFile("RULES", "/r", "no rules"), NEW)
    refuse_rules(rules("no rules"), an_mpi("mpich@5.0.2"))


@given(st.text(alphabet="0123 4\n#{-rule", max_size=60))
def test_no_text_is_more_than_taken_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        refuse_rules(rules(text), NEW)


NUMBERS = st.integers(0, 9)
RULE = st.tuples(NUMBERS, NUMBERS, NUMBERS)


SIZES = st.dictionaries(st.integers(1, 99), st.lists(RULE, min_size=1), min_size=1)


@given(st.dictionaries(st.integers(0, 21), SIZES))
def test_every_file_with_right_counts_is_taken_and_none_that_is_cut(
    tables: dict[int, dict[int, list[tuple[int, int, int]]]],
) -> None:
    lines = [str(len(tables))]
    for collective, sizes in tables.items():
        lines += [str(collective), str(len(sizes))]
        for size, own in sizes.items():
            lines.append(f"{size} {len(own)}")
            lines += [f"{n * 8} {a} {b} {c}" for n, (a, b, c) in enumerate(own)]
    text = "\n".join(lines)
    refuse_rules(rules(text), NEW)
    cut = re.sub(r"\S+$", "", text)
    with pytest.raises(UsageError):
        refuse_rules(rules(cut), NEW)

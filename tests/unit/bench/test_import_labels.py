"""Labels of launchers before the lines of a table."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from mpigraft.bench import ImportOptions
from mpigraft.bench.importing.reading import ImportSource, ImportTable, read_results
from mpigraft.core.errors import UsageError
from tests.builders.messages import matches

PLAIN = "# OSU MPI Latency Test v7.3\n\n# Size          Latency (us)\n1     0.94\n16    1.02\n"
IMB = (
    "#-----------\n#    Intel(R) MPI Benchmarks 2021.10, MPI-1 part\n# Benchmarking PingPong\n"
    "# #processes = 2\n   #bytes #repetitions      t[usec]   Mbytes/sec\n"
    "        4         1000         2.02         1.98\n"
)
LABELS = [
    "{}: ", " {}: ", "00{}: ", "[{}] ", "[1,{}]<stdout>:", "[1,{}]<stdout>: ",
    "[prterun-n1-7731@1,{}]<stdout>: ", "[prterun-n1-7731@1,{}][n1:77]<stdout>: ",
    "x3005c0s13b0n0.hsn.cm.polaris.alcf.anl.gov {}: ",
]  # fmt: skip


def labelled(label: str, text: str, rank: int = 0) -> str:
    return "".join(label.format(rank) + line for line in text.splitlines(keepends=True))


def read(path: Path, text: str) -> ImportTable:
    path.write_text(text)
    (table,) = read_results(ImportSource.of(path), ImportOptions("a"))  # type: ignore[misc]
    return table


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("plain", [PLAIN, IMB])
def test_labels_are_taken_off(tmp_path: Path, label: str, plain: str) -> None:
    bare = read(tmp_path / "a.out", plain)
    table = read(tmp_path / "a.out", labelled(label, plain))
    assert table.parsed == bare.parsed
    assert table.data == bare.data  # and so it is stored once


def test_lines_of_ranks_are_read_one_rank_at_a_time(tmp_path: Path) -> None:
    lines = labelled("{}: ", PLAIN).splitlines(keepends=True)
    mixed = "".join(line + "1: n1: a warning\n" for line in lines)
    table = read(tmp_path / "a.out", mixed)
    assert [m.value for m in table.parsed.measurements] == [0.94, 1.02]
    assert [f.code for f in table.parsed.findings] == ["foreign-output"]


def test_ranks_that_each_print_a_table_are_worlds_of_their_own(tmp_path: Path) -> None:
    pairs = zip(PLAIN.splitlines(), PLAIN.splitlines(), strict=True)
    table = read(tmp_path / "a.out", "".join(f"0: {a}\n1: {b}\n" for a, b in pairs))
    assert [m.value for m in table.parsed.measurements] == [0.94, 1.02, 0.94, 1.02]
    assert [f.code for f in table.parsed.findings] == ["several-worlds"]


@pytest.mark.parametrize("label", LABELS)
def test_a_line_without_a_label_is_refused_with_what_to_type(tmp_path: Path, label: str) -> None:
    text = labelled(label, PLAIN) + "Unloading module: openmpi/5.0.11\n"
    with pytest.raises(UsageError, match=r"a\.out:6: a line without the label") as refused:
        read(tmp_path / "a.out", text)
    command = refused.value.fix.split(": ", 1)[1].removesuffix(", and import OTHER")
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    assert read(tmp_path / "OTHER", (tmp_path / "OTHER").read_text()).data.decode() == PLAIN


@pytest.mark.parametrize("row", ["1,893.21", "1893,21"])
def test_separators_are_reported_by_line(tmp_path: Path, row: str) -> None:
    table = read(tmp_path / "a.out", PLAIN + f"1024  {row}\n")
    assert len(table.parsed.measurements) == 2
    assert matches(table.parsed.findings[0], "unread-row", line=f"1024  {row}", place="a.out:6")


@pytest.mark.parametrize("label", LABELS)
def test_last_words_of_a_launcher_have_no_label(tmp_path: Path, label: str) -> None:
    words = "slurmstepd: error: *** STEP 1.0 ON n1 CANCELLED AT x ***\n"
    table = read(tmp_path / "a.out", labelled(label, PLAIN) + words)
    assert [f.code for f in table.parsed.findings] == ["program-failed"]
    assert [span.died for span in table.parsed.tables] == [True]

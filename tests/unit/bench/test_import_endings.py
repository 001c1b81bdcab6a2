"""Outputs of runs that died: their values are kept out of comparisons, and the rest is stored."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from mpigraft.bench.suites.worlds import read_worlds
from mpigraft.core.model import LaunchState, Measurement
from mpigraft.knowledge import ends_run
from mpigraft.store import Store
from tests.builders.commands import run_on_store
from tests.builders.messages import shows

TITLE = "# OSU MPI Latency Test v7.3\n# Size          Latency (us)\n# Datatype: MPI_CHAR.\n"
RECORDED = Path(__file__).parents[2] / "data/causes.toml"

_, ENDINGS, NEAR_MISSES = (
    part.splitlines()[1:]
    for part in (RECORDED.parent / "endings.txt").read_text().split("== lines")
)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def latency(last: int = 256, *, scale: float = 1.0) -> str:
    """A table of 0 and the powers of two up to `last`."""
    sizes = [0, *(2**n for n in range(last.bit_length()))]
    return TITLE + "".join(f"{size:<24}{scale * (1 + size / 1000):.2f}\n" for size in sizes)


def bring(store: Path, *files: object, name: str = "c") -> int:
    words = ("--configuration", name, "--machine", "m", "--nodes", 1, "--ranks-per-node", 2)
    return run_on_store(store, "import", *files, *words)


def stored(folder: Path) -> tuple[list[tuple[int, float]], list[LaunchState]]:
    """The values that may be compared, and how the launches ended."""
    store = Store(folder)
    campaign = store.campaign("m").id
    values = [(v.round, v.value) for v in store.values(campaign)]
    return values, sorted(launch.state for launch in store.launches(campaign))


@pytest.mark.parametrize("line", ENDINGS)
def test_a_line_that_ends_a_run_is_known(line: str) -> None:
    assert ends_run(line)


@pytest.mark.parametrize("line", [*NEAR_MISSES, *latency().splitlines(), "1024  1 2 3.00"])
def test_epilogues_accounts_and_rows_end_no_run(line: str) -> None:
    assert not ends_run(line)


def test_recorded_failures_of_launches_are_endings_too() -> None:
    cases = tomllib.loads(RECORDED.read_text())["case"]
    due = [case for case in cases if case["causes"] and case["code"]]
    texts = {case["name"]: case.get("stdout", "") + case.get("stderr", "") for case in due}
    assert len(texts) > 5
    assert [n for n, text in texts.items() if not any(map(ends_run, text.splitlines()))] == []


def test_a_dead_run_is_stored_as_failed_without_its_values(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "dead.out").write_text(latency(8) + ENDINGS[0] + "\n")
    (tmp_path / "full.out").write_text(latency() + "\n".join(NEAR_MISSES) + "\n")
    assert bring(store, tmp_path / "dead.out", tmp_path / "full.out", "--json") == 2
    shown = capsys.readouterr()
    files = json.loads(shown.out)["files"]
    assert [(f["state"], f["values"], f["left_out"]) for f in files] == [
        ("failed", 0, 5),
        ("stored", 10, 0),
    ]
    assert [f["code"] for f in files[0]["findings"]] == ["program-failed"]
    assert shows(shown.err, "1 of 2 files", "[import-failed]")
    values, states = stored(store)
    assert len(values) == 10
    assert states == [LaunchState.FAILED, LaunchState.OK]
    assert bring(store, tmp_path / "dead.out") == 2  # again: no second launch
    assert len(stored(store)[1]) == 2


@pytest.mark.parametrize("between", ["", "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT x ***\n"])
def test_of_two_runs_in_a_row_the_dead_one_is_left_out(
    store: Path, tmp_path: Path, between: str
) -> None:
    half = "" if between else "16                      1."  # SIGKILL: the next title follows
    packed = gzip.compress((latency(8, scale=9) + half + between + latency()).encode())
    (tmp_path / "job.out.gz").write_bytes(packed)
    assert bring(store, tmp_path / "job.out.gz") == 2
    values, states = stored(store)
    assert values[0] == (0, 1.0)
    assert len(values) == 10
    assert states == [LaunchState.FAILED, LaunchState.OK]


@pytest.mark.parametrize("row", ["16", "16   1.", "16   1.0\n", "16\n"])
def test_half_a_row_at_the_end_is_of_a_dead_run(store: Path, tmp_path: Path, row: str) -> None:
    (tmp_path / "a.out").write_text(latency(8) + row)
    assert bring(store, tmp_path / "a.out") == 2
    assert stored(store) == ([], [LaunchState.FAILED])


@pytest.mark.parametrize("row", ["16   -nan\n", "16   inf\n", "16   1,024.00\n", "16   1.02\n"])
def test_a_whole_row_at_the_end_is_of_no_dead_run(store: Path, tmp_path: Path, row: str) -> None:
    (tmp_path / "a.out").write_text(latency(8) + row)
    assert bring(store, tmp_path / "a.out") == 0
    assert stored(store)[1] == [LaunchState.OK]


def test_last_words_that_nobody_knows_end_a_table_that_is_short(
    store: Path, tmp_path: Path
) -> None:
    for name, last in (("a", 256), ("b", 256), ("c", 8)):
        (tmp_path / f"{name}.out").write_text(
            latency(last, scale=ord(name)) + "zsh: the node is on fire\n"
        )
    assert bring(store, *sorted(tmp_path.glob("*.out"))) == 2
    values, states = stored(store)
    assert len(values) == 20
    assert states == [LaunchState.FAILED, LaunchState.OK, LaunchState.OK]


def test_a_short_table_is_in_no_claim_on_a_whole_curve(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for n, off in enumerate((3, 0, 6, 1, 7, 2, 5, 4)):
        for name, scale in (("slow", 2.0), ("fast", 1.0)):
            last = 8 if (n, name) == (3, "slow") else 256
            path = tmp_path / f"{name}-{n}.out"
            path.write_text(latency(last, scale=scale + off / 50))
    for name in ("fast", "slow"):
        words = ("--pattern", f"{name}-{{round}}.out", "--machine", name, "--configuration", "c")
        assert run_on_store(store, "import", *tmp_path.glob(f"{name}*"), *words) == 0
    assert shows(capsys.readouterr().out, "slow-3.out")
    kept = Store(store)
    assert len(kept.values(kept.campaign("slow").id)) == 7 * 10 + 5
    verdicts = []
    for more in ([], ["--partial"]):
        assert run_on_store(store, "compare", "fast", "slow", "--json", *more) == 0
        document = json.loads(capsys.readouterr().out)
        codes = {finding["code"] for finding in document["findings"]}
        (curve,) = {group["curve"] for group in document["comparisons"]}
        verdicts.append((curve, "curve-maybe-cut" in codes))
    assert verdicts == [("inconclusive", True), ("slower", False)]


@pytest.mark.parametrize(("last", "code", "left"), [(1024, "", 0), (512, "program-failed", 11)])
def test_a_table_that_osu_limits_by_its_memory_is_whole(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], last: int, code: str, left: int
) -> None:
    """On 524,288 ranks blocks of 1 KiB are all that 512 MiB have room for."""
    title = TITLE.replace("Latency Test", "All-to-All Personalized Exchange Latency Test")
    for ranks, most in ((2, 8192), (4, 8192), (8, 8192), (262144 * 2, last)):
        text = latency(most).replace(TITLE, title) + "Job ended at 12:00\n"
        (tmp_path / f"{ranks}.out").write_text(text)
    words = ("--pattern", "{ranks}.out", "--configuration", "c", "--json")
    assert run_on_store(store, "import", *tmp_path.glob("*.out"), *words) == 2 * bool(code)
    files = {f["file"]: f for f in json.loads(capsys.readouterr().out)["files"]}
    found = {f["code"] for f in files["524288.out"]["findings"]} - {"foreign-output"}
    assert found == ({code} if code else set())
    assert files["524288.out"]["left_out"] == left


def test_a_table_that_imb_has_no_memory_for_is_not_cut(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (RECORDED.parent / "imb/mpi1.out").read_text()
    lines = text.splitlines(keepends=True)
    last = max(n for n, line in enumerate(lines) if re.match(r" +\d+ +\d+ ", line))
    size = lines[last].split()[0]
    lines[last] = f'   {size} out-of-mem.; needed X=   0.50 GB; use flag "-mem X"\nJob ended\n'
    for number, some in enumerate((text, text + "\n", text + "\n\n", "".join(lines))):
        (tmp_path / f"{number}.out").write_text(some)
    words = ("--configuration", "c", "--machine", "m", "--json")
    assert run_on_store(store, "import", *sorted(tmp_path.glob("*.out")), *words) == 0
    files = json.loads(capsys.readouterr().out)["files"]
    assert [f["code"] for f in files[3]["findings"]] == ["out-of-mem", "foreign-output"]


def test_a_dead_job_may_come_from_a_pipe(tmp_path: Path) -> None:
    words = ("--store", tmp_path / "s", "import", "-", "--configuration", "c", "--json")
    main = "from mpigraft.cli.main import main; import sys; main(sys.argv[1:])"
    ran = subprocess.run(
        [sys.executable, "-c", main, *map(str, words)],
        input=latency(8) + ENDINGS[0] + "\n" + latency(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 2, ran.stderr
    (file,) = json.loads(ran.stdout)["files"]
    assert (file["file"], file["state"], file["values"]) == ("stdin", "failed", 10)


LSF = """\
Sender: LSF System <lsfadmin@n1>
Subject: Job 11: <osu> in cluster <c> Exited

Your job looked like:

------------------------------------------------------------
# LSBATCH: User input
bash -c 'mpirun ./osu_latency || echo Killed'
------------------------------------------------------------

TERM_RUNLIMIT: job killed after reaching LSF run time limit.
Exited with exit code 140.

Resource usage summary:

    Max Memory :                                 10240 MB

The output (if any) follows:

"""
DONE = LSF.replace("TERM_RUNLIMIT: job killed after reaching LSF run time limit.\n", "").replace(
    "Exited with exit code 140.", "Successfully completed."
)


@pytest.mark.parametrize(
    ("text", "rounds", "line"),
    [
        (LSF + latency(scale=3) + latency(8), [3.0], 11),
        (DONE + latency(scale=3) + LSF + latency(8) + DONE + latency(scale=4), [3.0, 4.0], 42),
        (LSF + DONE + latency(scale=3), [3.0], 11),
    ],
)
def test_a_report_of_lsf_is_of_the_output_below_it(
    store: Path,
    tmp_path: Path,
    text: str,
    rounds: list[float],
    line: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "a.out").write_text(text)
    assert bring(store, tmp_path / "a.out") == 2
    assert shows(capsys.readouterr().out, "a.out", line, "TERM_RUNLIMIT")
    values, states = stored(store)
    assert sorted(value for n, (_, value) in enumerate(values) if n % 10 == 0) == rounds
    assert states == [LaunchState.FAILED, *[LaunchState.OK] * len(rounds)]


def test_a_run_that_died_before_the_first_title_is_not_the_one_below(
    store: Path, tmp_path: Path
) -> None:
    (tmp_path / "a.out").write_text(
        "srun: error: n1: task 0: Exited with exit code 2\n" + latency()
    )
    assert bring(store, tmp_path / "a.out") == 2
    values, states = stored(store)
    assert len(values) == 10
    assert states == [LaunchState.FAILED, LaunchState.OK]


FULL = """\
# OSU MPI Allreduce Latency Test v7.3
# Datatype: MPI_FLOAT.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations
4                       2.16              1.90              2.50        1000
1024                   12.34             11.00             13.75         100
"""


@pytest.mark.parametrize(
    ("suite", "text"),
    [
        ("osu", latency(8)),
        ("osu", FULL),
        ("imb", (RECORDED.parent / "imb/p2p.out").read_text()),
        (
            "osu",
            "# MPI Latency Test\n# Size [B]  Latency [us]\n     1      0.91\n    16     12.34\n",
        ),
    ],
)
def test_wherever_a_last_row_is_cut_no_part_of_it_counts(suite: str, text: str) -> None:
    def counted(data: bytes) -> set[Measurement]:
        (world,), _ = read_worlds(suite, data, source="a.out")
        lost = {n for s in world.parsed.tables if s.died for n in range(s.start, s.stop)}
        return {m for n, m in enumerate(world.parsed.measurements) if n not in lost}

    data = text.encode()
    rows = re.findall(rb"(?m)^ *\d.*\n", data)
    end = data.rindex(rows[-1]) + len(rows[-1])
    whole = counted(data)
    assert len(whole) > 1
    for cut in range(end - len(rows[-1]), end):
        assert counted(data[:cut]) <= whole, data[:cut][-40:]


def test_a_table_with_numbers_of_its_own_form_is_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One decimal, or none, is half a row only where other rows have two."""
    cases = (("1 1.5\n2 1.6\n", 0), ("1 3\n2 4\n4 4\n", 0), ("1 1.50\n2 1.6\n", 2))
    for number, (rows, code) in enumerate(cases):
        table = tmp_path / f"{number}.txt"
        table.write_text(TITLE + rows)
        assert run_on_store(tmp_path / "s", "import", table, "--configuration", number) == code
        assert ("the last row is not whole" in capsys.readouterr().out) is (code == 2)

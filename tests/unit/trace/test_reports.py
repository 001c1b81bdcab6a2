"""Reports of mpiP, mpitrace, IPM and CrayPat as profiles; damaged ones are refused by line."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpigraft.core.errors import UsageError
from mpigraft.report.profile.text import headline, profile_lines
from mpigraft.trace import Profile, render_profile
from mpigraft.trace.profile.reading import is_profile, read_profile
from tests.builders.messages import shows
from tests.hang import no_hang

DATA = Path(__file__).resolve().parents[2] / "data/profiles"
ALL = sorted(path for path in DATA.iterdir() if path.name != "README.md")


def shown(name: str) -> tuple[Profile, str]:
    profile = read_profile(DATA / name)
    return profile, headline(profile)


def test_mpip_share_is_that_of_the_report(tmp_path: Path) -> None:
    """Its times are rounded: 0.0312 of 0.0312 s is 99.93 %, as it says."""
    text = (DATA / "driver.mpiP").read_text()
    text = text.replace("*         40         20    50.00", "*     0.0312     0.0312    99.93")
    (tmp_path / "a.mpiP").write_text(text)
    profile = read_profile(tmp_path / "a.mpiP")
    assert profile.share(profile.mpi_s) == pytest.approx(0.9993)


def test_ipm_share_is_that_of_the_report(tmp_path: Path) -> None:
    text = (DATA / "ipm2_io.txt").read_text().replace("12.50", "97.31", 1)
    text = text.replace("200.00", "0.04").replace(" 25.00", " 0.04")
    (tmp_path / "a.txt").write_text(text)
    profile = read_profile(tmp_path / "a.txt")
    assert profile.share(profile.mpi_s) == pytest.approx(0.9731)


def test_mpip() -> None:
    profile, line = shown("driver.mpiP")
    assert shows(line, "driver", "20.0 s", "50.0 % MPI", "40.0 % Allreduce", "10.0 % Irecv")
    first, second = profile.routines
    assert (first.calls, first.bytes) == (4002, 32000)
    assert first.time_s == pytest.approx(16.00002)
    assert first.spread is not None
    assert (first.spread.low, first.spread.high) == pytest.approx((6.00001, 10.00001))
    assert first.spread.slowest == 1
    assert second.calls == 2000
    assert profile.hosts == ("n1", "n2")
    assert profile.source == "mpiP 3.4.1"
    assert profile.sites[0].frames == ("exchange.3905 (solve.f:432)", "update (solve.f:184)")
    assert profile.sites[1].frames == ("0x405b76",)


def test_mpip_without_all_sites_says_so() -> None:
    profile, line = shown("fft.mpiP")
    assert shows(line, "fft", "10.0 s", "25.0 % MPI", "22.5 % Alltoall", "2.5 % Barrier")
    assert [one.calls for one in profile.routines] == [100, 50]
    assert "twenty" in profile.notes[0]


def test_mpitrace() -> None:
    profile, line = shown("mpi_profile.0")
    assert shows(line, "mpi_profile.0", "40.0 s", "25.0 % MPI", "23.8 % Allreduce", "1.2 % Bcast")
    assert (profile.ranks, profile.hosts) == (4, ("nid00102", "nid00103"))
    bcast = profile.routines[1]
    assert bcast.bytes == 820_000
    assert [(part.least, part.calls, part.time_s) for part in bcast.sizes] == [
        (8, 50, 0.1), (16392, 50, 0.4),
    ]  # fmt: skip
    assert [one.mpi_s for one in profile.each] == [10.0, 11.0, 12.0, 14.0]
    (note,) = profile.notes
    assert shows(note, "rank 0", "3 others")


def test_mpitrace_of_2013_names_no_hosts() -> None:
    profile, line = shown("mpi_profile_2013.0")
    assert shows(
        line, "mpi_profile_2013.0", "2.00 s", "20.0 % MPI", "19.5 % Sendrecv", "0.5 % Send"
    )
    assert [one.rank for one in profile.each] == [52, 41]


def test_ipm_within_the_output_of_a_job() -> None:
    profile, line = shown("ipm2.txt")
    assert shows(
        line, "main3d.ex", "12.6 s", "25.0 % MPI", "15.0 % Allreduce", "7.5 % Waitall",
        "2.5 % Isend",
    )  # fmt: skip
    assert (profile.ranks, profile.routines[0].calls) == (128, 567552)
    assert profile.source == "IPM 2.0.5"
    assert profile.hosts == ("nid11311",)


def test_ipm_without_routines_says_how_to_get_them() -> None:
    profile, line = shown("ipm2_io.txt")
    assert shows(line, "myexe", "5.00 s", "12.5 % MPI")
    assert shows(profile.notes[0], "IPM_REPORT=full")


def test_craypat_lite_has_samples() -> None:
    profile, line = shown("craypat_lite.txt")
    assert shows(line, "craypat_lite", "80.0 s", "25.0 % MPI", "20.0 % Allreduce", "4.0 % Waitall")
    assert profile.ranks == 1024
    spread = profile.routines[0].spread
    assert spread is not None
    assert (spread.mean, spread.high) == pytest.approx((16.0, 20.0))
    assert spread.imbalance == pytest.approx(0.25)


def test_pat_report_has_calls_and_what_was_waited() -> None:
    profile, line = shown("pat_report.txt")
    assert shows(line, "pat_report", "400 ms", "40.0 % MPI", "20.0 % Sendrecv", "20.0 % Allreduce")
    allreduce = profile.routines[1]
    assert allreduce.waited_s == pytest.approx(0.04 * 64)
    assert allreduce.calls == 21 * 64
    assert profile.waits


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_each_fits_a_terminal_and_is_read_back(path: Path, tmp_path: Path) -> None:
    profile = read_profile(path)
    assert max(map(len, profile_lines(profile))) <= 80
    kept = tmp_path / "kept.json"
    kept.write_text(render_profile(profile))
    assert read_profile(kept) == profile
    assert is_profile(path)
    assert is_profile(kept)


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_windows_line_ends_are_line_ends(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / path.name
    copy.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert read_profile(copy).routines == read_profile(path).routines


@pytest.mark.parametrize(
    ("name", "old", "new", "line"),
    [
        ("driver.mpiP", "1         20         12", "1         2x         12", 21),
        ("driver.mpiP", "   *         40         20    50.00", "", 21),
        ("driver.mpiP", "@--- End of Report -", "@-- End of Report -", 69),
        ("driver.mpiP", "Allreduce            2    1   2000 ", "Allreduce 2 1 ", 49),
        ("mpi_profile.0", "rank 0 of 4", "rank 9 of 4", 1),
        ("mpi_profile.0", "total elapsed time", "total", 45),
        ("mpi_profile.0", "8200.0          0.500", "-8200.0         0.500", 7),
        ("ipm2.txt", "128 on 32 nodes", "many", 3),
        ("ipm2.txt", "240.00         567552", "240.00         nan", 21),
        ("craypat_lite.txt", "Number of PEs (MPI ranks):", "Number:", 23),
        ("craypat_lite.txt", "1,600.0 | 400.0", "1,600.0", 37),
        ("craypat_lite.txt", "20.0% | 1,600.0 | 400.0", "20.0% | 1,600.0 | four", 37),
    ],
)
def test_what_is_damaged_is_refused_by_its_line(
    tmp_path: Path, name: str, old: str, new: str, line: int
) -> None:
    text = (DATA / name).read_text()
    assert old in text
    path = tmp_path / name
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError) as refused:
        read_profile(path)
    assert refused.value.code == "profile-damaged"
    assert re.search(rf"line {line}:", refused.value.message), refused.value.message


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_a_report_that_was_cut_short_is_refused(path: Path, tmp_path: Path) -> None:
    """Wherever it is cut before the last figure that its profile rests on."""
    lines = path.read_text().splitlines(keepends=True)
    cut = tmp_path / path.name
    for count in range(min(len(lines) // 2 - 6, 11)):
        cut.write_text("".join(lines[:count]))
        with pytest.raises(UsageError):
            read_profile(cut)


def test_a_report_of_rank_0_is_refused_wherever_it_is_cut(tmp_path: Path) -> None:
    lines = (DATA / "mpi_profile.0").read_text().splitlines(keepends=True)
    cut = tmp_path / "cut.0"
    last = max(k for k, line in enumerate(lines) if line.split()[:1] == ["3"])
    for count in range(last + 1):
        cut.write_text("".join(lines[:count]))
        with pytest.raises(UsageError):
            read_profile(cut)
    cut.write_text("".join(lines[: last + 1]))
    assert len(read_profile(cut).each) == 4


def test_sizes_that_make_not_all_calls_are_refused(tmp_path: Path) -> None:
    text = (DATA / "mpi_profile.0").read_text()
    cut = tmp_path / "cut.0"
    row = "                              50       16392.0          0.400\n"
    assert row in text
    cut.write_text(text.replace(row, ""))
    with pytest.raises(UsageError, match="100 calls, 50 by their sizes"):
        read_profile(cut)


@pytest.mark.parametrize("fill", ["\t", "-", "\n", " -"])
@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("driver.mpiP", "@ mpiP"),
        ("driver.mpiP", "@ Version"),
        ("driver.mpiP", "@--- MPI Time"),
        ("ipm2.txt", "# command   : "),
        ("craypat_lite.txt", "Execution start time:  "),
    ],
)
def test_long_runs_take_no_time_of_their_square(
    tmp_path: Path, name: str, before: str, fill: str
) -> None:
    """A square of this length takes minutes."""
    text = (DATA / name).read_text()
    assert before in text
    path = tmp_path / name
    path.write_text(text.replace(before, before + 300_000 * fill, 1))
    with no_hang(), contextlib.suppress(UsageError):
        if is_profile(path):
            read_profile(path)


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from([path.name for path in ALL]),
    changes=st.lists(
        st.tuples(st.integers(0, 4000), st.text(max_size=6), st.integers(0, 6)), max_size=8
    ),
)
def test_any_text_is_read_or_refused(
    tmp_path: Path, name: str, changes: list[tuple[int, str, int]]
) -> None:
    text = (DATA / name).read_text()
    for place, new, length in changes:
        place = min(place, len(text))  # noqa: PLW2901
        text = text[:place] + new + text[place + length :]
    path = tmp_path / name
    path.write_text(text, encoding="utf-8", errors="replace")
    with contextlib.suppress(UsageError):
        profile = read_profile(path)
        assert max(map(len, profile_lines(profile))) < 1000
        render_profile(profile)

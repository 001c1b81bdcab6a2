"""Reports of profilers given to `import`: those of one job are one profile, also in folders."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pytest

from mpigraft.trace.profile.reading import read_profile
from tests.builders.commands import run_on_store as run
from tests.builders.messages import matches, shows

PROFILES = Path(__file__).parents[2] / "data/profiles"
RANK = (PROFILES / "mpi_profile.0").read_text()
TABLE = "# OSU MPI Latency Test v7.5\n# Size       Avg Latency(us)\n1     28.16\n"


def ranks(folder: Path, *numbers: int) -> list[Path]:
    """Files of mpitrace; only rank 0 lists the others."""
    folder.mkdir(exist_ok=True)
    paths = [folder / f"mpi_profile.77.{number}" for number in numbers]
    for number, path in zip(numbers, paths, strict=True):
        own = RANK if number == 0 else RANK.split("Communication summary", 1)[0]
        own = own.replace("rank 0 of 4", f"rank {number} of 4")
        path.write_text(own.replace("= 10.000", f"= {10 + number}.000"))
    return paths


def test_the_files_of_one_job_are_one_profile(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = ranks(tmp_path / "r", 0, 1, 2, 3)
    for words in (paths, [tmp_path / "r"]):
        assert run(tmp_path / "store", "import", *words) == 0
        shown = capsys.readouterr().out
        # 10, 11, 12 and 13 of four times 40 seconds; Allreduce has 9.5 in each file
        assert shown.count("28.7 % MPI") == 1, shown
        assert shows(shown, "23.8 % Allreduce")
        assert "8,000" in shown or "8000" in shown, shown
        assert shows(shown, "4 ranks", "nid00102,nid00103")  # the hosts that rank 0 lists


def test_the_files_of_a_job_may_come_in_any_order(tmp_path: Path) -> None:
    paths = ranks(tmp_path / "r", 0, 1, 2, 3)
    first, *others = (read_profile(*order) for order in itertools.permutations(paths))
    assert others == [first] * len(others)


def test_two_files_of_one_rank_are_not_added_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = ranks(tmp_path / "r", 0, 1, 2)
    paths[2].write_text(paths[1].read_text())
    assert run(tmp_path / "store", "import", *paths) == 2
    assert matches(capsys.readouterr().err, "profile-other-jobs")


def test_a_folder_may_have_results_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ranks(tmp_path / "r", 0)
    shutil.copy(PROFILES / "driver.mpiP", tmp_path / "r")
    (tmp_path / "r/lat.out").write_text(TABLE)
    assert run(tmp_path / "store", "import", tmp_path / "r", "--configuration", "c") == 0
    shown = capsys.readouterr().out
    assert shows(shown, "lat.out", "1 value")
    assert "50.0 % MPI" in shown
    assert "25.0 % MPI" in shown


def test_files_of_other_jobs_are_not_added_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = ranks(tmp_path / "r", 0, 1)
    paths[1].write_text(paths[1].read_text().replace("1 of 4", "1 of 8"))
    assert run(tmp_path / "store", "import", *paths) == 2
    assert matches(capsys.readouterr().err, "profile-other-jobs")

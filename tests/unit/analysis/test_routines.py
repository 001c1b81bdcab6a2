"""Each detector that reads profiles finds its planted case, and not the near miss."""

from __future__ import annotations

import pytest

from mpigraft.analysis.routines import Named, issues_of_profiles
from mpigraft.knowledge import known_issues
from mpigraft.trace import Profile, Routine
from tests.builders.messages import shows


def profiled(file: str, ranks: int, **times: float) -> Named:
    """Describe a run of 100 s on each rank; a routine's time is that of a rank."""
    routines = tuple(Routine(name, time_s=time * ranks, calls=1) for name, time in times.items())
    return file, Profile("solver", ranks=ranks, total_s=100.0 * ranks, routines=routines)


FEW = profiled("few", 128, Alltoallv=10.0, Wait=20.0)
# issue -> (profiles that show it, profiles that do not)
CASES: dict[str, tuple[list[Named], list[Named]]] = {
    "COL-01": (
        [FEW, profiled("many", 1024, Alltoallv=45.0, Wait=20.0)],
        [FEW, profiled("many", 1024, Alltoallv=11.0, Wait=60.0)],
    ),
    "VAL-04": (
        [profiled("base", 8, Wait=10.0), profiled("new", 8, Wait=10.0, Barrier=12.0)],
        [profiled("base", 8, Wait=10.0, Barrier=1.0), profiled("new", 8, Barrier=12.0)],
    ),
}


def found(profiles: list[Named]) -> set[str]:
    return {match.issue.id for match in issues_of_profiles(profiles, "base")}


def test_every_detector_has_a_case() -> None:
    assert CASES.keys() == {i.id for i in known_issues() if "profile" in i.detect.kinds}


@pytest.mark.parametrize("name", CASES)
def test_a_profile_is_found_and_a_near_miss_is_not(name: str) -> None:
    fires, quiet = CASES[name]
    assert name in found(fires)
    assert name not in found(quiet)


def test_a_share_that_grows_is_described() -> None:
    (match,) = issues_of_profiles(CASES["COL-01"][0])
    assert match.of == "many"
    assert match.sure == "possible"
    assert shows(match.message, "MPI_Alltoallv", "45 %", "1024 ranks", "4.50 times")


def test_a_routine_of_one_side_is_described() -> None:
    (match,) = issues_of_profiles(CASES["VAL-04"][0], "base")
    assert match.sure == "measured"
    assert shows(match.message, "MPI_Barrier", "12 %", "base does not call it")


def test_one_profile_alone_shows_neither() -> None:
    assert not found(CASES["COL-01"][0][1:])
    assert not found(CASES["VAL-04"][0][1:])

"""Files of the witness: ranks of a node in one, whatever became of it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.model import Level, MappedLibrary, RankRecord
from mpigraft.evidence.world import records
from mpigraft.evidence.world.records import UNREAD, cpus, read_witness
from mpigraft.evidence.world.witness import check_witness
from tests.builders.messages import matches, shows
from tests.builders.probes import LAYOUT, configuration
from tests.builders.witness import LIBRARY, NODE, a_rank, encoded, lines, written

ASKED = configuration("openmpi@5.0.11", "ob1-sm")


def reasons(ranks: tuple[RankRecord, ...]) -> list[str]:
    return [rank.library_version for rank in ranks if rank.rank == UNREAD]


def test_ranks_share_the_map_that_one_of_them_wrote(tmp_path: Path) -> None:
    written(tmp_path, a_rank(rank=1, cores="4-5,7"), a_rank(rank=0, pid=8, gpus=["A=1"]))
    (tmp_path / f"{NODE}-0.map").touch()
    first, second = read_witness(tmp_path)
    assert (first.rank, first.pid, second.rank, second.pid) == (0, 8, 1, 7)
    assert (
        first.libraries == second.libraries == (MappedLibrary("/opt/mpi/lib/libmpi.so.40", 1, 2),)
    )
    assert (first.cores, second.cores) == ((0,), (4, 5, 7))
    assert (first.gpus, first.devices, second.gpus) == (("A=1",), (), ())
    assert not list(tmp_path.glob(".look*"))


def test_ranks_hold_one_list_of_what_they_have_in_common(tmp_path: Path) -> None:
    far = a_rank(rank=3, libraries=[(LIBRARY[0], 99, 2)])
    written(tmp_path, *(a_rank(rank=n) for n in range(3)), far)
    first, second, third, other = read_witness(tmp_path)
    assert first.libraries is second.libraries is third.libraries
    assert [library.device for library in other.libraries] == [99]


def test_who_tells_may_come_last(tmp_path: Path) -> None:
    one, two = lines([a_rank(), a_rank(rank=1)])
    (tmp_path / f"{NODE}.ranks").write_bytes(encoded([two, one]))
    assert [r.library_version for r in read_witness(tmp_path)] == [one["library_version"]] * 2


def test_a_disk_has_its_own_number_in_each_container(tmp_path: Path) -> None:
    """One image, mounted once for each rank."""
    one, two = lines([a_rank(), a_rank(rank=1)])
    written_ = encoded([one, {**two, "disks": [99]}])
    (tmp_path / f"{NODE}.ranks").write_bytes(written_)
    assert [r.libraries[0].device for r in read_witness(tmp_path)] == [1, 99]


@pytest.mark.parametrize(
    ("cores", "numa"), [("0-3", (0,)), ("3-4", (0, 1)), ("7", (1,)), ("", ()), ("99", ())]
)
def test_numa_nodes_are_those_of_the_cores(
    tmp_path: Path, cores: str, numa: tuple[int, ...]
) -> None:
    written(tmp_path, a_rank(cores=cores, numa={"0": "0-3", "1": "4-7"}))
    assert read_witness(tmp_path)[0].numa == numa


def test_two_nodes_of_one_name_are_two(tmp_path: Path) -> None:
    boots = ("00000000000000a1", "00000000000000b2")
    for rank, boot in enumerate(boots):
        written(tmp_path, a_rank(rank=rank), node=f"localhost-{boot}")
    assert [r.host for r in read_witness(tmp_path)] == [f"n0 ({boot})" for boot in boots]


def test_a_name_without_what_tells_nodes_apart_tells_them_apart(tmp_path: Path) -> None:
    written(tmp_path, a_rank(), node="one")
    written(tmp_path, a_rank(rank=1), node="two")
    (tmp_path / f"{NODE}.ranks").write_bytes(b"x\n")
    (tmp_path / "b-a.ranks").write_bytes(b"x\n")
    told = {r.host for r in read_witness(tmp_path)}
    assert told == {"n0 (one)", "n0 (two)", f"{NODE}.ranks", "b-a.ranks"}


def test_a_world_of_one_is_read(tmp_path: Path) -> None:
    written(tmp_path, a_rank(size=1))
    assert [(rank.rank, rank.size) for rank in read_witness(tmp_path)] == [(0, 1)]


def test_a_folder_that_is_gone_is_a_finding(tmp_path: Path) -> None:
    found = check_witness(ASKED, LAYOUT, read_witness(tmp_path / "none"))
    assert [f.code for f in found] == ["witness-unreadable", "no-witness"]


# ------------------------------------------------------------------ files that are not whole

LINE = lines([a_rank()])[0]
BROKEN: list[tuple[str, bytes]] = [
    ("cut", json.dumps(LINE).encode()[:-5]),
    ("not text", b"\xff\xfe\x00"),
    ("not an object", b"[1]"),
    ("no map", json.dumps({k: v for k, v in LINE.items() if k != "map"}).encode()),
    ("cores as number", json.dumps({**LINE, "cores": 3}).encode()),
    ("cores without end", json.dumps({**LINE, "cores": "0-99999"}).encode()),
    ("libraries as text", json.dumps({**LINE, "libraries": ["libmpi.so"]}).encode()),
    ("a disk that is none", json.dumps({**LINE, "disks": []}).encode()),
    ("gpus as text", json.dumps({**LINE, "gpus": "A=1"}).encode()),
    ("no size", json.dumps({**LINE, "size": 0}).encode()),
    ("rank as text", json.dumps({**LINE, "rank": "0"}).encode()),
    ("rank as truth", json.dumps({**LINE, "rank": True}).encode()),
    ("rank below zero", json.dumps({**LINE, "rank": -1}).encode()),
    ("host as number", json.dumps({**LINE, "host": 3}).encode()),
    ("numa as list", json.dumps({**LINE, "numa": [1]}).encode()),
    ("deep", b"[" * 100_000),
]


@pytest.mark.parametrize("data", [b for _, b in BROKEN], ids=[name for name, _ in BROKEN])
def test_a_malformed_line_is_a_finding_and_the_others_count(tmp_path: Path, data: bytes) -> None:
    good, bad = encoded(lines([a_rank(rank=1, library_version="other")])), b"\n" + data + b"\n"
    for whole, line in ((bad + good, 2), (good + bad, 4)):
        (tmp_path / f"{NODE}.ranks").write_bytes(whole)
        ranks = read_witness(tmp_path)
        assert [(rank.rank, rank.host) for rank in ranks] == [(UNREAD, f"{NODE}.ranks"), (1, "n0")]
        (finding, *_) = check_witness(ASKED, LAYOUT, ranks)
        assert (finding.level, finding.code) == (Level.ERROR, "witness-unreadable")
        assert matches(finding, "witness-unreadable", problem=f"{NODE}.ranks: line {line}:")
        assert data != b"[1]" or shows(finding.message, "not an object")


def test_a_number_that_is_none_is_reported(tmp_path: Path) -> None:
    for changes, said in (
        ({"rank": "0"}, "'0' is no whole number"), ({"host": 3}, "3 is no text"),
        ({"gpus": "A"}, "'A' is no list"), ({"size": 0}, "a world of 0"),
        ({"rank": -1}, "rank -1 of 2"), ({"size": 1, "rank": True}, "True is no whole"),
    ):  # fmt: skip
        (tmp_path / f"{NODE}.ranks").write_bytes(encoded([{**LINE, **changes}]))
        assert said in reasons(read_witness(tmp_path))[0]


def test_a_line_that_was_cut_short_spoils_no_other(tmp_path: Path) -> None:
    """A disk that is full for a moment: the next line begins anew."""
    first, second, third = (encoded([line]) for line in lines(a_rank(rank=n) for n in range(3)))
    for whole in (first + second[:-9] + third, first + third + second[:-9]):
        (tmp_path / f"{NODE}.ranks").write_bytes(whole)
        ranks = read_witness(tmp_path)
        assert [rank.rank for rank in ranks] == [UNREAD, 0, 2]
    assert "cut short" in reasons(ranks)[0]
    assert len(reasons(ranks)) == 1


@given(st.data())
def test_a_file_cut_anywhere_is_read_or_reported(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("witness")
    path = written(folder, *(a_rank(rank=n, size=3) for n in range(3)))
    whole = path.read_bytes()
    end = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:end])
    ranks = read_witness(folder)
    assert (len(reasons(ranks)) == 0) is (len([r for r in ranks if r.rank >= 0]) > 0 and
                                          whole[:end].endswith(b"\n"))  # fmt: skip


def test_ranks_with_an_unwritten_map_are_named(tmp_path: Path) -> None:
    told = lines(a_rank(rank=n, size=40) for n in range(40))
    (tmp_path / f"{NODE}.ranks").write_bytes(encoded(told[1:]))
    ranks = read_witness(tmp_path)
    assert [rank.rank for rank in ranks] == [UNREAD]
    assert len(reasons(ranks)) == 1
    assert shows(reasons(ranks)[0], "rank 1, 2, 3, 4, 5, 6, 7, 8")


def test_an_empty_file_says_that_a_disk_may_be_full(tmp_path: Path) -> None:
    (tmp_path / f"{NODE}.ranks").touch()
    assert "disk is full" in reasons(read_witness(tmp_path))[0]


def test_many_bad_lines_are_few_findings(tmp_path: Path) -> None:
    place = tmp_path / f"{NODE}.ranks"
    for count in (records.MOST_BROKEN, 1000):
        place.write_bytes(b"x\n" * count)
        told = reasons(read_witness(tmp_path))
        more = "992 more lines cannot be read"
        assert (len(told), more in told) == (8 + (count > 8), count > 8)


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_reader(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    folder = tmp_path_factory.mktemp("witness")
    (folder / f"{NODE}.ranks").write_bytes(data)
    assert {rank.rank for rank in read_witness(folder)} <= {UNREAD}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.just("0-1"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted(LINE)), JSON))
def test_no_value_crashes_the_reader(
    tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("witness")
    (folder / f"{NODE}.ranks").write_bytes(encoded([{**LINE, **changes}]))
    for rank in read_witness(folder):
        assert isinstance(rank.rank, int)
        assert all(isinstance(lib, MappedLibrary) for lib in rank.libraries)


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def a_giant(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(records.MOST + 1)


@pytest.mark.parametrize("make", [a_pipe, a_link, a_giant, Path.mkdir])
def test_what_is_no_file_of_the_witness_is_reported(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / f"{NODE}.ranks")
    ranks = read_witness(tmp_path)
    assert [rank.rank for rank in ranks] == [UNREAD]
    assert "None" not in reasons(ranks)[0]
    assert reasons(ranks)[0]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_record_that_may_not_be_read_is_a_finding(tmp_path: Path) -> None:
    written(tmp_path, a_rank()).chmod(0)
    assert [rank.rank for rank in read_witness(tmp_path)] == [UNREAD]


# ------------------------------------------------------------------ lists of CPUs


@given(st.sets(st.integers(0, 300)))
def test_lists_of_cpus_come_back(numbers: set[int]) -> None:
    """Written as the kernel writes them: runs of neighbours are ranges."""
    parts: list[str] = []
    for first in sorted(n for n in numbers if n - 1 not in numbers):
        last = first
        while last + 1 in numbers:
            last += 1
        parts.append(str(first) if last == first else f"{first}-{last}")
    assert cpus(",".join(parts)) == tuple(sorted(numbers))


@pytest.mark.parametrize(
    "text", [",", "1,", "a", "1-", "-1", "3-1", "1,1", "2,1", "0-65536", "1 ", "0-9999999999", "٣"]
)
def test_what_is_no_list_of_cpus_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no list of CPUs"):
        cpus(text)


def test_no_cpu_is_an_empty_list() -> None:
    assert cpus("") == ()
    assert cpus("65535") == (65535,)

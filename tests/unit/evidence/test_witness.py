"""The world that ran: what the witness wrote, held against the wish."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.model import Layout, Level, MappedLibrary, RankRecord
from mpigraft.evidence.judge import judge_evidence
from mpigraft.evidence.world import witness
from mpigraft.evidence.world.mapped import LIBMPI, DueLibrary
from mpigraft.evidence.world.records import UNREAD
from mpigraft.evidence.world.witness import check_witness, libmpis
from mpigraft.launch import LaunchResult
from tests.builders.messages import matches
from tests.builders.plans import label, plan
from tests.builders.probes import LAYOUT, LOGS, configuration, install, recorded, records

ASKED = configuration("openmpi@5.0.11", "ob1-sm")


def codes(ranks: tuple[RankRecord, ...], layout: Layout = LAYOUT) -> list[str]:
    return [f.code for f in check_witness(ASKED, layout, ranks) if f.level is Level.ERROR]


def test_the_world_that_was_requested_has_no_findings() -> None:
    assert check_witness(ASKED, LAYOUT, records()) == ()
    assert check_witness(ASKED, Layout(2, 2), records(4, hosts=2)) == ()


def test_no_record_is_an_error_and_not_a_pass() -> None:
    assert codes(()) == ["no-witness"]


def test_worlds_of_one_name_the_known_issue() -> None:
    alone = tuple(replace(rank, rank=0, size=1) for rank in records())
    found = check_witness(ASKED, LAYOUT, alone)
    assert [f.code for f in found] == ["LCH-01"]
    assert matches(found[0], "LCH-01", due=2, worlds=2)
    assert "pmix" in found[0].fix


@pytest.mark.parametrize(
    ("ranks", "code"),
    [
        (records(4)[:2], "world-size"),
        (records(2)[:1], "world-ranks"),
        ((*records(2), records(2)[1]), "world-ranks"),
        ((records(2)[0], records(2)[0]), "world-ranks"),
        ((records(2)[0], replace(records(2)[1], size=3)), "world-size"),
        (records(2, hosts=2), "hosts"),
    ],
)
def test_another_world_is_an_error(ranks: tuple[RankRecord, ...], code: str) -> None:
    assert codes(ranks) == [code]


def test_hosts_are_counted_and_filled_as_requested() -> None:
    assert matches(
        check_witness(ASKED, LAYOUT, records(2, hosts=2))[0], "hosts", problem="ran on 2: n0, n1"
    )
    assert codes(records(2), Layout(2, 1)) == ["hosts"]
    lopsided = tuple(replace(r, host="n0" if r.rank < 3 else "n1") for r in records(4, hosts=2))
    assert codes(lopsided, Layout(2, 2)) == ["hosts"]


def test_a_job_of_one_rank_is_no_world_of_one() -> None:
    assert codes(records(1), Layout(ranks_per_node=1)) == []


# ------------------------------------------------------------------ nodes that told nothing


@pytest.mark.parametrize(
    ("hosts", "named"),
    [
        (("n0", "n1"), "the ranks on n1 left no record; those on n0 did"),
        (("n1", "n0"), "the ranks on n1 left no record"),
        (("n0.site.org", "n1.site.org"), "on n1.site.org left"),
        (("n0", "n1", "n2"), "on n1 left"),
        (("10.0.0.1", "10.0.0.2"), "on 1 of 2 nodes left"),
        ((), "on 1 of 2 nodes left"),
    ],
)
def test_a_node_of_which_no_record_came_is_named(hosts: tuple[str, ...], named: str) -> None:
    half = records(4, hosts=2)[:2]
    found = check_witness(ASKED, Layout(2, 2), half, hosts=hosts)
    assert [f.code for f in found] == ["witness-unshared"]
    assert named in found[0].message
    assert found[0].fix


def test_nodes_whose_ranks_never_had_mpi_are_no_unshared_folder() -> None:
    half = records(4, hosts=2)[:2]
    found = check_witness(ASKED, Layout(2, 2), half, hosts=("n0", "n1"), ended=False)
    assert [f.code for f in found] == ["nodes-without-mpi"]
    assert matches(found[0], "nodes-without-mpi", nodes="n1", others="n0")


@pytest.mark.parametrize(
    ("left", "hosts", "said"),
    [
        ((0, 1, 2), ("n0", "n1"), "ranks 0, 1, 2 (1 of 2 on n1); one"),
        ((0, 2), ("N0", "n1.site"), "ranks 0, 2 (1 of 2 on N0, 1 of 2 on n1.site); one"),
        ((2,), ("n0", "n1"), "ranks 2 (0 of 2 on n0, 1 of 2 on n1); one"),
        ((0, 1, 2), ("n0", "other"), "ranks 0, 1, 2; one"),
        ((0, 1, 2), ("10.0.0.1", "10.0.0.2"), "ranks 0, 1, 2; one"),
    ],
)
def test_nodes_with_too_few_records_are_named(
    left: tuple[int, ...], hosts: tuple[str, ...], said: str
) -> None:
    ranks = records(4, hosts=2)
    some = [ranks[n] for n in left]
    (found,) = check_witness(ASKED, Layout(2, 2), some, hosts=hosts, ended=False)
    assert found.code == "world-ranks"
    assert said in found.message


@pytest.mark.parametrize("left", [(0,), (0, 1, 2), (0, 0), (2,)])
def test_a_rank_that_left_no_record_is_no_unshared_folder(left: tuple[int, ...]) -> None:
    ranks = records(4, hosts=2)
    assert codes(tuple(ranks[n] for n in left), Layout(2, 2)) == ["world-ranks"]


def test_worlds_of_another_size_are_no_unshared_folder() -> None:
    half = tuple(replace(rank, size=2) for rank in records(4, hosts=2)[:2])
    assert codes(half, Layout(2, 2)) == ["world-size"]


# ------------------------------------------------------------------ libmpi


def mapping(*libraries: MappedLibrary) -> tuple[RankRecord, ...]:
    return tuple(replace(rank, libraries=libraries) for rank in records())


def identity(path: Path, name: str = "/opt/mpi/lib/libmpi.so.40") -> MappedLibrary:
    seen = path.stat()
    return MappedLibrary(name, seen.st_dev, seen.st_ino)


RIGHT = identity(LOGS / "README.md")


def test_libmpi_is_known_by_device_and_inode_not_by_path(tmp_path: Path) -> None:
    other = tmp_path / "libmpi.so.40"
    other.write_text("another library at a path that looks right")
    assert codes(mapping(identity(other, RIGHT.path))) == ["libmpi-other"]
    assert codes(mapping(replace(RIGHT, path="/somewhere/else/libmpi.so.40"))) == []
    assert codes(mapping(replace(RIGHT, device=RIGHT.device + 1))) == ["libmpi-other"]
    assert codes(mapping(replace(RIGHT, inode=RIGHT.inode + 1))) == ["libmpi-other"]


def test_a_link_to_libmpi_is_libmpi(tmp_path: Path) -> None:
    link = tmp_path / "libmpi.so"
    link.symlink_to(LOGS / "README.md")
    asked = replace(ASKED, mpi=install("openmpi@5.0.11", libmpi=link))
    assert check_witness(asked, LAYOUT, mapping(RIGHT)) == ()


def test_two_libmpis_are_an_error_in_one_rank_and_in_two() -> None:
    other = MappedLibrary("/opt/other/lib/libmpi.so.12", 1, 1)
    assert codes(mapping(RIGHT, other)) == ["libmpi-several"]
    first, second = mapping(RIGHT)
    assert codes((first, replace(second, libraries=(other,)))) == ["libmpi-several"]


def test_files_of_two_generations_of_an_override_are_named() -> None:
    """In one rank, or in two: a switch may fall between their starts."""
    place = "/opt/eessi/OpenMPI/.mpigraft-system/generations"
    old, new = (MappedLibrary(f"{place}/{n}/mpi/lib/libx.so.{n}", 1, n) for n in (3, 4))
    assert "generations-mixed" not in codes(mapping(old, old))
    assert "generations-mixed" in codes(mapping(old, new))
    assert "generations-mixed" in codes((*mapping(old), *mapping(new)))


def test_the_guests_own_libmpi_may_be_another_file_on_another_cpu() -> None:
    paths = [f"/lib/glibc-hwcaps/x86-64-v{n}/libmpi.so.40" for n in (3, 2, 4)]
    own = replace(plan(label("/x"), "bwrap"), libmpi=paths[0], libmpi_copy="")
    asked = replace(ASKED, graft=replace(own, libmpi_elsewhere=(paths[1],)))
    libraries = [MappedLibrary(path, 7, inode) for inode, path in enumerate(paths)]
    for ranks, expected in (
        (mapping(libraries[0], libraries[1]), []),
        (mapping(libraries[1]), []),
        (mapping(libraries[2]), ["libmpi-other"]),
        (mapping(libraries[0], libraries[2]), ["libmpi-several"]),
    ):
        assert [f.code for f in check_witness(asked, LAYOUT, ranks)] == expected


def test_two_versions_are_two_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = mapping(RIGHT)
    found = check_witness(ASKED, LAYOUT, (first, replace(second, library_version="older")))
    assert [f.code for f in found] == ["libmpi-several"]
    assert matches(found[0], "libmpi-several", paths="in 2 versions")
    other = MappedLibrary("/opt/other/lib/libmpi.so.12", 1, 1)
    found = check_witness(ASKED, LAYOUT, mapping(RIGHT, other))
    assert "versions" not in found[0].message


def test_one_path_with_two_files_is_two_libraries() -> None:
    """It was replaced while the job started; also where nobody knows which was due."""
    first, second = mapping(RIGHT)
    second = replace(second, libraries=(replace(RIGHT, inode=RIGHT.inode + 1),))
    assert codes((first, second)) == ["libmpi-several"]
    unknown = check_witness(replace(ASKED, mpi=None), LAYOUT, (first, second))
    assert [finding.code for finding in unknown] == ["libmpi-several"]


def test_a_library_of_an_image_is_one_although_each_rank_mounts_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = "/usr/lib/libmpi.so.40"
    monkeypatch.setattr(witness, "due_library", lambda _: DueLibrary(path, 0, 0))
    first, second = mapping(MappedLibrary(path, 40, 7))
    second = replace(second, libraries=(MappedLibrary(path, 41, 7),))
    assert codes((first, second)) == []
    other = replace(second, libraries=(MappedLibrary("/opt/libmpi.so.40", 41, 7),))
    assert codes((first, other)) == ["libmpi-several"]
    assert codes((replace(first, libraries=other.libraries), other)) == ["libmpi-other"]


def test_other_libraries_are_no_concern() -> None:
    beside = MappedLibrary("/usr/lib/libc.so.6", 1, 1)
    assert codes(mapping(beside, RIGHT)) == []
    assert codes(mapping(beside)) == ["libmpi-none"]


def test_without_an_mpi_no_library_is_the_right_one() -> None:
    found = check_witness(replace(ASKED, mpi=None), LAYOUT, mapping(RIGHT))
    assert [f.code for f in found] == ["libmpi-unknown"]
    first, second = mapping(RIGHT)  # on another node the same file has another inode
    there = replace(second, boot="b", libraries=(replace(RIGHT, inode=RIGHT.inode + 1),))
    found = check_witness(replace(ASKED, mpi=None), LAYOUT, (first, there))
    assert [f.code for f in found] == ["libmpi-unknown"]
    found = check_witness(
        replace(ASKED, mpi=None), LAYOUT, (first, replace(there, boot=first.boot))
    )
    assert [f.code for f in found] == ["libmpi-several"]


def test_a_rank_without_libmpi_is_an_error() -> None:
    first, second = mapping(RIGHT)
    assert codes((first, replace(second, libraries=()))) == ["libmpi-none"]


def test_what_libmpi_was_due_has_to_be_known(tmp_path: Path) -> None:
    for libmpi in (None, tmp_path / "gone.so"):
        asked = replace(ASKED, mpi=install("openmpi@5.0.11", libmpi=libmpi))
        found = check_witness(asked, LAYOUT, mapping(RIGHT))
        assert [f.code for f in found] == ["libmpi-unknown"]


@pytest.mark.parametrize(
    "name",
    [
        "libmpi.so.40", "libmpi.so.40.80.7", "libmpi.so", "libmpi_abi.so.1", "libmpich.so.12",
        "libmpi_gnu_123.so.12", "libmpi_gnu.so.12", "libmpi_cray.so.12", "libmpi_ilp64.so.4",
    ],
)  # fmt: skip
def test_what_is_an_mpi_library(name: str) -> None:
    assert LIBMPI.fullmatch(name)


@pytest.mark.parametrize(
    "name",
    [
        "libmpi_mpifh.so.40", "libmpi_usempif08.so.40", "libmpifort.so.12", "libmpicxx.so.12",
        "libmpi_gtl_cuda.so.0", "libmpigraft-witness.so", "libmpi_shm_heap_proxy.so",
        "libopen-pal.so", "libmpi.so.40.txt",
    ],
)  # fmt: skip
def test_what_is_none(name: str) -> None:
    assert not LIBMPI.fullmatch(name)


def test_a_libmpi_that_was_replaced_under_a_running_rank_is_still_recognized() -> None:
    gone = replace(RIGHT, path=RIGHT.path + " (deleted)")
    assert libmpis(mapping(gone)) == (gone,)


# ------------------------------------------------------------------ binding


def bound(*cores: tuple[int, ...]) -> tuple[RankRecord, ...]:
    return tuple(replace(r, cores=c) for r, c in zip(records(len(cores)), cores, strict=True))


def test_ranks_that_share_cores_are_a_warning() -> None:
    found = check_witness(ASKED, LAYOUT, bound((0, 1), (1, 2)))
    assert [(f.level, f.code) for f in found] == [(Level.WARNING, "cores-shared")]
    assert "cores 1 " in found[0].message


def test_hardware_threads_of_a_core_may_belong_to_one_rank() -> None:
    assert check_witness(ASKED, LAYOUT, bound((0, 4), (1, 5))) == ()


def test_cores_of_two_hosts_are_not_shared() -> None:
    ranks = tuple(replace(r, cores=(0,)) for r in records(2, hosts=2))
    assert check_witness(ASKED, Layout(2, 1), ranks) == ()


def test_unbound_ranks_may_share_cores() -> None:
    assert check_witness(ASKED, Layout(bind="none"), bound((0, 1), (0, 1))) == ()


# ------------------------------------------------------------------ records


def test_an_unreadable_record_is_reported_and_is_no_rank() -> None:
    broken = RankRecord(UNREAD, 0, "n0-a.ranks", 0, "line 4: cut", (), ())
    assert codes((broken, *records())) == ["witness-unreadable"]
    assert codes((broken,)) == ["witness-unreadable", "no-witness"]


def test_an_unreadable_record_refuses_a_probe() -> None:
    log = recorded("openmpi-5.0.11--ob1-sm")
    broken = RankRecord(UNREAD, 0, "n0-a.ranks", 0, "ValueError", (), ())
    evidence = judge_evidence(ASKED, LAYOUT, LaunchResult(log.completed, (*log.ranks, broken)))
    assert not evidence.ok
    assert evidence.ranks == log.ranks
    assert judge_evidence(ASKED, LAYOUT, LaunchResult(log.completed, log.ranks)).ok

"""A profile of what ranks counted: sums, shares, spreads, and what did not end well."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

import mpigraft
from mpigraft.core.errors import UsageError
from mpigraft.report.profile.text import headline, profile_lines
from mpigraft.trace import Counting, Profile, counted_profile, read_counts, render_profile
from mpigraft.trace.profile.counted import up_to_main
from mpigraft.trace.profile.places import Functions, Places
from mpigraft.trace.profile.reading import read_profile
from mpigraft.trace.profile.values import PeerKind
from tests.builders.messages import shows
from tests.builders.traces import ARank, write_node
from tests.builders.witness import a_task

S = 1_000_000_000  # ticks of a second
NOW = 1_700_000_010_000_000_000  # ten seconds after the start


def profiled(folder: Path, *nodes: list[ARank], **more: object) -> Profile:
    for k, ranks in enumerate(nodes):
        write_node(folder, f"n{k + 1}", ranks)
    counting = Counting(now_ns=NOW, **more)  # type: ignore[arg-type]
    made = counted_profile(read_counts(folder), counting)
    assert made is not None
    return made


def a_rank(rank: int, alltoallv: int, **more: object) -> ARank:
    routines = {"Alltoallv": (4, alltoallv, 4096, alltoallv // 2), "Send": (2, S // 100, 16, 0)}
    return ARank(rank, 2, 1000, 1000 + 2 * S, routines=routines, **more)  # type: ignore[arg-type]


def test_routines_are_added_up_over_ranks_and_nodes(tmp_path: Path) -> None:
    found = profiled(tmp_path, [a_rank(0, S)], [a_rank(1, S // 2)], waits=True)
    first, second = found.routines
    assert (first.name, first.calls, first.bytes) == ("Alltoallv", 8, 8192)
    assert first.time_s == pytest.approx(1.5)
    assert first.waited_s == pytest.approx(0.75)
    assert first.spread is not None
    assert (first.spread.low, first.spread.high) == pytest.approx((0.5, 1.0))
    assert first.spread.slowest == 0
    assert first.spread.imbalance == pytest.approx(1 / 3)
    assert second.name == "Send"
    assert found.hosts == ("n1", "n2")
    assert found.run_s == pytest.approx(2.0)
    assert shows(headline(found), "app", "2.00 s", "38.0 % MPI", "37.5 % Alltoallv", "0.5 % Send")


def test_a_rank_that_never_called_a_routine_counts_with_nothing(tmp_path: Path) -> None:
    found = profiled(tmp_path, [a_rank(0, S), ARank(1, 2)])
    spread = found.routines[0].spread
    assert spread is not None
    assert (spread.low, spread.mean) == pytest.approx((0.0, 0.5))


def test_a_rank_that_was_killed_in_a_routine_is_named_with_it(tmp_path: Path) -> None:
    """The time of the call that did not return counts: a program that hangs is in MPI."""
    stuck = ARank(1, 2, ended=0, state=1, current="Recv", entered=1000 + 4 * S)
    found = profiled(tmp_path, [a_rank(0, S), stuck], exit_code=137)
    (one,) = found.unfinished
    assert (one.rank, one.inside) == (1, "Recv")
    assert one.inside_s == pytest.approx(6.0)
    assert one.run_s == pytest.approx(10.0)
    recv = next(routine for routine in found.routines if routine.name == "Recv")
    assert recv.calls == 0
    assert recv.time_s == pytest.approx(6.0)
    text = "\n".join(profile_lines(found))
    assert shows(text, "not finalized", "rank 1", "Recv", "6.00 s")
    assert shows(text, "exit code", "137")


def test_pairs_of_ranks_are_ordered_by_bytes(tmp_path: Path) -> None:
    found = profiled(
        tmp_path,
        [
            ARank(0, 2, peers={(1, 0): (1, 10), (0, 1): (1, 5)}),
            ARank(1, 2, peers={(0, 2): (7, 900)}),
        ],
    )
    rows = [(one.source, one.target, one.kind, one.bytes) for one in found.peers]
    assert rows == [
        (1, 0, PeerKind.ONE_SIDED, 900), (0, 1, PeerKind.P2P, 10), (0, 0, PeerKind.COLLECTIVE, 5),
    ]  # fmt: skip


def test_sizes_of_messages_are_classes(tmp_path: Path) -> None:
    one = ARank(
        0, 1, routines={"Send": (5, 50, 9, 0)}, sizes={"Send": {0: (2, 0, 20), 2: (3, 9, 30)}}
    )
    (send,) = profiled(tmp_path, [one]).routines
    assert [(s.least, s.most, s.calls, s.bytes) for s in send.sizes] == [(0, 0, 2, 0), (2, 3, 3, 9)]


def test_blocks_of_many_classes_are_a_row_of_their_own(tmp_path: Path) -> None:
    ranks = [
        ARank(rank, 2, routines={"Alltoallv": (1, 90, 9, 0)},
              sizes={"Alltoallv": {0: (1, 0, 0), 3: (0, 0, 10)}},
              mixed={"Alltoallv": (2, 108, 80, 8 - rank, 100 + rank)})
        for rank in range(2)
    ]  # fmt: skip
    found = profiled(tmp_path, ranks)
    (one,) = found.routines
    assert [(s.least, s.most, s.calls, s.bytes, s.mixed) for s in one.sizes] == [
        (0, 0, 2, 0, False), (4, 7, 0, 0, False), (7, 101, 4, 216, True),
    ]  # fmt: skip
    assert [s.time_s for s in one.sizes] == pytest.approx([0, 20e-9, 160e-9])
    assert not any(s.estimated for s in one.sizes)
    assert shows("\n".join(profile_lines(found)), "Alltoallv", "mixed", "7 to 101 4")


def test_time_of_many_messages_that_start_together_is_estimated(tmp_path: Path) -> None:
    one = ARank(0, 1, routines={"Startall": (1, 50, 9, 0)},
                sizes={"Startall": {0: (1, 0, 0), 4: (1, 9, 50)}})  # fmt: skip
    found = profiled(tmp_path, [one])
    assert [s.estimated for s in found.routines[0].sizes] == [False, True]
    assert "100.0 % est." in "\n".join(profile_lines(found))


def test_the_way_into_mpi_is_apart(tmp_path: Path) -> None:
    """A second in MPI_Init says nothing of the program, which runs for one."""
    ranks = [a_rank(0, S // 2), a_rank(1, S // 2)]
    for one in ranks:
        one.routines = {**one.routines, "Init": (1, S, 0, 0)}
    found = profiled(tmp_path, ranks)
    assert (found.run_s, found.total_s, found.entry_s) == pytest.approx((1.0, 2.0, 1.0))
    assert shows(headline(found), "app", "1.00 s", "51.0 % MPI", "50.0 % Alltoallv", "1.0 % Send")
    assert [one.mpi_s for one in found.each] == pytest.approx([0.51, 0.51])
    lines = profile_lines(found)
    assert shows(lines, "before", "1.00", "MPI_Init")
    assert next(line for line in lines if line.startswith("Init ")).split()[1] == "-"
    assert found.routine_share("Init", 1.0) is None
    assert replace(found, entry_s=None).routine_share("Init", 1.0) == pytest.approx(0.5)


def test_shares_of_several_threads_are_of_all_their_time(tmp_path: Path) -> None:
    busy = {"Init": (1, 3 * S, 0, 0), "Recv": (4, 2 * S, 0, 0)}
    found = profiled(tmp_path, [ARank(0, 1, 1000, 1000 + 5 * S, routines=busy, threads=4)])
    assert (found.run_s, found.total_s, found.mpi_s) == pytest.approx((2.0, 8.0, 8.0))
    assert found.each[0].threads == 4
    assert shows(found.notes[0], "4 threads", "rank called", "MPI")


@pytest.mark.parametrize(
    ("paused", "before", "inside_s"),
    [((0, 0), 0, 6.0), ((S, 0), S, 6.0), ((2 * S, 0), S, 5.0), ((S, 1000 + 7 * S), S, 3.0),
     ((S, 1000 + 2 * S), S, 0.0)],
)  # fmt: skip
def test_a_pause_is_no_part_of_a_call_that_did_not_return(
    tmp_path: Path, paused: tuple[int, int], before: int, inside_s: float
) -> None:
    stuck = ARank(0, 1, ended=0, state=1, current="Recv", entered=1000 + 4 * S, threads=2,
                  paused=paused, paused_before=before)  # fmt: skip
    found = profiled(tmp_path, [stuck])
    (one,) = found.unfinished
    assert one.inside_s == pytest.approx(inside_s)
    assert one.mpi_s == pytest.approx(2 * inside_s)
    assert found.routines[0].time_s == pytest.approx(2 * inside_s)
    assert found.total_s == pytest.approx(2 * one.run_s if one.run_s else 0)


def test_whom_ranks_wait_for_is_named(tmp_path: Path) -> None:
    ranks = [
        ARank(rank, 3, routines={"Alltoallv": (4, S, 0, waited), "Barrier": (1, S // 8, 0, 0)})
        for rank, waited in enumerate((S // 2, S // 2, S // 100))
    ]
    notes = profiled(tmp_path, ranks, waits=True).notes
    assert shows(notes, "not separated", "Barrier")
    assert shows(notes, "others wait", "most", "rank 2", "0.01", "0.337")
    assert not any("wait" in note for note in profiled(tmp_path, ranks).notes)


def test_without_a_routine_that_waited_there_is_no_table_of_waiting(tmp_path: Path) -> None:
    ranks = [ARank(rank, 2, routines={"Barrier": (1, S, 0, 0)}) for rank in range(2)]
    found = profiled(tmp_path, ranks, waits=True)
    assert not shows(profile_lines(found), "waiting for others")
    assert shows(found.notes, "not separated", "Barrier")


SPAWNED = a_task("4000.", spawned=True, job="aa", above=[])
ALONE = a_task("4000.", connected=False, above=["4000."])


def test_other_worlds_of_a_job_are_counted_apart(tmp_path: Path) -> None:
    """As many ranks as that of the launch, or fewer: it is known by its launcher, not by size."""
    inside = {"Barrier": (7, S, 0, 0)}
    others = [ARank(n, 4, routines=inside, task=SPAWNED, program="/opt/child") for n in range(4)]
    tools = [ARank(0, 1, routines=inside, task=ALONE, program="/opt/tool") for _ in range(2)]
    found = profiled(tmp_path, [*others, *tools, a_rank(0, S), a_rank(1, S)], ranks=2)
    plain = profiled(tmp_path, [a_rank(0, S), a_rank(1, S)])
    assert (found.ranks, [one.rank for one in found.each]) == (2, [0, 1])
    assert (found.routines, found.total_s) == (plain.routines, plain.total_s)
    assert [(one.program, one.ranks) for one in found.others] == [
        ("child", 4), ("tool", 1), ("tool", 1),
    ]  # fmt: skip
    assert [one.routines[0].calls for one in found.others] == [28, 7, 7]
    note = "child (4 ranks, spawned), 2 x tool (1 rank)"
    assert note in found.notes[0]
    text = "\n".join(profile_lines(found))
    assert shows(text, "world 1", "child", "1.00")
    assert found.of_world(3) == found.others[2]
    assert found.of_world(4) is None
    assert found.of_world(0) == replace(found, others=())


def test_a_job_without_a_world_of_its_own_shows_another_and_says_so(tmp_path: Path) -> None:
    found = profiled(tmp_path, [ARank(n, 2, task=SPAWNED) for n in range(2)])
    assert shows(found.notes[0], "no rank", "launch")
    assert (found.ranks, found.others) == (2, ())


def test_a_launch_that_fell_apart_is_not_added_up(tmp_path: Path) -> None:
    found = profiled(tmp_path, [ARank(0, 1), ARank(0, 1), ARank(0, 1)], ranks=3)
    assert (found.ranks, len(found.each), len(found.others)) == (1, 1, 2)


def test_of_many_other_worlds_some_are_kept(tmp_path: Path) -> None:
    tools = [ARank(0, 1, task=ALONE) for _ in range(20)]
    found = profiled(tmp_path, [a_rank(0, S), a_rank(1, S), *tools])
    assert len(found.others) == 16
    assert shows(found.notes, "first", "16 of 20", "other worlds", "kept")


def test_what_was_not_counted_is_a_note(tmp_path: Path) -> None:
    found = profiled(tmp_path, [a_rank(0, S, dropped=4 | 32)])
    dropped, lost = found.notes
    assert shows(dropped, "not counted", "rank 0", "no space")
    assert shows(lost, "1 rank of 2")


def test_without_a_rank_there_is_no_profile(tmp_path: Path) -> None:
    assert counted_profile(read_counts(tmp_path), Counting()) is None
    write_node(tmp_path, "n1", [ARank(state=0)])
    assert counted_profile(read_counts(tmp_path), Counting()) is None


def test_a_document_is_read_back_as_it_was(tmp_path: Path) -> None:
    rank = a_rank(0, S, peers={(1, 0): (1, 10)}, sites=[("Send", 1, 5, 8, (0x4010,))])
    made = profiled(tmp_path, [rank, a_rank(1, S)], exit_code=0)
    path = tmp_path / "my profile.json"
    path.write_text(render_profile(made))
    assert read_profile(path) == made


def test_documents_are_as_their_schema_says(tmp_path: Path) -> None:
    schema = json.loads(
        (Path(mpigraft.__file__).parent / "report/schemas/profile.json").read_text()
    )
    reports = sorted((Path(__file__).resolve().parents[2] / "data/profiles").glob("*[!d]"))
    rank = a_rank(0, S, peers={(1, 0): (1, 10)}, sites=[("Send", 1, 5, 8, (0x4010,))])
    for one in (profiled(tmp_path, [rank]), *map(read_profile, reports)):
        jsonschema.validate(json.loads(render_profile(one)), schema)


@pytest.mark.parametrize(
    "change",
    [
        {"profile": None},
        {"schema": 99},
        {"profile": {"program": 3}},
        {"profile": {"program": "a", "run_s": -1.0}},
        {"profile": {"program": "a", "routines": [{"name": "Send", "calls": "many"}]}},
        {"profile": {"program": "a", "peers": [{"source": -1, "target": 0, "kind": "p2p",
                                                "messages": 1, "bytes": 1}]}},
    ],
)  # fmt: skip
def test_a_damaged_document_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"schema": 2, "profile": {"program": "a"}} | change))
    with pytest.raises(UsageError) as refused:
        read_profile(path)
    assert refused.value.code == "profile-damaged"


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    for text in ("", "hello\n", "{", '{"schema": 2, "profile": NaN}'):
        path.write_text(text)
        with pytest.raises(UsageError):
            read_profile(path)


# ------------------------------------------------------------------ places


def test_functions_of_a_real_program_are_named() -> None:
    """Those of this interpreter's C library, or of itself, by their own symbols."""
    line = next(
        line for line in Path("/proc/self/maps").read_text().splitlines()
        if " r-xp " in line and "/libc.so" in line
    )  # fmt: skip
    start, path = int(line.split("-")[0], 16), line.split(maxsplit=5)[5]
    offset = int(line.split()[2], 16)
    functions = Functions(Path(path))
    first, _, name = next(row for row in functions.table if row[2] == "getpid")
    own = next(o + first - a for o, size, a in functions.segments if a <= first < a + size)
    assert functions.at(own) == name
    places = Places(line + "\n")
    assert places.name(start + own - offset + 2).startswith(f"{name} (")
    assert Places(line + "\n", None).name(start + own - offset + 2).startswith("libc")


def test_places_without_a_file_keep_name_and_offset() -> None:
    maps = "400000-500000 r-xp 00001000 08:01 7      /no/such/my app (deleted)\nnoise\n"
    places = Places(maps)
    assert places.name(0x400011).split("+") == ["my app", "0x1010"]
    assert places.name(0x900000) == "0x900000"
    assert Places("").name(1) == "0x1"


def test_frames_end_at_main() -> None:
    assert up_to_main(("f (a+0x1)", "main (a+0x2)", "libc.so.6+0x3")) == (
        "f (a+0x1)",
        "main (a+0x2)",
    )
    assert up_to_main(("f", "g")) == ("f", "g")


def test_what_pcontrol_left_out_is_no_part_of_the_run(tmp_path: Path) -> None:
    first, later = a_rank(0, S // 4, paused=(S // 2, 0)), a_rank(1, 0, paused=(0, 1000 + S))
    found = profiled(tmp_path, [first, later])
    assert found.total_s == pytest.approx(1.5 + 1.0)
    assert shows(found.notes, "MPI_Pcontrol", "left", "1", "rank's")

"""Imported tables: rounds, layouts, what is refused, and that no file is lost or counts twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.bench import ImportedFile, ImportOptions, import_files
from mpigraft.bench.importing.reading import FileState, ImportSource, ImportTable, read_results
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import CampaignRecord, Finding, LaunchState, Level, Origin
from mpigraft.store import Store, Writer
from tests.builders.commands import run_on_store as run
from tests.builders.messages import matches, shows

VENDOR = ImportOptions("vendor")
DATA = Path(__file__).parents[2] / "data"
OLIVIA = DATA / "olivia"
LATENCY = "# OSU MPI Latency Test v7.5\n# Size       Avg Latency(us)\n"
BW = "# OSU MPI Bandwidth Test v7.5\n# Size      Bandwidth (MB/s)\n"

VALUE = (
    '{"mpigraft":"value","benchmark":"bw","metric":"bandwidth","unit":"MB/s","size":8,"value":1.5}'
    '\n{"mpigraft":"end","values":1}\n'
)


def table(folder: Path, text: str, name: str = "table.txt") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def bring(store: Store, *paths: Path, told: ImportOptions = VENDOR) -> list[ImportedFile]:
    """Import files; raise what the first of them was refused with."""
    done = list(import_files(store, [ImportSource.of(path) for path in paths], told))
    for one in done:
        if one.error:
            raise one.error
    return done


def read(path: Path, told: ImportOptions = VENDOR) -> ImportTable:
    read = read_results(ImportSource.of(path), told)
    assert isinstance(read, tuple)
    (one,) = read
    return one


def rounds(store: Store) -> list[tuple[str, int, float]]:
    rows = store.values(store.campaign().id)
    return sorted((r.benchmark, r.round, r.value) for r in rows)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


# ------------------------------------------------------------------ rounds and identity


def test_benchmarks_are_apart_and_the_same_again_is_the_next_round(
    store: Store, tmp_path: Path
) -> None:
    bring(store, table(tmp_path, LATENCY + "1 1.00\n"), table(tmp_path, BW + "1 9.00\n", "b"))
    bring(store, table(tmp_path, LATENCY + "1 2.00\n" + BW + "1 8.00\n"))
    bring(store, table(tmp_path, LATENCY + "1 3.00\n"))
    assert rounds(store) == [
        ("osu:bw", 0, 9.0), ("osu:bw", 1, 8.0),
        ("osu:latency", 0, 1.0), ("osu:latency", 1, 2.0), ("osu:latency", 2, 3.0),
    ]  # fmt: skip


def test_a_table_twice_in_one_file_is_two_rounds(store: Store, tmp_path: Path) -> None:
    bring(store, table(tmp_path, LATENCY + "1 1.00\n2 1.50\n" + LATENCY + "1 2.00\n"))
    assert rounds(store) == [
        ("osu:latency", 0, 1.0), ("osu:latency", 0, 1.5), ("osu:latency", 1, 2.0)
    ]  # fmt: skip


def test_a_file_counts_once_however_it_is_called(store: Store, tmp_path: Path) -> None:
    first = table(tmp_path, LATENCY + "1 1.00\n" + LATENCY + "1 2.00\n")
    again = table(tmp_path, first.read_text(), "copy.txt")
    assert [a.rounds for a in bring(store, first, again)] == [(0, 1), ()]
    assert [a.rounds for a in bring(store, again)] == [()]
    elsewhere = ImportOptions("vendor", allocation="another day")
    assert [a.rounds for a in bring(store, again, told=elsewhere)] == [()]
    assert len(rounds(store)) == 2


def test_a_file_of_two_configurations_is_stored_with_a_finding(
    store: Store, tmp_path: Path
) -> None:
    path = table(tmp_path, LATENCY + "1 1.00\n")
    bring(store, path)
    (added,) = bring(store, path, told=ImportOptions("mine"))
    assert added.rounds == (0,)
    assert shows(added.notes, "same table", "vendor")


def test_an_import_that_was_killed_is_repeated_without_loss(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = table(tmp_path, "".join(LATENCY + f"1 {n}.00\n" for n in (1, 2, 3)))
    written: list[int] = []
    whole = Writer.add_launch

    def dies_in_the_middle(*args: object) -> object:
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(1)
        return whole(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(Writer, "add_launch", dies_in_the_middle)
    with pytest.raises(KeyboardInterrupt):
        bring(store, path)
    monkeypatch.undo()
    bring(store, path)
    bring(store, path)
    assert sorted(value for *_, value in rounds(store)) == [1.0, 2.0, 3.0]
    assert len({number for _, number, _ in rounds(store)}) == 3


def test_the_file_itself_and_what_it_says_are_kept(store: Store) -> None:
    path = OLIVIA / "2025-cray-mpich-8.1.32.bibw.txt"
    bring(store, path)
    (launch,) = store.launches(store.campaign().id)
    assert store.artefact(dict(launch.artefacts)["table"]) == path.read_bytes()
    assert b'"version":"7.5"' in store.artefact(dict(launch.artefacts)["told"])


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """A table whose check failed, of numbers: sums of characters fail where nothing is wrong."""
    path = tmp_path / "openmpi-allreduce_f_c_z.out"
    data = (DATA / "osu-7.4/openmpi-allreduce_f_c_z.out").read_bytes()
    path.write_bytes(data.replace(b"MPI_CHAR", b"MPI_INT"))
    return path


def test_findings_are_kept_and_a_failed_run_is_no_good_launch(store: Store, wrong: Path) -> None:
    bring(store, wrong)
    (launch,) = store.launches(store.campaign().id)
    assert launch.state is LaunchState.FAILED
    assert [f.code for f in launch.findings] == ["program-failed", "validation-failed"]
    assert [r.size for r in store.values(launch.campaign)] == [1, 2, 4, 8]  # not 16, which failed


def test_every_suite_is_known_by_its_content(store: Store, tmp_path: Path) -> None:
    native = table(tmp_path, '{"mpigraft":"begin","ranks":2}\n' + VALUE)
    bring(store, native, DATA / "imb/p2p.out", DATA / "osu-7.4/mpich-init.out")
    keys = {key for key, *_ in rounds(store)}
    assert keys == {"native:bw", "imb:PingPong,part=P2P", "osu:init"}


# ------------------------------------------------------------------ campaign, layout, buffers


def test_campaigns_are_named_after_the_machine_and_extended(store: Store, tmp_path: Path) -> None:
    path = table(tmp_path, LATENCY + "1 1.00\n")
    told = ImportOptions("vendor", machine="olivia")
    bring(store, path, told=told)
    bring(store, path, told=ImportOptions("mine", machine="olivia"))
    bring(store, path, told=ImportOptions("mine", campaign="olivia"))
    bring(store, path)
    assert [c.name for c in store.campaigns()] == ["olivia", "import"]
    olivia = store.campaigns()[0]
    assert olivia.origin is Origin.IMPORT
    known = {c.key: c.id for c in store.configurations(olivia.id)}
    assert set(known.values()) == {"vendor", "mine"}
    assert known[olivia.baseline] == "vendor"  # the first one
    assert [a.host for a in store.allocations(olivia.id)] == ["olivia"]


def test_a_run_campaign_takes_no_imports(store: Store, tmp_path: Path) -> None:
    ours = CampaignRecord("00000000-0000-4000-8000-000000000000", "ours", "2026-01-01T00:00:00Z",
                          Origin.RUN, 1, 6, "k", "{}", "0")  # fmt: skip
    with store.writer() as writer:
        writer.add_campaign(ours)
    with pytest.raises(UsageError, match="'ours' was run here"):
        bring(
            store, table(tmp_path, LATENCY + "1 1.00\n"), told=ImportOptions("x", campaign="ours")
        )


def test_machines_are_not_mixed(store: Store, tmp_path: Path) -> None:
    path = table(tmp_path, LATENCY + "1 1.00\n")
    bring(store, path, told=ImportOptions("a", campaign="c", machine="olivia"))
    with pytest.raises(UsageError, match="machine olivia and lumi"):
        bring(store, path, told=ImportOptions("b", campaign="c", machine="lumi"))


def test_buffers_are_the_configurations_and_are_not_mixed(store: Store, tmp_path: Path) -> None:
    host = table(tmp_path, LATENCY + "1 1.00\n", "host")
    cuda = table(tmp_path, LATENCY.replace("MPI", "MPI-CUDA") + "1 1.00\n", "cuda")
    bring(store, cuda)
    (row,) = store.values(store.campaign().id)
    assert (row.benchmark, row.buffers) == ("osu:latency", "cuda")
    with pytest.raises(UsageError, match="cuda and host buffers"):
        bring(store, host)
    with pytest.raises(UsageError, match="host and cuda buffers"):
        bring(store, host, cuda, told=ImportOptions("x", campaign="new"))
    both = table(tmp_path, host.read_text() + cuda.read_text(), "both")
    with pytest.raises(UsageError, match="both: tables with host and cuda buffers"):
        bring(store, both, told=ImportOptions("x", campaign="new"))
    assert [len(store.values(c.id)) for c in store.campaigns()] == [1, 1]


@pytest.mark.parametrize(
    ("head", "nodes", "per_node", "layout"),
    [
        ("", 0, 0, "unknown"),
        ("", 2, 1, "2x1"),
        ("== Nodes = 2\n== Processes = 8\n", 0, 0, "2x4"),
        ("== Nodes = 2\n== Processes = 8\n", 2, 4, "2x4"),
        ("== Processes = 8\n", 2, 0, "2x4"),
        ('{"mpigraft":"begin","ranks":8}\n', 2, 0, "2x4"),
        ("== Nodes = 3\n== Processes = 8\n", 0, 0, "3nodes-8ranks"),
    ],
)
def test_the_layout_comes_from_flags_or_the_file(
    tmp_path: Path, head: str, nodes: int, per_node: int, layout: str
) -> None:
    told = ImportOptions("x", nodes=nodes, ranks_per_node=per_node)
    body = VALUE if "mpigraft" in head else LATENCY + "1 1.00\n"
    assert read(table(tmp_path, head + body), told).layout == layout


def test_mpigraft_bench_says_its_buffers_at_the_head(tmp_path: Path) -> None:
    begin = '{"mpigraft":"begin","ranks":2,"buffers":"cuda"}\n'
    assert read(table(tmp_path, begin + VALUE), ImportOptions("x")).buffers == "cuda"


@pytest.mark.parametrize(
    ("head", "flags", "message"),
    [
        ("", {"nodes": 2}, "only one of --nodes and --ranks-per-node"),
        ("", {"ranks_per_node": 2}, "only one of --nodes and --ranks-per-node"),
        (
            "== Nodes = 2\n",
            {"nodes": 4, "ranks_per_node": 1},
            "--nodes says 4, and the file says 2",
        ),
        (
            "== Processes = 8\n",
            {"nodes": 2, "ranks_per_node": 2},
            "node says 4, and the file says 8",
        ),
    ],
)
def test_a_layout_that_does_not_fit_is_refused(
    tmp_path: Path, head: str, flags: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        read(table(tmp_path, head + LATENCY + "1 1.00\n"), ImportOptions("x", **flags))


def test_a_layout_given_later_is_noted_and_leaving_it_out_is_harmless(
    store: Store, tmp_path: Path
) -> None:
    path = table(tmp_path, LATENCY + "1 1.00\n")
    told = ImportOptions("vendor", nodes=2, ranks_per_node=1)
    bring(store, path, told=told)
    (again,) = bring(store, path)
    assert (again.state, again.rounds, again.notes) == (FileState.KNOWN, (), ())
    (other,) = bring(store, table(tmp_path, LATENCY + "1 2.00\n"), told=ImportOptions("mine"))
    assert shows(other.notes, "layout unknown", "not compared", "2x1")


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "1: not the output of a known suite"),
        (b"\0\1\2 hello", "1: not the output of a known suite"),
        (LATENCY.encode(), "no value in it: .*a table without a row"),
        (
            b"# OSU MPI Hello World Test v7.4\n",
            "no value in it: table.txt:1: hello prints no figures",
        ),
        (b'{"mpigraft":"begin"}\n{"mpigraft":"end","values":0}', "its native tables have no rows"),
        (LATENCY.encode() + b"1 nan\n", "table.txt:3: latency is 'nan'"),
    ],
)
def test_a_bad_file_is_named_and_the_others_are_stored(
    store: Store, tmp_path: Path, content: bytes, said: str
) -> None:
    bad = tmp_path / "table.txt"
    bad.write_bytes(content)
    good = table(tmp_path, LATENCY + "1 1.00\n", "good")
    with pytest.raises(UsageError, match=said):
        bring(store, bad)
    assert store.campaigns() == ()
    with pytest.raises(UsageError, match=said):
        bring(store, bad, good)
    assert rounds(store) == [("osu:latency", 0, 1.0)]


def test_a_file_that_cannot_be_read_is_named(store: Store, tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(UsageError, match=str(path)):
            bring(store, path)


def test_an_endless_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="/dev/zero is over 64 MiB"):
        read(Path("/dev/zero"), ImportOptions("x"))


def test_a_store_that_cannot_be_made_is_missing(tmp_path: Path) -> None:
    blocked = table(tmp_path, "a file where the folder should be", "store")
    with pytest.raises(MissingError):
        bring(Store(blocked), table(tmp_path, LATENCY + "1 1.00\n"))


@given(st.binary(max_size=200), st.sampled_from([LATENCY, BW, '{"mpigraft":', "# Benchmarking X"]))
def test_any_bytes_are_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, head: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "junk"
    path.write_bytes(head.encode() + junk)
    try:
        assert read(path, ImportOptions("x")).parsed.measurements
    except UsageError as error:
        assert "junk" in error.message  # noqa: PT017  most inputs are refused, and none may crash


# ------------------------------------------------------------------ the command


def test_the_command_says_what_it_stored(
    tmp_path: Path, wrong: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    words = ["import", str(wrong), "--configuration", "mine"]
    assert run(store, *words) == 0
    said = capsys.readouterr().out
    assert shows(said, "openmpi-allreduce_f_c_z.out", "5 values", "round 1", "layout unknown")
    assert "  osu:allreduce,datatype=MPI_INT\n" in said
    assert shows(said, "openmpi-allreduce_f_c_z.out", "1 value", "wrong data")
    assert shows(said, "mpigraft compare import")
    assert run(store, *words) == 0
    assert shows(capsys.readouterr().out, "stored already")


@pytest.mark.parametrize(
    "words",
    [
        ["import", "--configuration", "x"],
        ["import", str(OLIVIA / "2025-cray-mpich-8.1.32.bibw.txt")],
        ["import", str(OLIVIA / "2025-cray-mpich-8.1.32.bibw.txt"), "--configuration", " "],
        ["import", str(OLIVIA / "2025-cray-mpich-8.1.32.bibw.txt"), "--configuration", "a\x1bb"],
        ["import", str(OLIVIA / "none.txt"), "--configuration", "x"],
    ],
)
def test_a_wrong_command_line_is_exit_2(
    tmp_path: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path / "store", *words) == 2
    assert capsys.readouterr().err
    assert not (tmp_path / "store").exists()


def test_a_finding_of_the_table_has_its_level_and_line(wrong: Path) -> None:
    parsed = read(wrong, ImportOptions("x")).parsed
    assert isinstance(parsed.findings[0], Finding)
    assert parsed.findings[0].level is Level.ERROR
    assert matches(
        parsed.findings[0], "program-failed", lines="line 10", source="openmpi-allreduce_f_c_z.out"
    )

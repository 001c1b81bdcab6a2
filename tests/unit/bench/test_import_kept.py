"""Files as people keep them: several runs in one, packed, encoded, damaged, growing."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest

from mpigraft.bench import ImportOptions, Pattern, collect_sources
from mpigraft.bench.exchange.reading import export_format
from mpigraft.bench.importing import content as content_module
from mpigraft.bench.importing.content import read_content
from mpigraft.bench.importing.pattern import read_date
from mpigraft.bench.importing.reading import ImportSource, ImportTable, read_results
from mpigraft.bench.suites.worlds import read_worlds
from mpigraft.core import budget
from mpigraft.core.errors import UsageError
from mpigraft.store import Store
from tests.builders.commands import run_on_store as run
from tests.builders.messages import shows

TITLE = (
    "# OSU MPI Allreduce Latency Test v7.5\n# Datatype: MPI_INT.\n# Size       Avg Latency(us)\n"
)
IMB = (
    "# Intel(R) MPI Benchmarks 2021.7, MPI-1 part\n# Benchmarking Bcast\n# #processes = {ranks}\n"
    " #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
    "            4         1000         1.00         3.00         {value}\n"
)


def osu(nodes: int, ranks: int, *rows: str) -> str:
    return f"== Nodes = {nodes}\n== Processes = {ranks}\n\n{TITLE}" + "".join(
        f"{row}\n" for row in rows
    )


def tables(path: Path) -> tuple[ImportTable, ...]:
    read = read_results(ImportSource.of(path), ImportOptions(configuration="a"))
    assert isinstance(read, tuple)
    return read


def layouts(path: Path, text: str | bytes) -> list[tuple[str, list[float]]]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return [(t.layout, [m.value for m in t.parsed.measurements]) for t in tables(path)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "job.out"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


# ------------------------------------------------------------------ several layouts in one file


def test_a_file_of_two_layouts_is_two_tables(path: Path) -> None:
    text = osu(2, 256, "4 5.17", "8 x") + osu(16, 2048, "4 6.17", "8 6.18")
    assert layouts(path, text) == [("2x128", [5.17]), ("16x128", [6.17, 6.18])]
    first, second = tables(path)
    assert [t.name for t in (first, second)] == ["job.out:1", "job.out:9"]
    (finding,) = first.parsed.findings
    assert shows(finding.message, "job.out:8", "8 x")
    assert second.parsed.findings == ()


def test_parts_are_what_their_own_files_would_be(path: Path, tmp_path: Path) -> None:
    first, second = osu(2, 256, "4 5.17"), osu(4, 512, "4 6.17")
    store = tmp_path / "store"
    path.write_text(second)
    assert run(store, "import", path, "--configuration", "a") == 0
    path.write_text(first + second)
    assert run(store, "import", path, "--configuration", "a") == 0
    values = Store(store).values(Store(store).campaign().id)
    assert sorted((v.layout, v.value, v.round) for v in values) == [
        ("2x128", 5.17, 0),
        ("4x128", 6.17, 0),
    ]


def test_what_a_later_run_does_not_repeat_still_holds(path: Path) -> None:
    text = osu(2, 256, "4 5.00") + "== Processes = 128\n" + TITLE + "4 6.00\n"
    assert layouts(path, text) == [("2x128", [5.0]), ("2x64", [6.0])]


def test_the_same_layout_again_stays_one_table(path: Path) -> None:
    assert layouts(path, osu(2, 256, "4 5.00") * 2) == [("2x128", [5.0, 5.0])]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (osu(2, 256, "4 5.00") + "== Nodes = 4\n== Processes = 512\n", [("2x128", [5.0])]),
        ("== Nodes = 1\n" + osu(2, 256, "4 5.00"), [("2x128", [5.0])]),
    ],
    ids=["after", "before"],
)
def test_a_run_without_a_table_is_reported(
    path: Path, text: str, found: list[tuple[str, list[float]]]
) -> None:
    assert layouts(path, text) == found
    (table,) = tables(path)
    assert [f.code for f in table.parsed.findings] == ["damaged-lines"]


def test_processes_of_osu_init_cut_before_their_title(path: Path) -> None:
    row = "# OSU MPI Init Test v7.5\nnprocs: {}, min: 10 ms, max: 20 ms, avg: 15 ms\n"
    text = "== Nodes = 2\n" + row.format(4) + row.format(8)
    assert layouts(path, text) == [("2x2", [15.0]), ("2x4", [15.0])]


def test_imb_is_cut_at_its_banner(path: Path) -> None:
    path.write_text(IMB.format(ranks=4, value="2.00") + IMB.format(ranks=8, value="3.00"))
    read = [(t.parsed.header["processes"], t.parsed.measurements[0].value) for t in tables(path)]
    assert read == [("4", 2.0), ("8", 3.0)]
    assert len(layouts(path, IMB.format(ranks=4, value="2.00") * 2)) == 1


BEGIN = '{"mpigraft":"begin","ranks":%d,"buffers":"host"}\n'
VALUE = (
    '{"mpigraft":"value","benchmark":"bw","metric":"bandwidth","unit":"MB/s","size":8,"value":%s}\n'
)
END = '{"mpigraft":"end","values":1}\n'


def test_runs_of_mpigraft_bench_with_other_ranks_are_cut() -> None:
    text = BEGIN % 2 + VALUE % 1.5 + END + BEGIN % 4 + VALUE % 2.5 + END
    worlds, _ = read_worlds("native", text.encode(), source="file")
    assert [(w.line, w.parsed.header["ranks"], w.parsed.findings) for w in worlds] == [
        (1, "2", ()),
        (4, "4", ()),
    ]


def test_ranks_that_each_ran_alone_stay_one_part() -> None:
    for text in ((BEGIN % 1 + VALUE % 1.5 + END) * 2, BEGIN % 2 + BEGIN % 4 + VALUE % 1.5 + END):
        ((world,), _) = read_worlds("native", text.encode(), source="file")
        assert "several-worlds" in [f.code for f in world.parsed.findings]


@pytest.mark.parametrize(
    "record",
    [
        '{"mpigraft":"value","bench\n',
        VALUE % "null",
        '{"mpigraft":"value","benchmark":"bw","metric":"new","unit":"x","size":8,"value":1}\n',
        '{"mpigraft":"later"}\n',
    ],
)
def test_a_damaged_record_of_mpigraft_bench_is_left_out(path: Path, record: str) -> None:
    text = BEGIN % 2 + VALUE % 1.5 + record + VALUE % 2.5 + '{"mpigraft":"end","values":3}\n'
    path.write_text(text)
    (table,) = tables(path)
    assert [m.value for m in table.parsed.measurements] == [1.5, 2.5]
    (damage,) = [f for f in table.parsed.findings if f.code == "damaged-lines"]
    assert "job.out:3: " in damage.message
    assert "values-lost" in [f.code for f in table.parsed.findings]


def test_mpi4py_programs_are_known_by_their_titles(path: Path) -> None:
    text = (
        "== Nodes = 1\n== Processes = 2\n# MPI Bandwidth Test\n# Size [B]  Latency [us]\n1 2.50\n"
    )
    assert layouts(path, text) == [("1x2", [2.5])]
    assert tables(path)[0].benchmarks == ("osu:bw,binding=mpi4py",)
    path.write_text(text + "9999999999999999999999 1.00\n")
    (table,) = tables(path)
    assert [f.code for f in table.parsed.findings] == ["damaged-lines"]


# ------------------------------------------------------------------ packed and encoded


PLAIN = osu(2, 256, "4 5.17", "8 5.18").encode()


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(PLAIN),
        gzip.compress(PLAIN[:80]) + gzip.compress(PLAIN[80:]),
        PLAIN.replace(b"\n", b"\r\n"),
        b"\xef\xbb\xbf" + PLAIN,
        PLAIN.decode().encode("utf-16"),
        b"\xfe\xff" + PLAIN.decode().encode("utf-16-be"),
        gzip.compress(PLAIN.decode().encode("utf-16")),
    ],
    ids=["gzip", "two members", "crlf", "bom", "utf-16", "utf-16-be", "gzip of utf-16"],
)
def test_a_table_is_the_same_however_it_is_kept(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    (table,) = tables(path)
    assert table.data == PLAIN
    assert table.layout == "2x128"


def test_bytes_of_no_encoding_cost_their_line_alone(path: Path) -> None:
    assert layouts(path, b"caf\xe9 \xff\n" + PLAIN) == [("2x128", [5.17, 5.18])]


def archive(form: int) -> bytes:
    with io.BytesIO() as file:
        with tarfile.open(fileobj=file, mode="w", format=form) as tar:
            member = tarfile.TarInfo("ucx/osu_allreduce.dat")
            member.size = len(PLAIN)
            tar.addfile(member, io.BytesIO(PLAIN))
        return file.getvalue()


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (gzip.compress(PLAIN)[:-9], "import-unreadable"),
        (b"\x1f\x8b\x08junk", "import-unreadable"),
        (gzip.compress(b"0" * (content_module.MAX_FILE + 1)), "import-too-large"),
        (gzip.compress(b"mpigraft_export,campaign\r\n1,a\r\n"), "import-packed-export"),
        (gzip.compress(archive(tarfile.GNU_FORMAT)), "import-archive"),
        (archive(tarfile.PAX_FORMAT), "import-archive"),
        (b"PK\x03\x04" + PLAIN, "import-archive"),
    ],
    ids=["cut", "damaged", "bomb", "export", "tar.gz", "tar", "zip"],
)
def test_packed_files_that_cannot_be_taken(path: Path, data: bytes, code: str) -> None:
    path.write_bytes(data)
    with pytest.raises(UsageError) as caught:
        read_content(path, "job.out")
    assert caught.value.code == code


def test_a_file_that_grows_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_bytes(PLAIN)
    form = export_format

    def growing(head: bytes) -> str:
        with path.open("ab") as file:
            file.write(b"16 5.20\n")
        return form(head)

    monkeypatch.setattr(content_module, "export_format", growing)
    with pytest.raises(UsageError) as caught:
        read_content(path, "job.out")
    assert caught.value.code == "import-growing"


def test_a_pipe_without_a_writer_is_empty(path: Path) -> None:
    os.mkfifo(path)
    assert read_content(path, "job.out") == b""


def test_a_folder_that_may_be_listed_alone_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "loop").symlink_to("..")
    (tmp_path / "tree" / "self").symlink_to("self")
    for name in ("a.dat", "secret.dat"):
        (tmp_path / "tree" / name).write_bytes(PLAIN)
    is_file = Path.is_file

    def forbidden(path: Path) -> bool:
        if path.name == "secret.dat":
            raise PermissionError(13, "Permission denied", str(path))
        return is_file(path)

    monkeypatch.setattr(Path, "is_file", forbidden)
    code = run(tmp_path / "store", "import", tmp_path / "tree", "--configuration", "a")
    out, err = capsys.readouterr()
    assert code == 2
    assert shows(out, "a.dat", "2 values")
    assert shows(err, "secret.dat", "Permission denied")


# ------------------------------------------------------------------ names


def test_mpi_and_transport_make_the_configuration(path: Path, tmp_path: Path) -> None:
    pattern = Pattern.parse("{mpi}_{transport}_{compiler}.dat")
    file = tmp_path / "openmpi@5.0.7_ucx_gcc.dat.gz"
    file.write_bytes(gzip.compress(PLAIN))
    fields = pattern.fields_of(file)
    assert fields is not None
    read = read_results(ImportSource.of(file, None, fields), ImportOptions())
    assert isinstance(read, tuple)
    assert [t.configuration for t in read] == ["openmpi@5.0.7/ucx+compiler=gcc"]
    one = Pattern.parse("{configuration}_{transport}_*").fields_of(file)
    assert one is not None
    with pytest.raises(UsageError, match="its name has both"):
        read_results(ImportSource.of(file, None, one), ImportOptions())


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2022-03-07T16:14:00Z", "2022-03-07T16:14:00.000+00:00"),
        ("2022-03-07T16:14:00+0200", "2022-03-07T14:14:00.000+00:00"),
        ("2022-03-07T161400", "2022-03-07T16:14:00.000+00:00"),
        ("2022-03-07-161400", "2022-03-07T16:14:00.000+00:00"),
        ("2022_03_07", "2022-03-07T00:00:00.000+00:00"),
        ("1646669640", "2022-03-07T16:14:00.000+00:00"),
    ],
)
def test_usual_dates_are_read(path: Path, text: str, moment: str) -> None:
    assert read_date(path, text) == moment


@pytest.mark.parametrize(
    "text", ["07-03-2022", "03-07-2022", "2022-13-01", "9999999999", "T+01:00"]
)
def test_dates_that_may_mean_two_days_are_refused(path: Path, text: str) -> None:
    with pytest.raises(UsageError):
        read_date(path, text)


# ------------------------------------------------------------------ layouts known in part


@pytest.mark.parametrize(
    ("head", "name", "layout"),
    [
        ("== Processes = 256\n", "a.out", "256ranks"),
        ("== Nodes = 2\n", "a.out", "2nodes"),
        ("== Nodes = 3\n== Processes = 8\n", "a.out", "3nodes-8ranks"),
        ("== Nodes = 2\n== Processes = 8\n", "a.out", "2x4"),
        ("", "lat_8r.out", "8ranks"),
        ("", "lat.out", "unknown"),
    ],
)
def test_what_is_known_of_a_layout_is_in_its_key(
    tmp_path: Path, head: str, name: str, layout: str
) -> None:
    path = tmp_path / name
    path.write_text(head + TITLE + "4 5.00\n")
    fields = Pattern.parse("lat_{ranks}r.out").fields_of(path)
    source = ImportSource.of(path, fields=fields)
    (table,) = read_results(source, ImportOptions(configuration="a"))  # type: ignore[misc]
    assert table.layout == layout


def test_runs_of_other_numbers_of_ranks_are_no_rounds_of_one(store: Path, tmp_path: Path) -> None:
    for ranks, value in ((2, "0.52"), (4, "3.80")):
        (tmp_path / f"np{ranks}.out").write_text(IMB.format(ranks=ranks, value=value))
    words = ("--configuration", "a", "--machine", "m")
    assert run(store, "import", tmp_path / "np4.out", tmp_path / "np2.out", *words) == 0
    values = Store(store).values(Store(store).campaign().id)
    assert [(v.layout, v.value, v.round) for v in values] == [
        ("4ranks", 3.8, 0),
        ("2ranks", 0.52, 0),
    ]
    # what is known by now is no second round of it
    more = ("--nodes", 1, "--ranks-per-node", 4)
    assert run(store, "import", tmp_path / "np4.out", *words) == 0
    assert run(store, "import", tmp_path / "np2.out", *words, *more) == 2  # they disagree
    assert len(Store(store).values(Store(store).campaign().id)) == 2


def test_a_link_to_a_folder_elsewhere_is_followed_once(tmp_path: Path) -> None:
    """As results on another file system are linked into one place."""
    folder, scratch = tmp_path / "r", tmp_path / "s"
    for place, name in ((folder / "own", "a.txt"), (scratch / "x", "b.txt")):
        place.mkdir(parents=True)
        (place / name).write_bytes(PLAIN)
    for name, target in (
        ("night", scratch), ("same", scratch / "x"), ("inside", folder / "own"),
        ("up", tmp_path), ("self", folder),
    ):  # fmt: skip
        (folder / name).symlink_to(target)
    (scratch / "x" / "back").symlink_to(folder)
    (scratch / "x" / "around").symlink_to(scratch)
    found, refused = collect_sources([folder], None)
    assert [source.name for source in found] == ["night/x/b.txt", "own/a.txt"]
    assert refused == []


def test_endless_gzip_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "osu.gz"
    path.write_bytes(gzip.compress(b"") * 9 + gzip.compress(PLAIN))
    assert read_content(path, "osu.gz") == PLAIN
    monkeypatch.setattr(budget, "ITEMS", 5)
    with pytest.raises(UsageError) as error:
        read_content(path, "osu.gz")
    assert error.value.code == "file-over-budget"

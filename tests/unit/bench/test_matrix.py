"""Matrix Market files, and how a matrix or a lattice is divided among ranks."""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.bench.matrix import partition
from mpigraft.bench.matrix.file import Problem, matrix_name
from mpigraft.bench.matrix.market import SparseMatrix, read_market
from mpigraft.core import budget
from mpigraft.core.errors import MissingError, UsageError

BANNER = "%%MatrixMarket matrix coordinate real general\n"
SMALL = f"{BANNER}% a comment\n3 3 5\n1 1 2.0\n2 2 3e0\n3 3 4\n1 3 -1\n1 3 -0.5\n"


def written(folder: Path, text: str) -> Path:
    path = folder / "small.mtx"
    path.write_text(text)
    return path


def dense(matrix: SparseMatrix) -> np.ndarray:
    made = np.zeros((matrix.rows, matrix.rows))
    for row in range(matrix.rows):
        at = slice(matrix.start[row], matrix.start[row + 1])
        made[row, matrix.column[at]] = matrix.value[at]
    return made


def test_entries_that_stand_twice_are_added_up(tmp_path: Path) -> None:
    matrix = read_market(written(tmp_path, SMALL))
    assert dense(matrix).tolist() == [[2, 0, -1.5], [0, 3, 0], [0, 0, 4]]


def test_a_gzipped_file_and_numbers_of_fortran(tmp_path: Path) -> None:
    path = tmp_path / "odd name.mtx.gz"
    path.write_bytes(gzip.compress(SMALL.replace("2.0", "0.2D+01").encode()))
    assert dense(read_market(path)).tolist() == [[2, 0, -1.5], [0, 3, 0], [0, 0, 4]]
    assert matrix_name(str(path)).startswith("odd-name-")
    for damaged in (path.read_bytes()[:-9], b"\x1f\x8b" + b"something"):
        path.write_bytes(damaged)
        with pytest.raises(UsageError, match="as a gzipped file does, and is damaged"):
            read_market(path)


def test_a_gzipped_file_of_endless_members_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.mtx.gz"
    path.write_bytes(gzip.compress(b"") * 9 + gzip.compress(SMALL.encode()))
    assert read_market(path)
    monkeypatch.setattr(budget, "ITEMS", 5)
    with pytest.raises(UsageError) as error:
        read_market(path)
    assert error.value.code == "file-over-budget"


def test_a_gzipped_file_that_unpacks_to_much_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.mtx.gz"
    path.write_bytes(gzip.compress(bytes(1 << 24)))
    monkeypatch.setattr(budget, "BYTES", 1 << 20)
    with pytest.raises(UsageError, match=f"{path} has more than .* bytes when it is unpacked"):
        read_market(path)


@pytest.mark.parametrize(("shape", "mirrored"), [("symmetric", 7), ("skew-symmetric", -7)])
def test_half_of_a_matrix_is_mirrored(tmp_path: Path, shape: str, mirrored: int) -> None:
    text = f"%%MatrixMarket matrix coordinate integer {shape}\n2 2 3\n1 1 1\n2 2 1\n2 1 7\n"
    assert dense(read_market(written(tmp_path, text))).tolist() == [[1, mirrored], [7, 1]]


def test_a_pattern_has_ones(tmp_path: Path) -> None:
    text = "%%MatrixMarket MATRIX Coordinate pattern general\n2 2 3\n1 1\n2 2\n1 2\n"
    assert dense(read_market(written(tmp_path, text))).tolist() == [[1, 1], [0, 1]]


@given(st.integers(1, 8), st.lists(st.tuples(st.integers(0, 63), st.floats(-9, 9)), max_size=20))
def test_any_matrix_is_read_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, rows: int, entries: list[tuple[int, float]]
) -> None:
    places = [(n % rows, n // 8 % rows, value) for n, value in entries]
    places += [(n, n, 1.0) for n in range(rows)]
    expected = np.zeros((rows, rows))
    for row, column, value in places:
        expected[row, column] += value
    lines = "".join(f"{row + 1} {column + 1} {value!r}\n" for row, column, value in places)
    path = written(tmp_path_factory.mktemp("m"), f"{BANNER}{rows} {rows} {len(places)}\n{lines}")
    assert np.allclose(dense(read_market(path)), expected)


@pytest.mark.parametrize(("text", "problem"), [
    ("", "first line"),
    ("1 1 1\n", "first line"),
    (SMALL.replace("coordinate", "array"), "not coordinate"),
    (SMALL.replace("real", "complex"), "not coordinate"),
    (SMALL.replace("3 3 5", "3 4 5"), "square"),
    (SMALL.replace("3 3 5", "3 3 6"), "announces 6"),
    (SMALL.replace("3 3 4", "3 4 4"), "outside"),
    (SMALL.replace("1 1 2.0", "0 1 2.0"), "outside"),
    (SMALL.replace("1 1 2.0", "1.5 1 2.0"), "outside"),
    (SMALL.replace("1 1 2.0", "1 1 nan"), "not finite"),
    (SMALL.replace("1 1 2.0", "1 1 x"), "could not convert"),
    (SMALL.replace("3 3 4", "3 2 4"), "row 3 has nothing on the diagonal"),
    (BANNER, "no line of rows"),
])  # fmt: skip
def test_what_is_no_matrix_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        read_market(written(tmp_path, text))


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_with_words(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("m") / "any.mtx"
    path.write_bytes(BANNER.encode() + data)
    with contextlib.suppress(UsageError):
        read_market(path)


@given(st.lists(st.integers(1, 4), min_size=4, max_size=4), st.integers(1, 9))
def test_every_site_has_an_owner_and_links_go_both_ways(extents: list[int], ranks: int) -> None:
    start, neighbours = graph = partition.lattice_graph(extents)
    sites = int(np.prod(extents))
    pairs = {(s, int(n)) for s in range(sites) for n in neighbours[start[s] : start[s + 1]]}
    assert all((b, a) in pairs and a != b for a, b in pairs)
    assert len(pairs) == len(neighbours)
    for method in partition.METHODS:
        if method == "metis" and not partition.has_metis():
            continue
        owners = partition.divide_graph(graph, ranks, method)
        assert len(owners) == sites
        assert set(owners.tolist()) <= set(range(ranks))


def cut(graph: partition.Graph, owners: Sequence[int]) -> int:
    start, neighbours = graph
    links = ((s, n) for s in range(len(owners)) for n in neighbours[start[s] : start[s + 1]])
    return sum(owners[s] != owners[n] for s, n in links)


@pytest.mark.skipif(not partition.has_metis(), reason="pymetis has no wheel for this machine")
def test_metis_cuts_fewer_links_than_slices() -> None:
    graph = partition.lattice_graph((8, 8, 4, 4))
    slices = partition.divide_graph(graph, 8, "blocks").tolist()
    owners = partition.divide_graph(graph, 8, "metis").tolist()
    assert cut(graph, owners) < cut(graph, slices)
    sizes = np.bincount(owners, minlength=8)
    assert sizes.max() <= 1.2 * sizes.mean()


def test_without_metis_a_lattice_is_divided_into_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "has_metis", lambda: False)
    assert partition.usual_method() == "blocks"
    with pytest.raises(MissingError, match="pymetis"):
        partition.divide_graph(partition.lattice_graph((4, 4, 4, 4)), 2, "metis")


def test_a_file_is_named_by_what_it_is_made_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "a home"))
    path = written(tmp_path, SMALL)
    problem = Problem("blocks", 2, matrix=str(path))
    problem.write()
    first = problem.path.read_bytes()
    assert len(first) % 8 == 0
    assert matrix_name(str(path)).startswith("small-")
    other = path.with_name("other.mtx")
    other.write_text(SMALL.replace("4", "5"))
    assert Problem("blocks", 2, matrix=str(other)).path != problem.path
    assert Problem("blocks", 3, matrix=str(path)).path != problem.path
    same = {Problem("metis", 2, size=size).path for size in ("8", "8x8x8x8", "")}
    assert len(same) == 1
    assert Problem("metis", 2, local="4").path != Problem("metis", 2, size="4").path


def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "file"))
    problem = Problem("blocks", 2, size="2x2x2x2")
    with pytest.raises(MissingError, match="cannot write"):
        problem.write()

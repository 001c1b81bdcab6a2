"""Sparse matrices of Matrix Market files (coordinate format, real numbers), gzipped or not."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from mpigraft.core.arrays import Floats, Ints, NDArray, np
from mpigraft.core.budget import Budget
from mpigraft.core.errors import UsageError
from mpigraft.core.gunzip import GZIP, MEMBER_BYTES, gunzip, pieces

KINDS = ("real", "integer", "pattern")  # a pattern has ones
SHAPES = ("general", "symmetric", "skew-symmetric")
MOST_ROWS = 2**31 - 1  # columns have 32 bits


@dataclass(frozen=True, eq=False, slots=True)
class SparseMatrix:
    """A square matrix in compressed rows; columns ascend within a row."""

    start: Ints  # one more than rows
    column: NDArray[np.int32]
    value: Floats

    @property
    def rows(self) -> int:
        return len(self.start) - 1


def read_market(path: Path) -> SparseMatrix:
    """Read a matrix; duplicate entries are added up. Raises UsageError if it is no matrix, is not
    square, or has a row without its diagonal, for which there is no ILU(0)."""
    data = _content(path)
    banner, _, rest = data.partition(b"\n")
    words = banner.decode("ascii", "replace").lower().split()
    if len(words) != 5 or words[:2] != ["%%matrixmarket", "matrix"]:
        _refuse(path, "its first line is not that of a Matrix Market file")
    if words[2] != "coordinate" or words[3] not in KINDS or words[4] not in SHAPES:
        known = f"coordinate {'|'.join(KINDS)} {'|'.join(SHAPES)}"
        _refuse(path, f"it is {' '.join(words[2:])[:60]!r}, not {known}")
    lines = (line for line in rest.split(b"\n") if not line.lstrip().startswith(b"%"))
    numbers = _numbers(path, b"\n".join(lines))
    return _compressed(path, numbers, pattern=words[3] == "pattern", shape=words[4])


def _content(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return b"".join(_pieces(path, data)) if data.startswith(GZIP) else data
    except (EOFError, zlib.error) as error:
        _refuse(path, f"it begins as a gzipped file does, and is damaged: {error}")
    except OSError as error:
        raise UsageError.of("file-unusable", path=path, reason=error.strerror) from error


def _pieces(path: Path, data: bytes) -> Iterator[bytes]:
    budget = Budget(path, len(data), MEMBER_BYTES)
    for piece in gunzip(pieces(data), budget):
        budget.take(unpacked=len(piece))
        yield piece


def _numbers(path: Path, text: bytes) -> Floats:
    """Return all numbers of the file; Fortran writes 1.0D+00."""
    try:
        return np.array(text.split(), dtype=np.float64)
    except ValueError:
        fortran = text.replace(b"D", b"E").replace(b"d", b"e")
    try:
        return np.array(fortran.split(), dtype=np.float64)
    except ValueError as error:
        _refuse(path, str(error)[:80])


def _refuse(path: Path, problem: str) -> NoReturn:
    raise UsageError.of("matrix-invalid", path=path, problem=problem)


def _compressed(path: Path, numbers: Floats, *, pattern: bool, shape: str) -> SparseMatrix:
    width = 2 if pattern else 3
    if len(numbers) < 3 or not np.isfinite(numbers).all():
        _refuse(path, "it has no line of rows, columns and entries, or a number is not finite")
    rows, columns, entries = numbers[:3]
    if rows != columns or not 1 <= rows <= MOST_ROWS or rows % 1:
        _refuse(path, f"it has {rows:g} rows and {columns:g} columns; a square matrix is needed")
    if len(numbers) - 3 != width * entries:
        _refuse(path, f"it announces {entries:g} entries, and has {(len(numbers) - 3) / width:g}")
    table = numbers[3:].reshape(-1, width)
    places = table[:, :2]
    if ((places < 1) | (places > rows) | (places % 1 != 0)).any():
        _refuse(path, f"an entry is outside of rows and columns 1 to {rows:g}")
    at = places.astype(np.int64) - 1
    values = np.ones(len(at)) if pattern else table[:, 2]
    if shape != "general":
        off = at[:, 0] != at[:, 1]
        mirrored = -values[off] if shape == "skew-symmetric" else values[off]
        at = np.concatenate([at, at[off][:, ::-1]])
        values = np.concatenate([values, mirrored])
    size = int(rows)
    keys, inverse = np.unique(at[:, 0] * size + at[:, 1], return_inverse=True)
    value: Floats = np.zeros(len(keys))
    np.add.at(value, inverse, values)
    row, column = keys // size, keys % size
    if len(diagonal := np.setdiff1d(np.arange(size), row[row == column])):
        _refuse(path, f"row {diagonal[0] + 1} has nothing on the diagonal, so there is no ILU(0)")
    start = np.searchsorted(row, np.arange(size + 1)).astype(np.int64)
    return SparseMatrix(start, column.astype(np.int32), value)

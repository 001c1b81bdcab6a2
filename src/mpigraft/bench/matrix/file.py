"""The file of `mpigraft-mini --partition`: owners of sites, and a matrix that is no lattice.

`native/mini/problem.c` says what it has; numbers are in this machine's order.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from mpigraft.bench.matrix.market import SparseMatrix, read_market
from mpigraft.bench.matrix.partition import (
    DIMENSIONS,
    METHODS,
    divide_graph,
    lattice_extents,
    lattice_graph,
    matrix_graph,
)
from mpigraft.core.arrays import NDArray, np
from mpigraft.core.cache import file_digest, folders
from mpigraft.core.errors import MissingError
from mpigraft.core.serialize import digest
from mpigraft.core.write import make_folder, write_whole

MARK = 0x317472617067706D  # mpgpart1
HEADER_WORDS = 16


@dataclass(frozen=True, slots=True)
class Problem:
    """A matrix that is divided among ranks."""

    method: str  # one of METHODS
    ranks: int
    size: str = ""  # of a lattice: 8x8x8x8
    local: str = ""
    matrix: str = ""  # path of a Matrix Market file

    @property
    def path(self) -> Path:
        """Where its file is, or shall be: named by what it is made from."""
        made_from = file_digest(Path(self.matrix)) if self.matrix else self._extents
        key = digest([self.method, self.ranks, made_from])
        return folders().data / "partitions" / f"{key[:32]}.part"

    @property
    def _extents(self) -> tuple[int, ...]:
        return lattice_extents(self.size, self.local, self.ranks)

    def write(self) -> None:
        """Write the file, unless it is there. Raises UsageError for a file that is no matrix,
        MissingError where METIS is not installed or nothing can be written."""
        if self.path.is_file():
            return
        matrix = read_market(Path(self.matrix)) if self.matrix else None
        extents = () if matrix else self._extents
        graph = matrix_graph(matrix) if matrix else lattice_graph(extents)
        owners = divide_graph(graph, self.ranks, self.method)
        data = encode(self, owners, extents, matrix)
        try:
            make_folder(self.path.parent)
            write_whole(self.path, data)
        except OSError as error:
            reason = error.strerror or error
            raise MissingError.of("partition-unwritable", path=self.path, reason=reason) from error


def matrix_name(path: str) -> str:
    """Name a matrix in results: its file's name, and what separates it from others of that name."""
    file = Path(path)
    whole = file.with_suffix("") if file.suffix == ".gz" else file
    stem = re.sub(r"[^A-Za-z0-9._]+", "-", whole.stem)[:40]
    return f"{stem}-{file_digest(file)[:8]}"


def encode(
    problem: Problem,
    owners: NDArray[np.int32],
    extents: tuple[int, ...],
    matrix: SparseMatrix | None,
) -> bytes:
    header = np.zeros(HEADER_WORDS, dtype=np.int64)
    entries = len(matrix.column) if matrix else 0
    header[:5] = (MARK, len(owners), problem.ranks, METHODS.index(problem.method), entries)
    header[5 : 5 + DIMENSIONS] = extents or (0,) * DIMENSIONS
    parts = [header.tobytes(), _filled_up(owners.astype(np.int32).tobytes())]
    if matrix:
        parts += [matrix.start.tobytes(), _filled_up(matrix.column.tobytes())]
        parts.append(matrix.value.tobytes())
    return b"".join(parts)


def _filled_up(data: bytes) -> bytes:
    """To whole words of 64 bits."""
    return data + bytes(-len(data) % 8)

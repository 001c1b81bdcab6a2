"""Who owns which site: METIS, where it is installed, or blocks of equal size."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence

from mpigraft.bench.matrix.market import SparseMatrix
from mpigraft.core.arrays import Ints, NDArray, np
from mpigraft.core.errors import MissingError

METHODS = ("blocks", "metis")  # as the program numbers them
DIMENSIONS = 4


def has_metis() -> bool:
    return importlib.util.find_spec("pymetis") is not None


def usual_method() -> str:
    """METIS, unless it is not installed; the name of every result says which it was."""
    return "metis" if has_metis() else "blocks"


def divide_ranks(ranks: int, extents: Sequence[int]) -> list[int]:
    """Divide ranks among dimensions as mpigraft-mini does: each prime factor, the largest first,
    goes where most is left for a rank."""
    factors, divisor = [], 2
    while ranks > 1:
        while ranks % divisor == 0:
            factors.append(divisor)
            ranks //= divisor
        divisor += 1
    parts = [1] * len(extents)
    for factor in reversed(factors):
        widest = max(range(len(extents)), key=lambda d: (extents[d] / parts[d], -d))
        parts[widest] *= factor
    return parts


def lattice_extents(size: str, local: str, ranks: int) -> tuple[int, ...]:
    """Give the extents of a lattice as the options of the benchmark have it."""
    numbers = [int(word) for word in (local or size or "8").split("x")]
    extents = numbers * DIMENSIONS if len(numbers) == 1 else numbers
    if local:
        parts = divide_ranks(ranks, extents)
        extents = [extent * part for extent, part in zip(extents, parts, strict=True)]
    return tuple(extents)


Graph = tuple[Ints, Ints]  # where each site's neighbours begin, and these


def lattice_graph(extents: Sequence[int]) -> Graph:
    """Link each site of a periodic lattice with its neighbours; the first extent runs fastest."""
    sites = np.arange(int(np.prod(extents)))
    pairs, stride = [], 1
    for extent in extents:
        place = sites // stride % extent
        pairs += [
            np.stack([sites, sites + ((place + step) % extent - place) * stride])
            for step in (1, extent - 1)
        ]
        stride *= extent
    return _graph(len(sites), np.concatenate(pairs, axis=1))


def matrix_graph(matrix: SparseMatrix) -> Graph:
    """Link two rows if one takes the other's value."""
    row = np.repeat(np.arange(matrix.rows), np.diff(matrix.start))
    pairs = np.stack([row, matrix.column.astype(np.int64)])
    return _graph(matrix.rows, np.concatenate([pairs, pairs[::-1]], axis=1))


def _graph(sites: int, pairs: Ints) -> Graph:
    """Return each link once in each direction, none to itself."""
    pairs = pairs[:, pairs[0] != pairs[1]]
    keys = np.unique(pairs[0] * sites + pairs[1])
    return np.searchsorted(keys // sites, np.arange(sites + 1)), keys % sites


def divide_graph(graph: Graph, ranks: int, method: str) -> NDArray[np.int32]:
    """Give each site an owner. Raises MissingError where METIS is named and not installed."""
    start, neighbours = graph
    sites = len(start) - 1
    if method == "blocks" or ranks == 1 or sites < ranks:
        return (np.arange(sites) * ranks // max(sites, ranks)).astype(np.int32)
    if not has_metis():
        raise MissingError.of("metis-missing")
    import pymetis

    links = pymetis.CSRAdjacency(start.tolist(), neighbours.tolist())
    _, owners = pymetis.part_graph(ranks, links)
    return np.asarray(owners, dtype=np.int32)

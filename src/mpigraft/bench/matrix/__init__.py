"""The matrix of `mini:dirac`, and which rank owns what of it.

Takes extents of a lattice or a Matrix Market file, and a number of ranks; makes the file that the
program reads. Writes it below the data folder.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.bench.matrix.file import Problem as Problem
    from mpigraft.bench.matrix.file import matrix_name as matrix_name
    from mpigraft.bench.matrix.market import read_market as read_market
    from mpigraft.bench.matrix.partition import has_metis as has_metis
    from mpigraft.bench.matrix.partition import usual_method as usual_method
else:
    __getattr__ = exports(__name__)

"""An MPI's own variables, by MPI_T.

Takes an MPI and environment rows; makes its variables with values and where they came from. Starts
one process of the MPI.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.tuning.mpi_t import Answer as Answer
    from mpigraft.tuning.mpi_t import VariableEntry as VariableEntry
    from mpigraft.tuning.mpi_t import answer_variables as answer_variables
    from mpigraft.tuning.mpi_t import variable_asker as variable_asker
    from mpigraft.tuning.mpi_t import variable_rows as variable_rows
    from mpigraft.tuning.records import Value as Value
    from mpigraft.tuning.records import Variable as Variable
else:
    __getattr__ = exports(__name__)

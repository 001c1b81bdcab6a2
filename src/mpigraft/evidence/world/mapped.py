"""Which of the files that a rank has mapped is the MPI."""

from __future__ import annotations

import re

# The library itself, of any family: libmpi.so.40, libmpi_abi.so.1, libmpich.so.12,
# libmpi_gnu_123.so.12; not libmpi_mpifh, libmpi_gtl_cuda, libmpicxx, libmpifort.
LIBMPI = re.compile(
    r"lib(?:mpi|mpich|mpi_abi|mpi_ilp64|mpi_(?:cray|gnu|intel|nvidia|amd|aocc)(?:_\d+)?)"
    r"\.so(?:\.[\d.]+)?"
)

"""Transform a field of random numbers forth and back, and compare it with numpy's transform."""

import sys

import numpy as np
from mpi4py import MPI  # type: ignore[import-not-found]
from mpi4py_fft import PFFT, newDistArray  # type: ignore[import-not-found]

SHAPE, STEPS = (48, 40, 36), 40

comm = MPI.COMM_WORLD
fft = PFFT(comm, SHAPE, dtype=np.complex128)
rng = np.random.default_rng(7)
whole = rng.standard_normal(SHAPE) + 1j * rng.standard_normal(SHAPE)
field, spectrum, back = (newDistArray(fft, forward) for forward in (False, True, False))
field[...] = whole[field.local_slice()]
began = MPI.Wtime()
for _ in range(STEPS):
    fft.forward(field, spectrum)
    fft.backward(spectrum, back)
elapsed = MPI.Wtime() - began
due = np.fft.fftn(whole)[spectrum.local_slice()] / whole.size
error = float(max(abs(spectrum - due).max(), abs(back - field).max()))
error = comm.allreduce(error, MPI.MAX)
if comm.rank == 0:
    sys.stdout.write(f"error {error:.1e}, {STEPS} transforms in {elapsed:.3f} s\n")
sys.exit(error > 1e-12)

"""Launchers: mpirun, srun, PALS and their kin, and which of them can start an MPI."""

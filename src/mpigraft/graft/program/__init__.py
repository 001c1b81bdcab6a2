"""A program of this machine that starts where it lies, on an MPI where that is installed."""

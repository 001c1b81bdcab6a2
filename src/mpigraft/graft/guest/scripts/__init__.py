"""Scripts of a guest or of this machine, read for the launchers of MPI that they start."""

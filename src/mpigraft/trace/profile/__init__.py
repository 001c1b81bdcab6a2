"""Where the MPI time of one run went."""

"""The variables of an MPI, as it lists them itself."""

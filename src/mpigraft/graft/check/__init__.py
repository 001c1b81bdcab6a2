"""Check whether a host MPI fits under a guest: parts, each with its evidence."""

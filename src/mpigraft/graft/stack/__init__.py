"""A software stack as a guest: its programs that need MPI, and the overrides that they search."""

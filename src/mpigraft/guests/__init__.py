"""How a guest is looked at: its programs, its own MPI, an engine's image as a file."""

"""Whether a host MPI fits under a guest: one verdict, made of parts with their evidence."""

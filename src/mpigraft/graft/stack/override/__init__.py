"""What of a host MPI goes into the override of a stack, and what takes the place of one."""

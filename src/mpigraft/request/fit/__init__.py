"""Every host MPI against one guest, and what would fit instead."""

"""Ways to find an MPI and the hardware of this machine; each is one module."""

"""Which MPI, transport, guest and layout a request means on this machine."""

"""mpigraft: graft this machine's own MPI onto software built elsewhere, and prove how it runs."""

__version__ = "0.1.0"

"""What a host MPI's libraries promise: names, symbols, versions, files they open."""

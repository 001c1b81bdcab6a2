"""What every room may use: values, errors, processes, environment, cache, locks, JSON.

Each module and package here is a room of its own. They know nothing of MPI beyond the words of
the model.
"""

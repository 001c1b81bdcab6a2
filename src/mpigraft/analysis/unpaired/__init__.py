"""Compare campaigns of which no round was measured beside one of the other."""

"""Reports of other profilers, each read into a profile."""

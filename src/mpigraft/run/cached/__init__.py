"""The second start of a job: what the first decided, read back."""

"""Slurm, PBS and Flux: scripts, submission, states of jobs."""

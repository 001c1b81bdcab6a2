"""Benchmark suites: how each is started and how its output is read."""

"""Graft folders: what a plan copies, made once on a disk that all nodes see."""

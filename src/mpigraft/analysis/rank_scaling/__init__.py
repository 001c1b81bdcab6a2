"""Fit how a metric grows with ranks or nodes."""

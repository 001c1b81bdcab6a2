"""Numbered generations of an override: made, switched on and off by one rename, and removed."""

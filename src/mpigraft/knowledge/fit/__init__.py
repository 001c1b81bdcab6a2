"""Which PMI, run-time library and fabric belong together, and how words of launchers read."""

"""Compare campaigns whose rounds were not measured side by side."""

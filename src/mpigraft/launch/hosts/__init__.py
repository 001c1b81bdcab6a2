"""The nodes that launches may use."""

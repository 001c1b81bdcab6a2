"""Container engines: how each one starts a rank inside a guest."""

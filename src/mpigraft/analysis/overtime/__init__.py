"""Compare campaigns that were measured at different times."""

"""The matrix of `mini:dirac`, and which rank owns what of it."""

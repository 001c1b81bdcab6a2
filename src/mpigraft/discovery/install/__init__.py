"""MPIs as wheels, each in a prefix of its own, and what programs of theirs need besides."""

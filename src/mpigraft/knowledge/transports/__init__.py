"""Named ways to move bytes, which row of a name is meant here, and what failed launches print."""

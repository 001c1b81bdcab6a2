"""Programs and libraries as files: ELF, the loader's search, and file systems in images.

Knows nothing of MPI. Rooms inside: `architecture`, `elf`, `loader`, `image`.
"""

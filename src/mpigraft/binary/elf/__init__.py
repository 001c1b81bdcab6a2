"""ELF files as values."""

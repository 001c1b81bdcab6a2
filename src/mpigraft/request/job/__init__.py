"""What one `run` means: its command, its guest, its layout."""

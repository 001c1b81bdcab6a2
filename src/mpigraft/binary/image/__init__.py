"""A guest's file system, opened for reading: a folder, SIF, squashfs, OCI or docker archive."""

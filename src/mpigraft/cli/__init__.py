"""The command `mpigraft`: one module for each command, which parses, calls and prints."""

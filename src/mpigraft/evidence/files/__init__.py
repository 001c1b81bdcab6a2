"""The files behind a launch: programs, libraries, configuration files."""

"""Files that MPIs open while they run: plugins, and configuration files."""

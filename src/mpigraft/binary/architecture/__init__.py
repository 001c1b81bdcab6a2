"""What loaders know of a machine: the usual loader of each architecture, the levels of its CPUs."""

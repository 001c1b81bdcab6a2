"""What brings an MPI or its launcher to programs of a stack without an injection of ours: modules
of Lmod and of environment modules, and Spack's externals."""

"""Records of applications: what each rank called of MPI, repeats folded, the file of them all, its
phases and its all-to-all exchanges."""

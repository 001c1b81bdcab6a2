// The C++ bindings that MPI-3 removed: a library of their own (libmpi_cxx) in Open MPI 4, gone in 5.
#include <cstring>
#include <iostream>
#include <mpi.h>

int main(int argc, char **argv) {
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length, sum = 0;
    MPI::Init(argc, argv);
    int rank = MPI::COMM_WORLD.Get_rank(), size = MPI::COMM_WORLD.Get_size();
    MPI::COMM_WORLD.Allreduce(&rank, &sum, 1, MPI::INT, MPI::SUM);
    if (sum != size * (size - 1) / 2) MPI::COMM_WORLD.Abort(9);
    MPI_Get_library_version(library, &length);
    library[std::strcspn(library, "\n")] = 0;
    std::cout << "RANK " << rank << " of SIZE " << size << " LIBRARY " << library << std::endl;
    MPI::Finalize();
    return 0;
}

/* With an argument, the first rank starts one more of this program by MPI_Comm_spawn. */
#include "report.h"

int main(int argc, char **argv)
{
    MPI_Comm parent, child;
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    print_world();
    if (argc > 1 && parent == MPI_COMM_NULL)
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &child,
                       MPI_ERRCODES_IGNORE);
    MPI_Finalize();
    return 0;
}

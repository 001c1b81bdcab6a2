/* Enters MPI in the way that the first argument names, and prints its place in the world. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "init";
    int provided, rank = -1, size = -1;
    if (!strcmp(way, "session")) {
        MPI_Session session;
        MPI_Group group;
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
        MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
        MPI_Group_rank(group, &rank);
        MPI_Group_size(group, &size);
        MPI_Group_free(&group);
        printf("%d of %d\n", rank, size);
        return MPI_Session_finalize(&session);
    }
    if (!strcmp(way, "thread"))
        MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    else
        MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("%d of %d\n", rank, size);
    return MPI_Finalize();
}

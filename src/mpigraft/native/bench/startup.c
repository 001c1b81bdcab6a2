/* How MPI starts, and what that costs each rank: time, and memory once all ranks have talked. */
#include <stdio.h>
#include <time.h>

#include "../common/check.h"
#include "measure.h"
#include "mpi_functions.h"

/* Seconds since `launched` by the clock of all days, once every rank is here. Rank 0 is on
 * the launcher's host as a rule, and then one clock says both; another host's may be off. */
double since_launch(double launched)
{
    struct timespec time;
    int rank;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    speaker = rank;
    OK(MPI_Barrier(MPI_COMM_WORLD));
    clock_gettime(CLOCK_REALTIME, &time);
    double took = (double)time.tv_sec - launched + 1e-9 * (double)time.tv_nsec;
    if (rank == 0 && took < 0)
        DIE("started %.3f s before it was launched: clocks of hosts differ", -took);
    return rank == 0 ? took : 0;
}

void start_mpi(int *argc, char ***argv, bool threads)
{
    int level = MPI_THREAD_MULTIPLE;
    if (threads)
        MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
    else
        MPI_Init(argc, argv); /* on an error MPI itself prints and ends */
    if (level != MPI_THREAD_MULTIPLE)
        DIE("this MPI lets no two threads call it at the same time (MPI_THREAD_MULTIPLE)");
}

/* MiB of this process. The proportional set size counts a page shared by n ranks as 1/n, so
 * figures of ranks may be added up; kernels without it give the resident set. */
static double memory_mib(void)
{
    static const char *const files[][2] = {{"/proc/self/smaps_rollup", "Pss: %ld kB"},
                                           {"/proc/self/status", "VmRSS: %ld kB"}};
    char line[256];
    long kib = 0;
    for (int i = 0; i < 2 && !kib; i++) {
        FILE *file = fopen(files[i][0], "r");
        while (file && !kib && fgets(line, sizeof line, file))
            if (sscanf(line, files[i][1], &kib) != 1)
                kib = 0;
        if (file)
            fclose(file);
    }
    return (double)kib / 1024;
}

/* Every rank talks to every other, so that connections and their buffers exist. */
double memory_after_talking(MPI_Comm comm)
{
    int size;
    OK(MPI_Comm_size(comm, &size));
    char *bytes = need(2 * (size_t)size, 1);
    OK(MPI_Alltoall(bytes, 1, MPI_CHAR, bytes + size, 1, MPI_CHAR, comm));
    OK(MPI_Barrier(comm));
    double mib = memory_mib();
    OK(MPI_Barrier(comm));
    free(bytes);
    return mib;
}

/* Open MPI duplicates the world when the first request of this kind is made, and waits until every
 * rank has made one: so each sends a byte to itself, those that take no part in pairs too. */
void introduce_partitions(int rank)
{
    char from = 1, to = 0;
    MPI_Request requests[2];
    CALL_ADDED(Precv_init, &to, 1, 1, MPI_CHAR, rank, TAG, MPI_COMM_WORLD, MPI_INFO_NULL,
               &requests[0]);
    CALL_ADDED(Psend_init, &from, 1, 1, MPI_CHAR, rank, TAG, MPI_COMM_WORLD, MPI_INFO_NULL,
               &requests[1]);
    OK(MPI_Startall(2, requests));
    CALL_ADDED(Pready, 0, requests[1]);
    OK(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 2; i++)
        OK(MPI_Request_free(&requests[i]));
}

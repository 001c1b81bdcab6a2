/* What starting MPI cost each rank: time of MPI_Init, memory once all ranks have talked. */
#ifndef MPIGRAFT_STARTUP_H
#define MPIGRAFT_STARTUP_H

#include <stdio.h>

#include "../common/check.h"

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
static double memory_after_talking(MPI_Comm comm)
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

#endif

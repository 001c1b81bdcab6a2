/* Writes records as ranks do: FOLDER, how many, the first rank. */
#include "preload/next_mpi.h"
#include "witness/rank_record.h"

/* What dlsym asks: this program takes no MPI from a handle. */
PLAIN void *mpigraft_taken(void *handle, const char *name)
{
    (void)handle, (void)name, (void)next_dlsym();
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    for (int n = 0; n < atoi(argv[2]); n++)
        testify(argv[1], (struct place){atoi(argv[3]) + n, 400, false}, "none");
    return 0;
}

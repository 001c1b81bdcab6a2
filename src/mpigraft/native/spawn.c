/* mpigraft-spawn: whether this launcher lets ranks start others.
 *
 *     mpigraft-spawn
 *
 * All ranks together start two more of this program with MPI_Comm_spawn and add up numbers of both
 * sides over the intercommunicator. Rank 0 prints one line of JSON when the sums are right, with
 * how many of the children saw MPIGRAFT_MARK and OMPI_MCA_mpigraft_mark: what only ranks were
 * given need not reach what they start. A launcher that cannot spawn ends the program with the
 * MPI's own error. */
#define PROGRAM "mpigraft-spawn"
#include <string.h>
#include <unistd.h>

#include "check.h"

enum { CHILDREN = 2, PATH_ROOM = 4096 };

/* 1 + 2 + ... + n */
static int sum_to(int n)
{
    return n * (n + 1) / 2;
}

/* Each side gives something and gets the sum of what the other gave. */
static int sum_over(MPI_Comm between, int given)
{
    int sum = 0;
    OK(MPI_Allreduce(&given, &sum, 1, MPI_INT, MPI_SUM, between));
    return sum;
}

static void be_child(MPI_Comm parents)
{
    int many, rank;
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    int sum = sum_over(parents, rank + 1);
    sum_over(parents, getenv("MPIGRAFT_MARK") != NULL);
    sum_over(parents, getenv("OMPI_MCA_mpigraft_mark") != NULL);
    OK(MPI_Comm_remote_size(parents, &many));
    if (sum != sum_to(many))
        DIE("%d parents gave %d, not %d", many, sum, sum_to(many));
    OK(MPI_Comm_disconnect(&parents));
}

static void be_parent(void)
{
    char self[PATH_ROOM] = "";
    int rank, size, codes[CHILDREN], many;
    MPI_Comm children;
    if (readlink("/proc/self/exe", self, sizeof self - 1) <= 0)
        DIE("cannot find my own file");
    OK(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    OK(MPI_Comm_size(MPI_COMM_WORLD, &size));
    speaker = rank;
    OK(MPI_Comm_spawn(self, MPI_ARGV_NULL, CHILDREN, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                      codes));
    int sum = sum_over(children, rank + 1);
    int marked = sum_over(children, 0);
    int set = sum_over(children, 0);
    OK(MPI_Comm_remote_size(children, &many));
    if (many != CHILDREN || sum != sum_to(CHILDREN))
        DIE("%d children gave %d, not %d", many, sum, sum_to(CHILDREN));
    OK(MPI_Comm_disconnect(&children));
    if (!rank)
        printf("{\"mpigraft\":\"spawned\",\"parents\":%d,\"children\":%d,\"marked\":%d,"
               "\"set\":%d}\n",
               size, many, marked, set);
}

int main(int argc, char **argv)
{
    MPI_Comm parents;
    OK(MPI_Init(&argc, &argv));
    OK(MPI_Comm_get_parent(&parents));
    if (parents == MPI_COMM_NULL)
        be_parent();
    else
        be_child(parents);
    OK(MPI_Finalize());
    return fflush(stdout) ? EXIT_RUNTIME : 0;
}

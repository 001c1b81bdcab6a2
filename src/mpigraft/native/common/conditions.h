/* Says with the figures who used the CPUs of each node's ranks meanwhile. */
#ifndef MPIGRAFT_CONDITIONS_H
#define MPIGRAFT_CONDITIONS_H

#include <mpi.h>

#include "check.h"
#include "clock.h"
#include "cpu_use.h"
#include "json.h"

/* What was known when measuring began. */
struct use_before {
    struct cpu_time *node; /* on the first rank of each node; CPU_SETSIZE of them */
    struct rank_use rank;
    double at;
};

/* `host` has the ranks of this node. */
static struct use_before use_begins(MPI_Comm host)
{
    int place;
    struct use_before before = {.node = NULL};
    OK(MPI_Comm_rank(host, &place));
    if (place == 0) {
        before.node = need(CPU_SETSIZE, sizeof *before.node);
        read_cpu_times("/proc/stat", before.node);
    }
    before.rank = use_of_rank();
    before.at = now();
    return before;
}

static void print_node(const struct node_use *node)
{
    printf("{\"mpigraft\":\"node\",\"host\":");
    json_string(stdout, node->host);
    printf(",\"ranks\":%d,\"cpus\":%d,\"wall_s\":%.6g,\"busy_s\":%.6g,\"steal_s\":%.6g,"
           "\"own_s\":%.6g,\"others\":%.4g,\"switches\":%ld}\n",
           node->ranks, node->cpus, node->wall, node->busy, node->steal, node->own, node->others,
           node->switches);
}

/* The first rank of each node sends what its ranks and others used to rank 0, which prints it. A
 * node whose kernel does not say is left out. */
static void print_nodes(struct node_use *mine, int rank)
{
    int nodes = 0;
    MPI_Comm first;
    OK(MPI_Comm_split(MPI_COMM_WORLD, mine ? 0 : MPI_UNDEFINED, rank, &first));
    if (!mine)
        return;
    OK(MPI_Comm_set_errhandler(first, MPI_ERRORS_RETURN));
    OK(MPI_Comm_size(first, &nodes));
    struct node_use *all = need(rank ? 0 : (size_t)nodes, sizeof *all);
    OK(MPI_Gather(mine, sizeof *mine, MPI_BYTE, all, sizeof *all, MPI_BYTE, 0, first));
    for (int i = 0; i < nodes && rank == 0; i++)
        if (all[i].cpus)
            print_node(&all[i]);
    free(all);
    OK(MPI_Comm_free(&first));
}

/* Print what was used since `before`; collective over all ranks. */
static void use_ends(MPI_Comm host, int rank, struct use_before *before)
{
    struct cpu_time *after = NULL;
    struct node_use node;
    int place, count;
    OK(MPI_Comm_rank(host, &place));
    OK(MPI_Comm_size(host, &count));
    struct rank_use *ranks = need(place ? 0 : (size_t)count, sizeof *ranks);
    if (place == 0)
        after = need(CPU_SETSIZE, sizeof *after);
    OK(MPI_Barrier(host)); /* or waiting for a late rank would pass for use by others */
    struct rank_use used = use_of_rank();
    double wall = now() - before->at;
    if (place == 0)
        read_cpu_times("/proc/stat", after);
    used.seconds -= before->rank.seconds;
    used.switches -= before->rank.switches;
    OK(MPI_Gather(&used, sizeof used, MPI_BYTE, ranks, sizeof used, MPI_BYTE, 0, host));
    if (place == 0)
        node = use_of_node(ranks, count, wall, before->node, after);
    print_nodes(place ? NULL : &node, rank);
    free(after);
    free(ranks);
    free(before->node);
}

#endif

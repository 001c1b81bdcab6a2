/* Who used the CPUs of each node's ranks while these measured: what others took is stored with the
 * figures. The kernel is asked twice, off the clock, by one rank of each node (proc_stat(5)).
 *
 * Time in interrupts counts for nobody: the kernel charges it to the task that it interrupts, or
 * not, as it was built, and the ranks' own messages cause most of it. So others may have taken
 * more than what is said here, and hardly less.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "conditions.h"

/* Of one node. */
struct node_use {
    char host[256];
    int ranks, cpus;
    double wall, busy, steal, own; /* seconds; all but `wall` of CPUs */
    double others;                 /* greatest share of the CPU time of ranks that share CPUs */
    long switches;
};

/* ---- the kernel's figures ---- */

/* Fill `cpu`, CPU_SETSIZE long, from a file like /proc/stat. What is not there is not known. */
static void read_cpu_times(const char *path, struct cpu_time *cpu)
{
    double tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    char line[512];
    FILE *file = fopen(path, "re");
    memset(cpu, 0, CPU_SETSIZE * sizeof *cpu);
    while (file && fgets(line, sizeof line, file) && !strncmp(line, "cpu", 3)) {
        unsigned long long user, nice, system, steal;
        int number;
        if (sscanf(line, "cpu%d %llu %llu %llu %*u %*u %*u %*u %llu", &number, &user, &nice,
                   &system, &steal) != 5 ||
            line[3] == ' ' || number < 0 || number >= CPU_SETSIZE)
            continue;
        cpu[number] = (struct cpu_time){true, tick * (double)(user + nice + system),
                                        tick * (double)steal};
    }
    if (file)
        fclose(file);
}

static double seconds_of(struct timeval time)
{
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

static struct rank_use use_of_rank(void)
{
    struct rank_use use = {.seconds = 0};
    struct rusage spent;
    if (sched_getaffinity(0, sizeof use.cpus, &use.cpus))
        CPU_ZERO(&use.cpus); /* more CPUs than a set holds */
    if (!getrusage(RUSAGE_SELF, &spent)) {
        use.seconds = seconds_of(spent.ru_utime) + seconds_of(spent.ru_stime);
        use.switches = spent.ru_nivcsw;
    }
    return use;
}

/* ---- one node ---- */

/* Join ranks that share CPUs, in place: what remains are sets without a CPU in common. Returns
 * how many. */
static int join_ranks(struct rank_use *rank, int count)
{
    int sets = 0;
    for (int i = 0; i < count; i++) {
        struct rank_use joined = rank[i];
        int apart = 0;
        for (int k = 0; k < sets; k++) {
            cpu_set_t common;
            CPU_AND(&common, &rank[k].cpus, &joined.cpus);
            if (!CPU_COUNT(&common)) {
                rank[apart++] = rank[k];
                continue;
            }
            CPU_OR(&joined.cpus, &joined.cpus, &rank[k].cpus);
            joined.seconds += rank[k].seconds;
            joined.switches += rank[k].switches;
        }
        rank[apart] = joined;
        sets = apart + 1;
    }
    return sets;
}

/* Add what was used of the CPUs of `set` between two readings `wall` seconds apart. */
static void add_set(struct node_use *node, const struct rank_use *set,
                    const struct cpu_time *before, const struct cpu_time *after)
{
    double busy = 0, steal = 0;
    int cpus = 0;
    for (int i = 0; i < CPU_SETSIZE; i++) {
        if (!CPU_ISSET(i, &set->cpus) || !before[i].known || !after[i].known)
            continue;
        busy += larger(after[i].busy - before[i].busy, 0); /* a CPU that was off begins anew */
        steal += larger(after[i].steal - before[i].steal, 0);
        cpus++;
    }
    double taken = larger(busy - set->seconds, 0) + steal;
    if (cpus && node->wall > 0 && taken / (node->wall * cpus) > node->others)
        node->others = taken / (node->wall * cpus);
    node->cpus += cpus;
    node->busy += busy;
    node->steal += steal;
    node->own += set->seconds;
    node->switches += set->switches;
}

/* What `count` ranks of a node and others used of the ranks' CPUs. `rank` is joined in place. */
static struct node_use use_of_node(struct rank_use *rank, int count, double wall,
                                   const struct cpu_time *before, const struct cpu_time *after)
{
    struct node_use node = {.ranks = count, .wall = wall};
    gethostname(node.host, sizeof node.host - 1);
    int sets = join_ranks(rank, count);
    for (int i = 0; i < sets; i++)
        add_set(&node, &rank[i], before, after);
    node.others = smaller(node.others, 1); /* the kernel counts in ticks */
    return node;
}

/* `host` has the ranks of this node. */
struct use_before use_begins(MPI_Comm host)
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

static void print_node(const struct node_use *node, const char *benchmark)
{
    printf("{\"mpigraft\":\"node\",\"host\":");
    json_string(stdout, node->host);
    if (benchmark)
        printf(",\"benchmark\":\"%s\"", benchmark);
    printf(",\"ranks\":%d,\"cpus\":%d,\"wall_s\":%.6g,\"busy_s\":%.6g,\"steal_s\":%.6g,"
           "\"own_s\":%.6g,\"others\":%.4g,\"switches\":%ld}\n",
           node->ranks, node->cpus, node->wall, node->busy, node->steal, node->own, node->others,
           node->switches);
}

/* The first rank of each node sends what its ranks and others used to rank 0, which prints it. A
 * node whose kernel does not say is left out. */
static void print_nodes(struct node_use *mine, int rank, const char *benchmark)
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
            print_node(&all[i], benchmark);
    free(all);
    OK(MPI_Comm_free(&first));
}

/* Print what was used since `before`, while `benchmark` ran or, if NULL, all of them; collective
 * over all ranks. */
void use_ends(MPI_Comm host, int rank, const char *benchmark, struct use_before *before)
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
    print_nodes(place ? NULL : &node, rank, benchmark);
    free(after);
    free(ranks);
    free(before->node);
}

/* Who used the CPUs of each node's ranks while these measured: what others took is stored with the
 * figures. The kernel is asked twice, off the clock, by one rank of each node (proc_stat(5)).
 *
 * Time in interrupts counts for nobody: the kernel charges it to the task that it interrupts, or
 * not, as it was built, and the ranks' own messages cause most of it. So others may have taken
 * more than what is said here, and hardly less.
 */
#ifndef MPIGRAFT_CPU_USE_H
#define MPIGRAFT_CPU_USE_H

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "extremes.h"

/* Seconds of one CPU since boot. */
struct cpu_time {
    bool known;
    double busy;  /* in user and system mode, of any task */
    double steal; /* given to others by a hypervisor */
};

/* What one rank used. */
struct rank_use {
    cpu_set_t cpus; /* that it may run on */
    double seconds; /* of any CPU, by all of its threads */
    long switches;  /* involuntary context switches */
};

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

#endif

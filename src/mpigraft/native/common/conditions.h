/* Who used the CPUs of each node's ranks while these measured: what others took is stored with
 * the figures. */
#ifndef MPIGRAFT_CONDITIONS_H
#define MPIGRAFT_CONDITIONS_H

#include <mpi.h>
#include <sched.h>
#include <stdbool.h>

#include "check.h"
#include "clock.h"
#include "json.h"
#include "statistics.h"

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

/* What was known when measuring began. */
struct use_before {
    struct cpu_time *node; /* on the first rank of each node; CPU_SETSIZE of them */
    struct rank_use rank;
    double at;
};

struct use_before use_begins(MPI_Comm host);
void use_ends(MPI_Comm host, int rank, const char *benchmark, struct use_before *before);

#endif

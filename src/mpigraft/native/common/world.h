/* All ranks of a program, and what is known of them from MPI_Init on: which of them share a host
 * and which a network, asked of the kernel. */
#ifndef MPIGRAFT_WORLD_H
#define MPIGRAFT_WORLD_H

#include <mpi.h>
#include <stdint.h>

#include "check.h"
#include "clock.h"
#include "json.h"
#include "memory.h"

/* What tells one from another: running kernels by their boot; networks by their namespace, since
 * a node may be one of several namespaces of a machine; hosts by name too. */
struct place_of_rank {
    uint64_t machine, network, host;
};

struct world {
    int rank, size;
    int spot;      /* among all, host by host: what makes up pairs */
    MPI_Comm host; /* ranks of this one */
    struct clock clock;
};

uint64_t mixed(uint64_t hash, const void *data, size_t bytes);
struct place_of_rank *places_of_all(int size);
int *hosts_of_all(int size);
struct world enter_world(void);
void leave_world(struct world *world);
void wait_idle(MPI_Comm comm);
void print_begin(const struct world *world, int buffers);

#endif

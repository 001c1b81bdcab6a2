/* The ranks of mpigraft-probe, what they send, and what their connections carry. */
#ifndef MPIGRAFT_PROBE_PROBE_H
#define MPIGRAFT_PROBE_PROBE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../common/arguments.h"
#include "../common/check.h"
#include "../common/clock.h"
#include "../common/json.h"
#include "../common/memory.h"
#include "../common/world.h"
#include "kernel.h"

enum { SMALL = 8, MEDIUM = 1 << 16, LARGE = 1 << 20 };

/* Ranks up to which the long all-to-all is done: each keeps two messages for every rank, which of
 * 8192 ranks would be a gigabyte in each. */
#ifndef LONG_RANKS
#define LONG_RANKS 256
#endif
enum { NOBODY = -1 };

/* Ranks go round in a ring: each sends to the next and receives from the one before. In pairs a
 * last rank, or a last node, would be left over and proven of nothing. */
struct peers {
    int to, from; /* ranks, or NOBODY */
};

struct probe {
    MPI_Comm host;
    int rank, size, hosts;
    struct peers near, far; /* on this host; at the same place of the next host that has it */
    bool reads_interfaces, reads_devices; /* the first rank of a network, of a machine */
    MPI_Comm readers;                     /* of those */
    MPI_Comm network;                     /* of the ranks of one network; its reader is the first */
    struct place_of_rank place;
    struct sockets sockets;
    struct wires interfaces; /* of this network: names only */
    int routes;              /* a socket to ask the kernel for routes by */
    int phases;
    const struct memory *memory;
    size_t half;   /* of the buffer: LARGE, or what an all-to-all sends */
    char *buffer;
    char *exposed; /* of a window over memory of a GPU, else NULL */
    MPI_Win win;
};

#define TRY(call)                                                       \
    do {                                                                \
        int code_ = (call);                                             \
        if (code_ != MPI_SUCCESS)                                       \
            return code_;                                               \
    } while (0)

/* Bytes of a part by the class of peers, of all ranks together; `least` and `most` are of the one
 * rank that sent least and most of those that had `each` to send. */
struct shares {
    long long sent[PEER_CLASSES], received[PEER_CLASSES];
    long long each, least, most;
    enum gap gap;
};

/* traffic.c */
struct probe seat_ranks(const struct world *world, const struct memory *memory);
void leave_seats(struct probe *probe);
int talk(struct probe *probe, struct peers peers, int bytes, int times);
int expose_memory(struct probe *probe);
int access_window(struct probe *probe, struct peers peers, int bytes, int times);
int withdraw_memory(struct probe *probe);
int exchange(struct probe *probe, struct peers peers, int bytes, int times);
int add_up(struct probe *probe, struct peers peers, int bytes, int times);
int tell_all(struct probe *probe, struct peers peers, int bytes, int times);

/* rank_connections.c */
void match_connections(struct probe *probe);
struct shares shares_of_all(struct probe *probe, unsigned due, long long each, struct wires *wires);
void print_shares(const struct shares *shares, const struct wires *wires);

#endif
